"""The memory of this process that scans, read-ahead, sets and the cache share; who wants more waits.

Why: every scan has limits of its own, but two hundred at once would take two hundred times as much.
Three kinds draw from it. `AHEAD` is what nobody waits for: rows and commits read ahead, sets that may move
to disk, and the cache; it is granted at once or not at all, out of the first half. `LOG` is a piece of the
log being decoded, `ROWS` one of a data file: those wait, first come first served among their kind. Both share
the first three quarters, and each has a quarter of its own, so that rows never wait for a log whose files
wait for rows. Nobody takes of what is shared past one of the other kind who has been the first in line for
half of `limits.MEMORY_WAIT_SECONDS`. What the cache holds is given back as soon as somebody is short.
Contract: thread-safe; what is held stays within the limit. A piece larger than its quarter counts as one, so
that one of each kind always fits; whoever waits holds no other piece of that kind, and goes on when others
have: a scan that holds one already gets the next at once. Nobody waits for ever: where the first in line has
come no nearer for `limits.MEMORY_WAIT_SECONDS` (every consumer has stopped pulling, or others take whatever
comes back), it goes on all the same, and is counted. Nearer means by a sixteenth of what was missing at
first, so that this takes seventeen times as long at most. Whoever waits can be told from another thread to
stop, and waits no longer than it wants to. A forked child begins with nothing held.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import IntEnum

import msgspec

from lazydelta import limits

_STEPS = 16  # in which the first in line may come nearer, each in its time


class MemoryKind(IntEnum):
    """What memory is wanted for."""

    AHEAD = 0
    LOG = 1
    ROWS = 2


_OTHER = {MemoryKind.ROWS: MemoryKind.LOG, MemoryKind.LOG: MemoryKind.ROWS}  # those that wait


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the process at one moment."""

    limit_bytes: int
    held_bytes: int
    peak_bytes: int
    cache_bytes: int  # of those held
    waiting: int
    waits: int  # since the process began
    overdrafts: int  # waits that ended because too little came back


class WaitStoppedError(Exception):
    """Whoever waits was told to stop, or would begin to wait after that."""


class WaitTimedOutError(Exception):
    """The moment came until which somebody wanted to wait."""


class _Waiter:
    __slots__ = (
        "byte_count",
        "first_at",
        "is_granted",
        "is_late",
        "moved_at",
        "short",
        "step",
        "stop",
        "wake",
    )

    def __init__(self, byte_count: int, stop: threading.Event | None) -> None:
        self.byte_count = byte_count
        self.stop = stop
        self.is_granted = False
        self.is_late = False
        self.wake = threading.Event()
        self.first_at = math.inf  # when it came to the head of its line
        self.moved_at = math.inf  # when it came nearer, there
        self.short = 0  # bytes that were missing then
        self.step = 1  # so many fewer are nearer


