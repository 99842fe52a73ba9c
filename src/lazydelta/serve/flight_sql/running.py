"""A statement of SQL that runs: its rows, as far as it may give them.

Contract: rows come as they are found. A statement that was told to stop has been stopped, whatever it says;
lack of memory is the limit that it is here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import msgspec
import pyarrow as pa

from lazydelta.engines.sql_result import SqlResult
from lazydelta.errors import LazyDeltaError
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.statement_memory import check_memory

SOURCE = "SQL"
Shaped = Callable[[pa.RecordBatch], pa.RecordBatch]


class RunningStatement(msgspec.Struct, frozen=True, eq=False):
    """One, with its place among those that run."""

    result: SqlResult
    admitted: Admitted

    def batches(self, shaped: Shaped) -> Generator[pa.RecordBatch, None, None]:
        """The rows; `shaped` is what goes out of each batch."""
        try:
            for batch in self.result:
                self.admitted.gave(batch.num_rows)
                told = shaped(batch)
                with self.admitted.handing_over():
                    yield told
        except LazyDeltaError as error:
            self.admitted.check()  # it was told to stop: that is why
            check_memory(error, SOURCE)
            raise
        self.admitted.check()
