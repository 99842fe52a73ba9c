"""One boolean per file, as numpy has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


def flags_of(array: pa.BooleanArray) -> Flags:
    """The booleans of an array without nulls."""
    assert array.null_count == 0, "an unknown must be decided before it becomes a flag"
    flags: Flags = array.to_numpy(zero_copy_only=False)
    return flags