class MemoryBudget:
    """One account with a limit."""

    def __init__(
        self,
        limit_bytes: int = limits.MEMORY_BYTES,
        *,
        wait_seconds: float = limits.MEMORY_WAIT_SECONDS,
        turn_seconds: float | None = None,
    ) -> None:
        """`turn_seconds`: the other kind may pass the first in line for so long; None: half of the wait."""
        self._limit = limit_bytes
        self._wait_seconds = wait_seconds
        self._turn_seconds = wait_seconds / 2 if turn_seconds is None else turn_seconds
        self._give_back: Callable[[int], None] = lambda _: None
        self.start_anew()

    def start_anew(self) -> None:
        """Nothing is held, nobody waits: for a forked child, whose lock another thread may have held."""
        self._lock = threading.Lock()
        self._held = [0, 0, 0]  # by kind
        self._total = 0
        self._cache = 0  # of what is held ahead
        self._peak = 0
        self._waits = 0
        self._overdrafts = 0
        self._lines: tuple[deque[_Waiter], ...] = (deque(), deque(), deque())  # the first stays empty

    def limit_to(self, limit_bytes: int) -> None:
        """Another limit from now on; what is held beyond it comes back as it is used up."""
        with self._lock:
            self._limit = limit_bytes
            self._serve()

    def cache_gives_back(self, give_back: Callable[[int], None]) -> None:
        """How the cache lets go of so many bytes, if it has them; it tells `cached` itself."""
        self._give_back = give_back

    @property
    def limit_bytes(self) -> int:
        """What may be held."""
        return self._limit

    def try_take(self, byte_count: int) -> bool:
        """Whether so much is granted, at once, for what nobody waits for."""
        with self._lock:
            if self._grant_ahead(byte_count):
                return True
            short = self._total + byte_count - self._limit // 2
            if any(self._lines) or self._cache < short:
                return False
        self._give_back(short)
        with self._lock:
            return self._grant_ahead(byte_count)

    def take(
        self,
        byte_count: int,
        kind: MemoryKind,
        *,
        may_wait: bool = True,
        stop: threading.Event | None = None,
        until: float = math.inf,
    ) -> tuple[int, float]:
        """Wait until so much is there; how many bytes to give back one day, and the seconds waited.

        Who holds a piece of the kind already must not wait: others may wait for that one. `stop_waiting` with
        the same `stop` ends the wait by a `WaitStoppedError`, the moment `until` of `time.monotonic()` by a
        `WaitTimedOutError`.
        """
        assert kind is not MemoryKind.AHEAD, "what is optional never waits"
        with self._lock:
            granted = min(byte_count, self._limit // 4)
            if not may_wait or (not self._lines[kind] and self._fits(granted, kind)):
                self._hold(granted, kind)
                return granted, 0.0
            has_cache = self._cache > 0
        if has_cache:
            self._give_back(granted)
        with self._lock:
            if not self._lines[kind] and self._fits(granted, kind):
                self._hold(granted, kind)
                return granted, 0.0
            if stop is not None and stop.is_set():
                raise WaitStoppedError
            waiter = _Waiter(granted, stop)
            self._lines[kind].append(waiter)
            self._waits += 1
            self._serve()
        began = time.monotonic()
        self._wait(waiter, kind, until)
        return waiter.byte_count, time.monotonic() - began

    def stop_waiting(self, stop: threading.Event) -> None:
        """Set the event; whoever waits with it ends at once, and nobody begins to."""
        with self._lock:
            stop.set()
            for line in self._lines:
                for waiter in [waiter for waiter in line if waiter.stop is stop]:
                    line.remove(waiter)
                    waiter.wake.set()
            self._serve()

    def hold(self, byte_count: int) -> None:
        """So much is held, whether there is room or not: what a scan cannot do without."""
        with self._lock:
            self._hold(byte_count, MemoryKind.AHEAD)

    def give(self, byte_count: int, kind: MemoryKind) -> None:
        """So much of what was taken is not used any more."""
        with self._lock:
            self._drop(byte_count, kind)
            self._serve()

    def has_room_to_cache(self, byte_count: int) -> bool:
        """Whether the cache may keep so much more."""
        return not any(self._lines) and self._total + byte_count <= self._limit // 2

    def cached(self, more_bytes: int) -> None:
        """The cache holds so much more, or less."""
        with self._lock:
            if more_bytes > 0:
                self._cache += more_bytes
                self._hold(more_bytes, MemoryKind.AHEAD)
            else:
                self._cache = max(0, self._cache + more_bytes)
                self._drop(-more_bytes, MemoryKind.AHEAD)
                self._serve()

    def use(self) -> MemoryUse:
        """The numbers so far."""
        with self._lock:
            return MemoryUse(
                limit_bytes=self._limit,
                held_bytes=self._total,
                peak_bytes=self._peak,
                cache_bytes=self._cache,
                waiting=sum(len(line) for line in self._lines),
                waits=self._waits,
                overdrafts=self._overdrafts,
            )

    # --- with the lock held --------------------------------------------------

    def _grant_ahead(self, byte_count: int) -> bool:
        if any(self._lines) or self._total + byte_count > self._limit // 2:
            return False
        self._hold(byte_count, MemoryKind.AHEAD)
        return True

    def _fits(self, byte_count: int, kind: MemoryKind) -> bool:
        if self._held[kind] + byte_count <= self._limit // 4:
            return True
        return self._total + byte_count <= self._limit // 4 * 3 and not self._is_others_turn(kind)

    def _is_others_turn(self, kind: MemoryKind) -> bool:
        """Whether what is shared is for the other kind, whose first waits long and came there earlier."""
        line, others = self._lines[kind], self._lines[_OTHER[kind]]
        if not others or (line and line[0].first_at < others[0].first_at):
            return False
        return time.monotonic() - others[0].first_at >= self._turn_seconds

    def _short(self, byte_count: int, kind: MemoryKind) -> int:
        """How many bytes must come back before it fits."""
        own, shared = self._held[kind] - self._limit // 4, self._total - self._limit // 4 * 3
        return min(own, shared) + byte_count

    def _hold(self, byte_count: int, kind: MemoryKind) -> None:
        self._held[kind] += byte_count
        self._total += byte_count
        self._peak = max(self._peak, self._total)

    def _drop(self, byte_count: int, kind: MemoryKind) -> None:
        gone = min(byte_count, self._held[kind])  # a forked child may give back what its parent took
        self._held[kind] -= gone
        self._total -= gone

    def _serve(self) -> None:
        """Grant those in front what they wait for, and note how near the first ones are."""
        is_served = True
        while is_served:  # who is let in may have been in the way of the other kind
            is_served = False
            for kind in _OTHER:
                while (line := self._lines[kind]) and self._nears(line[0], kind):
                    self._let_in(kind)
                    is_served = True

    def _nears(self, first: _Waiter, kind: MemoryKind) -> bool:
        """Whether the first in line has come so near that it fits."""
        first.byte_count = min(first.byte_count, self._limit // 4)  # which may be less than it was
        short, is_new = self._short(first.byte_count, kind), first.first_at == math.inf
        if is_new or short <= first.short - first.step:
            first.short, first.moved_at = short, time.monotonic()
        if is_new:
            first.first_at, first.step = first.moved_at, max(1, short // _STEPS)
        return self._fits(first.byte_count, kind)

    def _let_in(self, kind: MemoryKind) -> None:
        waiter = self._lines[kind].popleft()
        self._hold(waiter.byte_count, kind)
        waiter.is_granted = True
        waiter.wake.set()

    def _overdraw(self, waiter: _Waiter, kind: MemoryKind) -> None:
        """Let it in all the same, if it is the first and came no nearer for long."""
        line = self._lines[kind]
        if line and line[0] is waiter and time.monotonic() - waiter.moved_at >= self._wait_seconds:
            self._overdrafts += 1
            self._let_in(kind)
            self._serve()  # the next one waits as long again

    def _leave(self, waiter: _Waiter, kind: MemoryKind) -> None:
        """Nobody is left in line, nothing held."""
        if waiter.is_granted:
            self._drop(waiter.byte_count, kind)
        elif waiter in self._lines[kind]:
            self._lines[kind].remove(waiter)
        self._serve()

    # --- without -------------------------------------------------------------

    def _wait(self, waiter: _Waiter, kind: MemoryKind, until: float) -> None:
        try:
            while not waiter.wake.wait(min(self._wait_seconds / 2, max(0.0, until - time.monotonic()))):
                with self._lock:
                    self._overdraw(waiter, kind)
                    if not waiter.wake.is_set() and time.monotonic() >= until:
                        waiter.is_late = True
                        waiter.wake.set()
                        self._leave(waiter, kind)
        except BaseException:  # an interrupt
            with self._lock:
                self._leave(waiter, kind)
            raise
        if not waiter.is_granted:
            raise WaitTimedOutError if waiter.is_late else WaitStoppedError


PROCESS_MEMORY = MemoryBudget()

os.register_at_fork(after_in_child=PROCESS_MEMORY.start_anew)
