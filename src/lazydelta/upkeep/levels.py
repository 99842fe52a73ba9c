"""Which parts of a sidecar stay as they are, and which are written anew: pure arithmetic over row counts.

Why: a table of ten million files gets a checkpoint every ten commits, and its sidecar must not be rewritten
each time. Parts stand on levels by the number of their live rows: the top holds full parts, each level below
a `ratio`-th of the one above and at most one part. New rows enter at the smallest level that holds them,
take the part there along, and are carried up when the level overflows; at the top they join the open part.
Contract: every live row is in exactly one part afterwards; parts without live rows are dropped; there are
never more than twice as many parts as a full build makes. Over many builds the rows written grow with the
rows added and removed, by a factor that depends on `ratio` and the number of levels alone: a row is rewritten
at most about `ratio` times a level, and merging parts that shrank is paid for by the rows that left them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lazydelta import limits


class PartSize(msgspec.Struct, frozen=True, kw_only=True):
    """What decides the fate of a part."""

    num_rows: int
    num_live: int
    removed_ranges: int = 0

    @property
    def is_worn(self) -> bool:
        """Whether so much of it is gone that it is written anew without what is gone."""
        removed = self.num_rows - self.num_live
        return (
            self.removed_ranges > limits.SIDECAR_REMOVED_RANGES_MAX
            or removed > self.num_rows * limits.SIDECAR_REMOVED_SHARE_MAX
        )


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that are written together, sorted, as balanced parts."""

    parts: tuple[int, ...]  # positions of the parts whose live rows go in
    has_new_rows: bool
    num_rows: int

    def part_count(self, full_rows: int) -> int:
        """How many parts it makes."""
        return full_part_count(self.num_rows, full_rows)


class LevelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a build does with the parts it finds."""

    kept: tuple[int, ...]  # positions, ascending; referenced as they are
    groups: tuple[Group, ...]

    @property
    def rows_written(self) -> int:
        """Rows that are written, new or again."""
        return sum(group.num_rows for group in self.groups)


def full_part_count(num_rows: int, full_rows: int) -> int:
    """How many parts a full build makes of that many rows."""
    return -(-num_rows // full_rows)


def balanced(num_rows: int, part_count: int) -> list[int]:
    """Rows of each of so many parts, as even as can be."""
    return [
        num_rows * (number + 1) // part_count - num_rows * number // part_count
        for number in range(part_count)
    ]


def plan_levels(parts: Sequence[PartSize], new_rows: int, *, full_rows: int, ratio: int) -> LevelPlan:
    """Decide for `parts`, in the order of their ranges, when so many new rows come in."""
    capacities = _capacities(full_rows, ratio)
    levels: list[list[int]] = [[] for _ in capacities]
    for at, part in enumerate(parts):
        if part.num_live:
            levels[_level_of(part.num_live, capacities)].append(at)
    plan = _Plan(parts, new_rows, full_rows)
    plan.settle(levels, capacities)
    plan.keep_few()
    return plan.result()


class _Pool(msgspec.Struct):
    """Rows on their way up."""

    parts: list[int]
    has_new_rows: bool = False


class _Plan:
    """A plan in the making: what is kept, and pools that will be groups."""

    def __init__(self, parts: Sequence[PartSize], new_rows: int, full_rows: int) -> None:
        self._parts = parts
        self._new_rows = new_rows
        self._full_rows = full_rows
        self._kept: list[int] = []
        self._pools: list[_Pool] = []

    def settle(self, levels: list[list[int]], capacities: Sequence[int]) -> None:
        """Walk the levels from the lowest up, carrying what does not fit."""
        arriving: dict[int, _Pool] = {}
        if self._new_rows:
            arriving[_level_of(self._new_rows, capacities)] = _Pool([], has_new_rows=True)
        for level in range(len(capacities) - 1, 0, -1):
            members = levels[level]
            pool = arriving.pop(level, None)
            if pool is None and (len(members) > 1 or self._any_worn(members)):
                pool = _Pool([])
            if pool is None:
                self._kept += members
                continue
            pool.parts += members
            higher = _level_of(self._rows(pool), capacities)
            if higher == level:
                self._pools.append(pool)
            else:
                waiting = arriving.setdefault(higher, _Pool([]))
                waiting.parts += pool.parts
                waiting.has_new_rows |= pool.has_new_rows
        self._settle_top(levels[0], arriving.pop(0, None))

    def keep_few(self) -> None:
        """Join the two smallest until there are at most twice as many parts as a full build has.

        More than that means that parts are less than half full on average, so the two fit into one.
        """
        live = sum(part.num_live for part in self._parts) + self._new_rows
        parts_max = 2 * full_part_count(live, self._full_rows)
        while len(self._kept) + sum(self._count(pool) for pool in self._pools) > parts_max:
            single = [pool for pool in self._pools if self._count(pool) == 1]
            candidates = [*single, *(_Pool([at]) for at in self._kept)]
            first, second = sorted(candidates, key=self._rows)[:2]
            joined = _Pool(first.parts + second.parts, first.has_new_rows or second.has_new_rows)
            self._pools = [pool for pool in self._pools if pool not in (first, second)]
            self._kept = [at for at in self._kept if at not in joined.parts]
            self._pools.append(joined)

    def result(self) -> LevelPlan:
        """The plan, made."""
        groups = (
            Group(parts=tuple(sorted(pool.parts)), has_new_rows=pool.has_new_rows, num_rows=self._rows(pool))
            for pool in self._pools
        )
        return LevelPlan(kept=tuple(sorted(self._kept)), groups=tuple(groups))

    def _settle_top(self, members: Sequence[int], carry: _Pool | None) -> None:
        """Full parts stay; worn ones are written anew; what is carried up joins one that has room."""
        worn = [at for at in members if self._parts[at].is_worn]
        fresh = [at for at in members if not self._parts[at].is_worn]
        if carry is not None:
            room = self._full_rows - self._rows(carry)
            # A worn part is written anyway; else the newest: appended rows belong to its range.
            host = next((at for at in (*reversed(worn), *reversed(fresh)) if self._live(at) <= room), None)
            if host is not None:
                carry.parts.append(host)
            self._pools.append(carry)
        joined = set() if carry is None else set(carry.parts)
        self._pools += [_Pool([at]) for at in worn if at not in joined]
        self._kept += [at for at in fresh if at not in joined]

    def _any_worn(self, members: Iterable[int]) -> bool:
        return any(self._parts[at].is_worn for at in members)

    def _live(self, at: int) -> int:
        return self._parts[at].num_live

    def _rows(self, pool: _Pool) -> int:
        return sum(map(self._live, pool.parts)) + (self._new_rows if pool.has_new_rows else 0)

    def _count(self, pool: _Pool) -> int:
        return full_part_count(self._rows(pool), self._full_rows)


def _capacities(full_rows: int, ratio: int) -> list[int]:
    """Rows that a part of each level holds, the top first."""
    found = [full_rows]
    while found[-1] // ratio >= 1:
        found.append(found[-1] // ratio)
    return found


def _level_of(num_rows: int, capacities: Sequence[int]) -> int:
    """The smallest level that holds so many rows; the top holds any number."""
    return max((level for level, rows in enumerate(capacities) if rows >= num_rows), default=0)
