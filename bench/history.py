"""What the commits of the tail do, in file numbers, and which files are live afterwards.

Why apart from the writing: the same plan tells the writer what to write and a test what to expect.
Contract: pure. In one commit no file is touched twice; removes and deletion-vector updates name files
that are live at that moment, half of them from the checkpoint, half from earlier commits of the tail.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from bench.files import Files
from bench.fixed_text import Ints
from bench.spec import DV_GENERATIONS_MAX, TableSpec

Key = tuple[int, int]  # file number, deletion-vector generation


class CommitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of the tail."""

    version: int
    adds: Ints
    readds: list[Key]
    removes: list[Key]
    dv_updates: list[tuple[int, int, int]]  # file number, generation before, generation after


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The tail's commits, and the difference they make to what the base version holds."""

    commits: list[CommitPlan]
    removed: set[int]
    generations: dict[int, int]


def plan(spec: TableSpec) -> History:
    """Decide the tail, the same for the same spec."""
    state = _State(spec)
    commits = [state.commit(number) for number in range(spec.tail_commits)]
    return History(commits=commits, removed=state.removed, generations=state.generations)


def live_count(spec: TableSpec, history: History) -> int:
    """How many files are live at the newest version."""
    return spec.files + spec.tail_commits * spec.tail_adds - len(history.removed)


def live_keys(spec: TableSpec, history: History) -> tuple[Ints, Ints]:
    """Number and generation of every live file. In memory: for small tables."""
    numbers = np.arange(spec.files + spec.tail_commits * spec.tail_adds)
    generation = Files(spec, numbers).base_generation
    for number, newest in history.generations.items():
        generation[number] = newest
    keep = ~np.isin(numbers, list(history.removed))
    return numbers[keep], generation[keep]


class _State:
    """The table while the tail is being decided."""

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self.removed: set[int] = set()
        self.generations: dict[int, int] = {}
        self._rng = np.random.default_rng(spec.seed)
        touched = spec.tail_commits * (spec.tail_removes + spec.tail_dv_updates + spec.tail_readds)
        self._untouched = iter(self._rng.choice(spec.files, size=touched, replace=False).tolist())
        self._with_dv: list[int] = []

    def commit(self, number: int) -> CommitPlan:
        spec = self.spec
        updates = list(self._updates())
        busy = {number for number, _, _ in updates}
        removes = list(self._removes(number, busy))
        readds = [self._key(next(self._untouched)) for _ in range(spec.tail_readds)]
        first = spec.files + number * spec.tail_adds
        adds = np.arange(first, first + spec.tail_adds)
        version = spec.base_version + 1 + number
        return CommitPlan(version=version, adds=adds, readds=readds, removes=removes, dv_updates=updates)

    def _updates(self) -> Iterator[tuple[int, int, int]]:
        wanted = self.spec.tail_dv_updates
        again = [
            n for n in self._with_dv if n not in self.removed and self.generations[n] < DV_GENERATIONS_MAX
        ]
        chosen = self._sample(again, wanted // 2)
        chosen += [next(self._untouched) for _ in range(wanted - len(chosen))]
        for number in chosen:
            _, before = self._key(number)
            self.generations[number] = before + 1
            self._with_dv.append(number)
            yield number, before, before + 1
        self._with_dv = sorted(set(self._with_dv))

    def _removes(self, commit: int, busy: set[int]) -> Iterator[Key]:
        spec = self.spec
        tail = range(spec.files, spec.files + commit * spec.tail_adds)
        candidates = [n for n in self._sample(tail, spec.tail_removes) if n not in self.removed | busy]
        chosen = candidates[: spec.tail_removes // 2]
        # A file whose deletion vector the tail changed is removed, too, now and then.
        with_dv = [n for n in self._with_dv if n not in self.removed | busy | set(chosen)]
        chosen += self._sample(with_dv, min(1, spec.tail_removes - len(chosen)))
        chosen += [next(self._untouched) for _ in range(spec.tail_removes - len(chosen))]
        for number in chosen:
            yield self._key(number)
            self.removed.add(number)

    def _sample(self, numbers: range | list[int], wanted: int) -> list[int]:
        count = min(wanted, len(numbers))
        if not count:
            return []
        places = self._rng.choice(len(numbers), size=count, replace=False)
        return [numbers[place] for place in places.tolist()]

    def _key(self, number: int) -> Key:
        if number not in self.generations:
            base = Files(self.spec, np.array([number])).base_generation
            return number, int(base[0])
        return number, self.generations[number]
