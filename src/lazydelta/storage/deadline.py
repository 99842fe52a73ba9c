"""The moment after which a scan, or the opening of a table, asks nothing more of the store.

Contract: monotonic time, so a clock that is set back does not lengthen a scan. Every request of a scoped
storage looks at it before it begins, and nothing that a request waits for reaches past it: a pause between
attempts, its turn at the host's gate, a thread, the store's answer.
"""

from __future__ import annotations

import math
import time

import msgspec

from lazydelta import limits
from lazydelta.errors import StorageError


class StoppedError(Exception):
    """Somebody ended the deadline: whoever runs the scan wants no more of it.

    No `LazyDeltaError`: nothing is wrong with the store or the log, so that nothing may be passed over.
    """


class Deadline(msgspec.Struct, frozen=True):
    """A point of `time.monotonic()`; infinity means never."""

    at: float = math.inf
    after_seconds: float = math.inf
    is_opening: bool = False

    @classmethod
    def after(cls, seconds: float, *, is_opening: bool = False) -> Deadline:
        """So many seconds from now; 0 means never, as in `Settings.scan_timeout_seconds`."""
        bounded = min(seconds, limits.SECONDS_MAX)
        return cls(time.monotonic() + bounded, bounded, is_opening) if seconds > 0 else NEVER

    def lift(self) -> None:
        """Let what still goes on take its time: what was to be done by then is done."""
        if self is not NEVER:
            msgspec.structs.force_setattr(self, "at", math.inf)

    def end(self) -> None:
        """Let it pass now, from any thread."""
        assert self is not NEVER
        msgspec.structs.force_setattr(self, "at", -math.inf)

    def earlier(self, other: Deadline) -> Deadline:
        """Whichever comes first; the other where both never do, since it may be ended."""
        return self if self.at < other.at else other

    def seconds_left(self) -> float:
        """Never negative."""
        return max(0.0, self.at - time.monotonic())

    def check(self, where: str) -> None:
        """Raise once the moment has passed."""
        if time.monotonic() >= self.at:
            raise self.passed(where)

    def passed(self, where: str) -> StorageError | StoppedError:
        """The error of whoever waited until the moment."""
        if self.at == -math.inf:
            return StoppedError(where)
        if self.is_opening:
            return StorageError(
                f"the table was not open within {self.after_seconds:g} s",
                where,
                "check the network, the store and the credential provider, or raise the storage option "
                "delta.scan.timeout_seconds, which opening obeys, too",
            )
        return StorageError(
            f"the scan's deadline of {self.after_seconds:g} s passed before everything was read",
            where,
            "raise scan_timeout_seconds, or ask for less: a narrower predicate or a limit",
        )


NEVER = Deadline()
