"""What the ladder must show, and whether a run shows it.

Contract: pure. Each promise is judged by medians; a figure that was not measured fails it. A level must
better the columns that its row in the seeds betters, and must not worsen another by more than a tenth. Five
milliseconds and two megabytes are noise: a run of the same code differs by as much. Round trips are judged
behind latency only; on a disk, reads that go side by side end before the next one begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import msgspec

from bench.ladder_cells import Cell, find
from bench.ladder_levels import L0, L8_STALE, LEVELS, Level
from bench.promises import Check

_TENTH = 1.1
_NAMES = {"memory": "peak_mb", "first": "first_s", "complete": "all_s"}
_EXACT = {"requests": "requests", "round trips": "round_trips", "bytes": "bytes_read"}
_NOISE = {"peak_mb": 2.0, "first_s": 0.005, "all_s": 0.005}
_WORDS = {
    "peak_mb": "{:,.1f} MB",
    "first_s": "{:,.4f} s",
    "all_s": "{:,.4f} s",
    "requests": "{:,.0f} requests",
    "round_trips": "{:,.0f} round trips",
    "bytes_read": "{:,.0f} bytes",
}


Change = tuple[str, float, float]  # a figure's name, before, after


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that the last hour may cost, by what lies on the disk."""

    projected_bytes: int  # of the row groups that hold the last hour: path, size, hour, deletion vector
    manifest_bytes: int
    tail_bytes: int

    @property
    def bytes_max(self) -> int:
        """Twice the projected columns, the manifest, the tail."""
        return 2 * self.projected_bytes + self.manifest_bytes + self.tail_bytes


def judge_ladder(cells: Sequence[Cell], budget: Budget) -> list[Check]:
    """Every promise in the order of the issue."""
    places = [place for place in ("disk", "store") if any(cell.place == place for cell in cells)]
    steps = [check for place in places for check in _steps(cells, place)]
    return [
        *_last_hour(cells, budget),
        *_peers(cells),
        *_wide(cells),
        *_whole(cells),
        *_cache(cells),
        *_accounts(cells),
        *steps,
    ]


def _last_hour(cells: Sequence[Cell], budget: Budget) -> list[Check]:
    far, near = find(cells, level="L7", place="store"), find(cells, level="L7")
    tail = find(cells, level="L2", query="tail")
    beyond = None
    if near is not None and tail is not None:
        beyond = (near.median("peak_mb") or 0.0) - (tail.median("peak_mb") or 0.0)
    return [
        _at_most("the last hour: at most 4 sequential round trips from cold", _of(far, "round_trips"), 4),
        _at_most(
            "the last hour: at most twice the matching row groups' projected columns, manifest and tail",
            _of(far, "bytes_read"),
            budget.bytes_max,
            "bytes",
        ),
        _below("the last hour: peak Arrow allocation under 5 MB", _of(near, "arrow_mb"), 5, "MB"),
        _below("the last hour: resident growth under 20 MB beyond the tail", beyond, 20, "MB"),
    ]


def _peers(cells: Sequence[Cell]) -> list[Check]:
    ours = find(cells, level="L7")
    others = [cell for name in (L0.name, "duckdb") if (cell := find(cells, level=name)) is not None]
    checks = []
    for name, words in (("first_s", "to the first file"), ("all_s", "to completion")):
        promise = f"the last hour: 500 times faster than the fastest peer {words}"
        quickest = min((cell for cell in others if name in cell.figures), key=_by(name), default=None)
        other, mine = _of(quickest, name), _of(ours, name)
        if other is None or mine is None or quickest is None:
            checks.append(Check(promise=promise, passed=False, measured="not measured"))
            continue
        who = "delta-rs" if quickest.level == L0.name else quickest.level
        told = f"{other / mine:,.0f} times: lazydelta {mine:,.4f} s, {who} {other:,.2f} s"
        checks.append(Check(promise=promise, passed=other / mine >= 500, measured=told))
    return checks


def _wide(cells: Sequence[Cell]) -> list[Check]:
    checks = []
    for name, words in (("bytes_read", "bytes"), ("all_s", "time")):
        narrow, wide = (_of(find(cells, level="L7", table=table), name) for table in ("narrow", "wide"))
        promise = f"150 stat columns instead of six: at most 2 times the {words}, without a tail"
        if not narrow or not wide:
            checks.append(Check(promise=promise, passed=False, measured="not measured"))
            continue
        told = f"{wide / narrow:.2f} times ({_told(name, narrow)} to {_told(name, wide)})"
        checks.append(Check(promise=promise, passed=wide / narrow <= 2, measured=told))
    return checks


def _whole(cells: Sequence[Cell]) -> list[Check]:
    memory = _of(find(cells, level="L7", query="all"), "peak_mb")
    return [_below("every file through the sidecar: under 50 MB over import", memory, 50, "MB")]


