"""The promises of the README as named checks on a summed-up run.

Contract: pure. Every promise is told with the figure it was judged by; one that could not be measured
fails and says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bench.summary import Figure, Row, fastest, find, ratio


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One promise, judged."""

    promise: str
    passed: bool
    measured: str


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What the log itself weighs: the bytes a scan without checksum files may read for its first files."""

    tail_bytes: int
    footer_bytes: int
    table_state_bytes: int

    @property
    def bytes_max(self) -> int:
        """Tail, footer, protocol and metadata columns."""
        return self.tail_bytes + self.footer_bytes + self.table_state_bytes


def judge(table: Sequence[Row], *, files: int, smaller: int, budget: Budget) -> list[Check]:
    """Every promise, judged on the table of `files`; growth is from `smaller` to it."""
    return [
        *_first_hundred(table, files, budget),
        *_today(table, files),
        *_all_files(table, files),
        _predicate(table, files),
        *_growth(table, files, smaller),
    ]


def _first_hundred(table: Sequence[Row], files: int, budget: Budget) -> list[Check]:
    ours = find(table, files=files, reader="lazydelta", query="hundred")
    peer = fastest(table, files=files, query="hundred", kinds=("peer",))
    bare = find(table, files=files, reader="lazydelta", query="hundred", name="no checksums")
    checks = [_at_least("first 100 files: 100 times faster than the fastest peer", peer, ours, 100)]
    for name in ("kernel-java", "kernel-rust"):
        kernel = find(table, files=files, reader=name, query="hundred")
        checks.append(_at_least(f"first 100 files: faster than {name}", kernel, ours, 1))
    return [
        *checks,
        _below("first 100 files: under 50 MB over import", _of(ours, "peak_mb"), 50, "MB"),
        _at_most("first 100 files: at most 4 round trips", _of(ours, "round_trips"), 4, "round trips"),
        _at_most(
            "first 100 files, with .crc: at most 500 KB read", _of(ours, "bytes_read"), 500_000, "bytes"
        ),
        _at_most(
            "first 100 files, without .crc: no more than tail, footer, protocol and metadata",
            _of(bare, "bytes_read"),
            budget.bytes_max,
            "bytes",
        ),
    ]


def _today(table: Sequence[Row], files: int) -> list[Check]:
    ours = find(table, files=files, reader="lazydelta", query="today")
    # The newest commit adds more files of today than the query asks for.
    commits, groups = _of(ours, "commits_read"), _of(ours, "row_groups_read")
    return [
        _at_most("today's partition with a limit: only the commits needed", commits, 1, "commits"),
        _at_most("today's partition with a limit: the checkpoint is not touched", groups, 0, "row groups"),
    ]


def _all_files(table: Sequence[Row], files: int) -> list[Check]:
    ours = find(table, files=files, reader="lazydelta", query="all")
    peer = fastest(table, files=files, query="all", kinds=("peer",))
    bare = find(table, files=files, reader="bare stream", query="all")
    return [
        _at_least("all files: 5 times faster than the fastest peer", peer, ours, 5),
        _at_least("all files: within 2 times the bare stream", bare, ours, 0.5),
        _below("all files: under 120 MB over import", _of(ours, "peak_mb"), 120, "MB"),
    ]


def _predicate(table: Sequence[Row], files: int) -> Check:
    ours = find(table, files=files, reader="lazydelta", query="predicate")
    peer = fastest(table, files=files, query="predicate", kinds=("peer", "kernel"))
    return _at_least("a predicate on JSON statistics: 2 times faster than the fastest peer", peer, ours, 2)


def _growth(table: Sequence[Row], files: int, smaller: int) -> list[Check]:
    large = find(table, files=files, reader="lazydelta", query="hundred")
    small = find(table, files=smaller, reader="lazydelta", query="hundred")
    step = f"from {smaller:,} to {files:,} files"
    return [
        _grows(
            f"{step}: time to the first 100 grows less than 1.5 times",
            _of(large, "seconds"),
            _of(small, "seconds"),
        ),
        _grows(
            f"{step}: memory for the first 100 grows less than 1.5 times",
            _of(large, "peak_mb"),
            _of(small, "peak_mb"),
        ),
    ]


def _at_least(promise: str, other: Row | None, ours: Row | None, times: float) -> Check:
    if other is None or other.seconds is None:
        why = f"{other.reader}: {other.failure}" if other is not None else "no other reader answered"
        return Check(promise=promise, passed=False, measured=f"not measured ({why})")
    if ours is None or ours.seconds is None:
        return _missing(promise, ours)
    told = ratio(other, ours)
    told_times = f"{told.median:,.2f} times ({told.least:,.2f} to {told.most:,.2f})"
    seconds = f"lazydelta {ours.seconds.median:,.3f} s, {other.reader} {other.seconds.median:,.3f} s"
    measured = f"{told_times}: {seconds}"
    return Check(promise=promise, passed=told.median >= times, measured=measured)


def _grows(promise: str, large: Figure | None, small: Figure | None) -> Check:
    if large is None or small is None or not small.median:
        return Check(promise=promise, passed=False, measured="not measured")
    times = large.median / small.median
    told = f"{times:.2f} times ({small.median:,.3f} to {large.median:,.3f})"
    return Check(promise=promise, passed=times < 1.5, measured=told)


def _below(promise: str, figure: Figure | None, bound: float, unit: str) -> Check:
    passed = figure is not None and figure.median < bound
    return Check(promise=promise, passed=passed, measured=_told(figure, unit))


def _at_most(promise: str, figure: Figure | None, bound: float, unit: str) -> Check:
    passed = figure is not None and figure.median <= bound
    return Check(promise=promise, passed=passed, measured=f"{_told(figure, unit)} of {bound:,.0f}")


def _told(figure: Figure | None, unit: str) -> str:
    return "not measured" if figure is None else f"{figure.median:,.1f} {unit}".replace(".0 ", " ")


def _missing(promise: str, ours: Row | None) -> Check:
    why = "lazydelta was not run" if ours is None else f"lazydelta: {ours.failure}"
    return Check(promise=promise, passed=False, measured=f"not measured ({why})")


def _of(row: Row | None, name: str) -> Figure | None:
    return None if row is None else getattr(row, name)
