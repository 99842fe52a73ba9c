"""Queries that run and the latest that have ended, for `.show queries` and `.cancel query`.

Contract: bounded; what runs is forgotten last.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from lazydelta.serve.kusto.query_record import CANCELLED, COMPLETED, FAILED, RUNNING, QueryRecord
from lazydelta.serve.sign_in import Client


class QueryLog:
    """Those of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: OrderedDict[str, QueryRecord] = OrderedDict()

    @contextmanager
    def running(self, record: QueryRecord, told: Callable[[LazyDeltaError], str]) -> Iterator[None]:
        """The query is on the list, and stays there for a while; `told`: an error as a client reads it."""
        with self._lock:
            self._records[record.asked.activity_id] = record
            while len(self._records) > limits.KUSTO_QUERIES_SHOWN_MAX:
                self._drop_one()
        try:
            yield
        except LazyDeltaError as error:
            record.fail(error, told(error))
            raise
        except GeneratorExit:
            record.state = CANCELLED
            record.reason = record.reason or "its client has gone"
            raise
        except BaseException:
            record.state = FAILED
            raise
        finally:
            record.ended_at = time.time()
            if record.state == RUNNING:
                record.state = COMPLETED

    def records(self, *, client: Client, sees_all: bool) -> list[QueryRecord]:
        """The newest first."""
        with self._lock:
            found = list(self._records.values())
        return [one for one in reversed(found) if sees_all or one.client == client.name]

    def _drop_one(self) -> None:
        """The oldest that has ended; what runs is not forgotten, unless everything runs."""
        ended = (key for key, one in self._records.items() if one.state != RUNNING)
        del self._records[next(ended, next(iter(self._records)))]