def _cache(cells: Sequence[Cell]) -> list[Check]:
    cell = find(cells, level="L8")
    cold, again = _of(cell, "cold_s"), _of(cell, "all_s")
    promise = "the cached second query: 20 times faster than the first, on the local disk"
    times = None if cold is None or not again else cold / again
    told = "not measured" if times is None else f"{times:,.1f} times: {cold:,.4f} s, then {again:,.4f} s"
    stale = _of(find(cells, level=L8_STALE.name, place="store"), "requests")
    return [
        Check(promise=promise, passed=times is not None and times >= 20, measured=told),
        _at_most("the cached second query with max_staleness: no request at all", stale, 0, "requests"),
    ]


def _accounts(cells: Sequence[Cell]) -> list[Check]:
    """What `explain` tells must be what the server saw."""
    wrong = []
    pairs = [
        ("requests", "own_requests"),
        ("round_trips", "own_round_trips"),
        ("bytes_read", "own_bytes_read"),
    ]
    for cell in cells:
        for server, own in pairs:
            seen, told = cell.median(server), cell.median(own)
            if seen is not None and told is not None and _flatters(server, told, seen):
                wrong.append(f"{cell.level} {cell.query}: {_told(server, seen)} seen, {told:,.0f} told")
    promise = "explain tells the requests and bytes that the server saw, and no fewer round trips"
    return [Check(promise=promise, passed=not wrong, measured="; ".join(wrong[:6]) or "all equal")]


def _flatters(name: str, told: float, seen: float) -> bool:
    """Counts must be equal. Depth is a matter of what ended first, and may only be told too great."""
    return told < seen if name == "round_trips" else told != seen


def _steps(cells: Sequence[Cell], place: str) -> list[Check]:
    rungs = [level for level in LEVELS if level is not L8_STALE]
    return [_step(cells, below, level, place) for below, level in itertools.pairwise(rungs)]


def _step(cells: Sequence[Cell], below: Level, level: Level, place: str) -> Check:
    """One level over the one below it."""
    words = ", ".join("take 100" if claim == "take" else claim for claim in level.claims)
    promise = f"{level.name} {level.title} ({place}): betters {words}; worsens nothing by over a tenth"
    before, after = (find(cells, level=each.name, place=place) for each in (below, level))
    takes = [_of(find(cells, level=x.name, query="take", place=place), "all_s") for x in (below, level)]
    if before is None or after is None:
        return Check(promise=promise, passed=False, measured="not measured")
    claimed: dict[str, Change | None] = {
        column: _change(_NAMES[column], before, after) for column in level.claims if column != "take"
    }
    if "take" in level.claims:
        claimed["take 100"] = None if None in takes else ("all_s", takes[0] or 0.0, takes[1] or 0.0)
    others = {
        column: _change(name, before, after)
        for column, name in (_NAMES | _EXACT).items()
        if column not in level.claims and not (column == "round trips" and place == "disk")
    }
    better = [_step_told(column, change) for column, change in claimed.items() if _is_better(change)]
    missed = [_step_told(column, change) for column, change in claimed.items() if not _is_better(change)]
    worse = [_step_told(column, change) for column, change in others.items() if _is_worse(change)]
    told = {"better": better, "not better": missed, "worse": worse}
    measured = "; ".join(f"{word}: {', '.join(columns)}" for word, columns in told.items() if columns)
    return Check(promise=promise, passed=not missed and not worse, measured=measured)


def _change(name: str, before: Cell, after: Cell) -> Change | None:
    old, new = before.median(name), after.median(name)
    return None if old is None or new is None else (name, old, new)


def _is_better(change: Change | None) -> bool:
    return change is not None and change[2] < change[1]


def _is_worse(change: Change | None) -> bool:
    if change is None:  # delta-rs tells nothing of its requests on a disk
        return False
    name, old, new = change
    return new > old * _TENTH and new - old > _NOISE.get(name, 0.0)


def _step_told(column: str, change: Change | None) -> str:
    if change is None:
        return f"{column} not measured"
    name, old, new = change
    return f"{column} {_told(name, old)} → {_told(name, new)}"


def _told(name: str, value: float) -> str:
    return _WORDS[name].format(value)


def _of(cell: Cell | None, name: str) -> float | None:
    return None if cell is None else cell.median(name)


def _by(name: str) -> Callable[[Cell], float]:
    return lambda cell: cell.figures[name].median


def _at_most(promise: str, value: float | None, bound: float, unit: str = "") -> Check:
    passed = value is not None and value <= bound
    told = "not measured" if value is None else f"{value:,.0f} {unit}".strip() + f", of {bound:,.0f}"
    return Check(promise=promise, passed=passed, measured=told)


def _below(promise: str, value: float | None, bound: float, unit: str) -> Check:
    passed = value is not None and value < bound
    told = "not measured" if value is None else f"{value:,.1f} {unit}"
    return Check(promise=promise, passed=passed, measured=told)
