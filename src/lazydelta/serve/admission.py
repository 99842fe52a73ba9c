"""How many scans run at once, in all and of one client; who is one too many waits a little, then is refused.

Contract: thread-safe. Who waits is admitted in the order of arrival, past those that wait for a place of
their own client. What is admitted is on the list until it is left, and can be told to stop: all at once when
the server goes down, by the client that started it, or by its time running out; whoever runs it looks at
`is_stopped` between batches. Its time runs while nobody reads it, too: then its place is free, and what it
reads is closed. What still works has its place until it has really ended, however late that is: otherwise
one client would pile up work that cannot be interrupted. Nobody is admitted once the server drains.
They go in one after the other: the next when the one before has left, or has worked for a moment. Short
answers are Python's work, which one thread does at a time: sixteen that take turns at it took a quarter more
CPU each than one after the other, and overtook each other (measured).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from lazydelta.serve.admitted import Admitted
from lazydelta.serve.config_parts import LimitsPart
from lazydelta.serve.refusals import LimitReachedError, UnavailableError
from lazydelta.serve.sign_in import Client

_LOOK_SECONDS = 60.0  # at least this often
_LATE_LOOK_SECONDS = 0.5  # where something that is late still works
_FRESH_SECONDS = 0.003  # that who was let in is alone at the door
_PATIENT_SECONDS = 1.0  # who waits for a place for less does not wait for the door
_IDLE_SECONDS = 5.0  # without anybody in line, before the doorman goes


class _Waiter:
    """Somebody at the door."""

    def __init__(self, client: Client, number: int) -> None:
        self.client = client
        self.number = number  # in the order of arrival
        self.is_let_in = False
        self._asleep = threading.Lock()  # an event would be one and more besides
        self._asleep.acquire()

    def wait(self, seconds: float) -> None:
        """Until it is woken, at the latest for so long."""
        self._asleep.acquire(timeout=seconds)

    def wake(self) -> None:
        """Have it look; once is enough."""
        if self._asleep.locked():
            self._asleep.release()


class Admission:
    """The door."""

    def __init__(self, limits: LimitsPart) -> None:
        self._limits = limits
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        self._lined_up = threading.Condition(lock)  # the same lock: what the doorman waits for
        self._running: dict[str, Admitted] = {}
        self._by_client: Counter[str] = Counter()  # places taken, those of `_running` and those just granted
        self._taken = 0
        self._lines: dict[str, OrderedDict[int, _Waiter]] = {}  # who waits, by client
        self._arrivals = itertools.count()
        self._is_ready = True
        self._is_draining = False
        self._is_watched = False
        self._has_doorman = False
        self._fresh_number = -1  # who was let in last
        self._fresh_until = 0.0  # of `time.monotonic()`

    def limit_to(self, limits: LimitsPart) -> None:
        """Other limits from now on; what runs goes on."""
        with self._changed:
            self._limits = limits
            self._serve()
            self._changed.notify_all()

    @property
    def limits(self) -> LimitsPart:
        """Those in force."""
        return self._limits

    @property
    def is_ready(self) -> bool:
        """Whether more is wanted; who comes all the same is admitted, until it drains."""
        return self._is_ready

    def retire(self) -> None:
        """Not ready from now on."""
        self._is_ready = False

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        with self._changed:
            return sum(map(len, self._lines.values()))

    def seconds_of(self, client: Client) -> float:
        """How long a scan of the client may take; 0: as long as it wants."""
        own = client.limits.scan_seconds
        return self._limits.scan_seconds if own is None else own

    def running(self) -> list[Admitted]:
        """What is on the list."""
        with self._changed:
            return list(self._running.values())

    @contextmanager
    def admitted(self, client: Client, what: str, *, ticket_id: str = "") -> Iterator[Admitted]:
        """A place on the list for as long as the block takes."""
        scan = self.enter(client, what, ticket_id=ticket_id)
        try:
            yield scan
        finally:
            self.leave(scan)

    def enter(self, client: Client, what: str, *, ticket_id: str = "") -> Admitted:
        """A place on the list, until `leave`."""
        number = self._wait(client, what)
        with self._changed:
            scan = Admitted(
                client,
                what,
                number=number,
                ticket_id=ticket_id,
                seconds=self.seconds_of(client),
                rows_max=self._limits.rows if client.limits.rows is None else client.limits.rows,
            )
            self._running[scan.id] = scan
            if scan.seconds > 0:
                self._watch()
                self._changed.notify_all()  # to whoever looks at the time
        return scan

    def leave(self, scan: Admitted) -> None:
        """Its place is free; again does no harm."""
        scan.end()
        with self._changed:
            if self._running.pop(scan.id, None) is not None:
                self._give_back(scan.client, scan.number)
                self._changed.notify_all()

    def hasten(self, scan: Admitted, seconds: float) -> None:
        """It has no more than so many seconds from now on, whatever the limits say."""
        with self._changed:
            ends_at = time.monotonic() + seconds
            if ends_at < scan.ends_at:
                scan.ends_at, scan.seconds = ends_at, seconds
                self._watch()
                self._changed.notify_all()

    def cancel(self, client: Client, ticket_id: str) -> bool:
        """The client wants no more of what it began by the ticket; whether that runs.

        Several may have begun by one ticket: their ids go on where the ticket's ends.
        """
        found = [
            scan
            for scan in self.running()
            if ticket_id and scan.ticket_id.startswith(ticket_id) and scan.client.name == client.name
        ]
        for scan in found:
            scan.stop("its client cancelled it", is_cancelled=True)
        return bool(found)

    def drain(self, seconds: float) -> bool:
        """Admit nobody and wait for those on the list; whether all have ended by themselves."""
        until = time.monotonic() + seconds
        self.retire()
        with self._changed:
            self._is_draining = True
            for line in self._lines.values():
                for waiter in line.values():
                    waiter.wake()
            self._changed.notify_all()
            while self._running and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            late = list(self._running.values())
        for scan in late:
            scan.stop("the server goes down")
        return not late

    def _wait(self, client: Client, what: str) -> int:
        """Take a place, once there is one; the number in the order of arrival."""
        waiter = _Waiter(client, next(self._arrivals))
        with self._changed:
            self._check_open()
            self._lines.setdefault(client.name, OrderedDict())[waiter.number] = waiter
            self._serve()
            if not waiter.is_let_in:
                self._call_doorman()
            seconds = self._limits.waiting_seconds
        if not waiter.is_let_in:
            waiter.wait(seconds)
        with self._changed:
            if waiter.is_let_in:
                if self._is_draining:
                    self._give_back(client, waiter.number)
                    self._check_open()
                return waiter.number
            self._leave_line(waiter)
            self._check_open()
            raise LimitReachedError(
                self._full(client) or "too many scans wait for a place (limits.scans)",
                what,
                "ask again when another scan has ended",
            )

    # --- with the lock held --------------------------------------------------

    def _serve(self) -> None:
        """Let in those who wait, in their order, as far as there are places."""
        while first := self._first():
            self._leave_line(first)
            self._taken += 1
            self._by_client[first.client.name] += 1
            first.is_let_in = True
            self._fresh_number = first.number
            self._fresh_until = time.monotonic() + _FRESH_SECONDS
            first.wake()
            self._lined_up.notify()  # the next may soon go in, too

    def _first(self) -> _Waiter | None:
        """Who waits longest of those that there is a place for; nobody while another has just gone in."""
        if self._limits.waiting_seconds >= _PATIENT_SECONDS and time.monotonic() < self._fresh_until:
            return None
        heads = (next(iter(line.values())) for line in self._lines.values())
        fitting = (waiter for waiter in heads if self._full(waiter.client) is None)
        return min(fitting, key=lambda waiter: waiter.number, default=None)

    def _leave_line(self, waiter: _Waiter) -> None:
        line = self._lines[waiter.client.name]
        del line[waiter.number]
        if not line:
            del self._lines[waiter.client.name]

    def _give_back(self, client: Client, number: int) -> None:
        if number == self._fresh_number:
            self._fresh_until = 0.0
        self._taken -= 1
        self._by_client[client.name] -= 1
        self._serve()

    def _check_open(self) -> None:
        if self._is_draining:
            raise UnavailableError("the server goes down", "scan", "ask again in a while")

    def _full(self, client: Client) -> str | None:
        """Why one more is one too many; None: it is not."""
        if self._taken >= self._limits.scans > 0:
            return f"{self._limits.scans} scans run at once already (limits.scans)"
        own = client.limits.scans
        most = self._limits.scans_per_client if own is None else own
        if self._by_client[client.name] >= most > 0:
            return f"{client.name} runs {most} scans at once already (limits.scans_per_client)"
        return None

    def _watch(self) -> None:
        """Have somebody look at the time, for as long as something runs."""
        if not self._is_watched:
            threading.Thread(target=self._watch_time, name="lazydelta-scan-time", daemon=True).start()
            self._is_watched = True  # not where it could not be started: the next tries again

    def _call_doorman(self) -> None:
        """Have somebody let in who waits, where nobody leaves meanwhile."""
        if self._has_doorman:
            self._lined_up.notify()
        else:
            threading.Thread(target=self._keep_door, name="lazydelta-door", daemon=True).start()
            self._has_doorman = True

    # --- without -------------------------------------------------------------

    def _keep_door(self) -> None:
        while True:
            time.sleep(_FRESH_SECONDS)
            with self._lined_up:
                self._serve()
                if self._lines and time.monotonic() < self._fresh_until:
                    continue
                if not self._lined_up.wait(_IDLE_SECONDS) and not self._lines:
                    self._has_doorman = False
                    return

    def _watch_time(self) -> None:
        while True:
            with self._changed:
                if not self._running:
                    self._is_watched = False
                    return
                now = time.monotonic()
                late = [scan for scan in self._running.values() if scan.ends_at <= now]
                ends = [scan.ends_at - now for scan in self._running.values() if scan.ends_at > now]
                if all(scan.is_stopped and not scan.is_waiting for scan in late):
                    look = _LATE_LOOK_SECONDS if late else _LOOK_SECONDS
                    self._changed.wait(min([*ends, look]))
                    continue
            for scan in late:
                scan.stop(f"it took longer than {scan.seconds:g} s (limits.scan_seconds)", is_late=True)
                if scan.is_waiting:
                    self.leave(scan)
