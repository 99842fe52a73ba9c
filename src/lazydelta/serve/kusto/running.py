"""A query that runs: its rows, and what ends it early, told as what it is.

Contract: a query that was told to stop has been stopped, whatever it says: by its client, by its time, by the
server's end. Lack of memory is told in Kusto's words.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pyarrow as pa

from lazydelta.engines.kql.result import KqlResult
from lazydelta.engines.sql_errors import QueryMemoryError
from lazydelta.errors import LazyDeltaError
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.kusto.refusals import LowMemoryError, TimedOutError
from lazydelta.serve.kusto.requests import Settings

SOURCE = "KQL"
Batches = Generator[pa.RecordBatch, None, None]


class RunningQuery:
    """A query that may give rows."""

    def __init__(self, result: KqlResult, admitted: Admitted, settings: Settings) -> None:
        self.result = result
        self.admitted = admitted
        self.settings = settings

    def batches(self) -> Batches:
        """Its rows; what ends them early is told as what it is."""
        while True:
            with told(self.admitted):
                batch = next(self.result, None)
                self.admitted.gave(0 if batch is None else batch.num_rows, is_limited=False)
            if batch is None:
                return
            with self.admitted.handing_over():
                yield batch


@contextmanager
def told(admitted: Admitted) -> Iterator[None]:
    """Errors as what they are: a query that was told to stop has been stopped, whatever it says."""
    try:
        yield
    except LazyDeltaError as error:
        _check_stopped(admitted)
        if isinstance(error, QueryMemoryError):
            raise LowMemoryError(
                f"Query execution lacks memory resources to complete (80DA0007): {error.what}"
                " (E_LOW_MEMORY_CONDITION; limits.memory_bytes)",
                SOURCE,
                "ask for less at once; a query may use an eighth of limits.memory_bytes of the server",
            ) from error
        raise
    _check_stopped(admitted)


def _check_stopped(admitted: Admitted) -> None:
    if admitted.is_stopped and admitted.is_late:
        raise TimedOutError(
            f"Request execution timed-out on the service side: the query took longer than"
            f" {admitted.seconds:g} s",
            SOURCE,
            "ask for less, or set servertimeout, as far as the server's limits.scan_seconds allows",
        )
    admitted.check()
