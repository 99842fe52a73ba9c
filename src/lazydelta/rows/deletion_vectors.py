"""The rows of a file that its deletion vector lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lazydelta.errors import UnsupportedTableError
from lazydelta.protocol.actions import DeletionVector
from lazydelta.storage import Storage


def deleted_rows(storage: Storage, vector: DeletionVector) -> NDArray[np.int64]:
    """Positions in the file, ascending; as many as the log's cardinality says, or an error."""
    raise UnsupportedTableError("deletion vectors are not read yet", storage.root, vector.dv_id)
