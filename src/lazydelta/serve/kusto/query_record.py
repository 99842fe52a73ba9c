"""One query as it is remembered: who asked what, when, and what became of it.

Contract: its text is cut. A query that is told to stop before it has its place stops once it has it.
"""

from __future__ import annotations

import threading
import time

from lazydelta import limits
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.kusto.requests import Asked
from lazydelta.serve.refusals import CancelledError
from lazydelta.serve.sign_in import Client

RUNNING, COMPLETED, FAILED, CANCELLED = "InProgress", "Completed", "Failed", "Cancelled"


class QueryRecord:
    """One query."""

    def __init__(self, asked: Asked, client: Client) -> None:
        self.asked = asked
        self.text = asked.text[: limits.KUSTO_QUERY_SHOWN_CHARS]
        self.client = client.name
        self.began_at = time.time()
        self.ended_at: float | None = None
        self.state = RUNNING
        self.reason = ""
        self.rows = 0
        self.text_bytes = 0
        self._lock = threading.Lock()
        self._admitted: Admitted | None = None
        self._told = ""

    def admit(self, admitted: Admitted) -> None:
        """It has its place."""
        with self._lock:
            self._admitted = admitted
            told = self._told
        if told:
            admitted.stop(told, is_cancelled=True)

    def cancel(self, reason: str) -> None:
        """Have it stop."""
        with self._lock:
            self._told = self._told or reason
            admitted = self._admitted
        if admitted is not None:
            admitted.stop(reason, is_cancelled=True)

    def fail(self, error: Exception, reason: str) -> None:
        """It has ended by an error, as its client reads it."""
        self.state = CANCELLED if isinstance(error, CancelledError) else FAILED
        self.reason = reason[: limits.KUSTO_QUERY_SHOWN_CHARS]
