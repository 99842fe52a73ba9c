"""DuckDB sessions opened ahead: opening one takes longer than a small query.

Contract: a session is fresh: nobody used it before, and nobody will after. A few are kept ready, with the
options that were asked for last. They are opened in the background, once a query has ended, so that they do
not hold up the one that runs.
"""

from __future__ import annotations

import threading

from lazydelta.engines.session import Duck, SqlOptions, close_session, open_session

_READY_MAX = 3


class SpareSessions:
    """Those of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._options: SqlOptions | None = None  # of those that are ready
        self._ready: list[Duck] = []
        self._filling: threading.Thread | None = None
        self._is_closed = False

    def take(self, options: SqlOptions) -> Duck:
        """A session, which is the caller's."""
        with self._lock:
            found = self._ready.pop() if self._ready and self._options == options else None
        return open_session(options) if found is None else found

    def refill(self, options: SqlOptions) -> None:
        """Have some ready soon."""
        with self._lock:
            is_full = len(self._ready) >= _READY_MAX and self._options == options
            if is_full or self._is_closed or self._filling is not None:
                return
            self._filling = threading.Thread(
                target=self._fill, args=(options,), name="lazydelta-kusto-sessions", daemon=True
            )
            self._filling.start()

    def close(self) -> None:
        """Let go of those that are ready."""
        with self._lock:
            self._is_closed = True
            filling = self._filling
        if filling is not None:
            filling.join()
        self._drop()

    def _fill(self, options: SqlOptions) -> None:
        try:
            if self._options != options:
                self._drop()
                self._options = options
            while len(self._ready) < _READY_MAX and not self._is_closed:
                session = open_session(options)
                with self._lock:
                    self._ready.append(session)
        finally:
            self._filling = None

    def _drop(self) -> None:
        with self._lock:
            found, self._ready = self._ready, []
        for session in found:
            close_session(session)
