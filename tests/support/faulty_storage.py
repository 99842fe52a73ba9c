"""A `Storage` that fails when a plan says so, to prove that rooms above give the right answer or an error.

Contract: wraps any storage; calls are numbered from 1 across all scoped copies, so that a plan can fail the
n-th call of a whole scan, or every n-th, or by a seed. What comes out is what the contract of `Storage`
allows: errors of its tree, never short bytes. A body that was cut is a `StorageError` (the length check of a
real storage); a stream or a listing that is cut gives a part first and then the error.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from lazydelta.errors import AccessDeniedError, StorageError
from lazydelta.storage import Deadline, IoCounters, ObjectInfo, ObjectNotFoundError, Storage

Kind = Literal["transient", "permanent", "not_found", "denied", "cut"]
Plan = Callable[[int], Kind | None]
T = TypeVar("T")


def fail_at(number: int, kind: Kind = "permanent") -> Plan:
    """Fail that call alone."""
    return lambda call: kind if call == number else None


def fail_every(step: int, kind: Kind = "permanent") -> Plan:
    """Fail every `step`-th call."""
    return lambda call: kind if call % step == 0 else None


def fail_by_seed(seed: int, probability: float, kinds: Sequence[Kind] = ("permanent", "cut")) -> Plan:
    """Fail calls at random, the same ones for the same seed."""

    def plan(call: int) -> Kind | None:
        dice = random.Random(f"{seed}:{call}")
        return dice.choice(kinds) if dice.random() < probability else None

    return plan


@dataclass
class CallLog:
    """What scoped copies share: every call as (method, name), and how many of them failed on purpose."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    faults: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def faulty(inner: Storage, plan: Plan) -> FaultyStorage:
    """The storage with faults, and an empty log of calls."""
    return FaultyStorage(inner, plan, CallLog())


class FaultyStorage:
    """`Storage` that asks its plan before every call."""

    def __init__(self, inner: Storage, plan: Plan, log: CallLog) -> None:
        self._inner = inner
        self._plan = plan
        self.log = log

    @property
    def root(self) -> str:
        return self._inner.root

    @property
    def counters(self) -> IoCounters:
        return self._inner.counters

    def scoped(self, deadline: Deadline | None = None) -> FaultyStorage:
        return FaultyStorage(self._inner.scoped(deadline), self._plan, self.log)

    def forget_version(self, where: str) -> None:
        self._inner.forget_version(where)

    def list_from(self, folder: str, after: str | None = None) -> Iterator[ObjectInfo]:
        kind = self._before("list_from", folder)
        yield from _cut_after_some(self._inner.list_from(folder, after), kind, folder)

    def get(self, name: str) -> bytes:
        return self._whole("get", name, lambda: self._inner.get(name))

    def get_range(self, name: str, start: int, length: int) -> bytes:
        return self._whole("get_range", name, lambda: self._inner.get_range(name, start, length))

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return self._whole("get_ranges", name, lambda: self._inner.get_ranges(name, ranges))

    def get_stream(self, name: str, chunk_bytes: int) -> Iterator[bytes]:
        kind = self._before("get_stream", name)
        yield from _cut_after_some(self._inner.get_stream(name, chunk_bytes), kind, name)

    def put_if_absent(self, name: str, body: bytes) -> bool:
        return self._whole("put_if_absent", name, lambda: self._inner.put_if_absent(name, body))

    def delete(self, name: str) -> bool:
        return self._whole("delete", name, lambda: self._inner.delete(name))

    def _whole(self, method: str, name: str, call: Callable[[], T]) -> T:
        if self._before(method, name) == "cut":
            raise _error("cut", name)
        return call()

    def _before(self, method: str, name: str) -> Kind | None:
        """Number the call; raise what its fault says, except a cut, which comes later."""
        with self.log.lock:
            self.log.calls.append((method, name))
            kind = self._plan(len(self.log.calls))
            self.log.faults += kind is not None
        if kind is not None and kind != "cut":
            raise _error(kind, name)
        return kind


def _cut_after_some(items: Iterator[T], kind: Kind | None, name: str) -> Iterator[T]:
    if kind is None:
        yield from items
        return
    yield from itertools.islice(items, 1)
    raise _error(kind, name)


def _error(kind: Kind, name: str) -> StorageError:
    what = f"a fault of the test: {kind}"
    if kind == "not_found":
        return ObjectNotFoundError(what, name, "none")
    if kind == "denied":
        return AccessDeniedError(what, name, "none")
    return StorageError(what, name, "none")
