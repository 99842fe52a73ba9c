"""Sidecars on stdout: what was built, verified, found and cleaned; progress of a build on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from lazydelta.cli.streams import AlignedRows, is_terminal, write_json_lines, write_lines, write_told
from lazydelta.cli.text import human_bytes, one_line

if TYPE_CHECKING:
    from lazydelta.upkeep.build import BuildReport
    from lazydelta.upkeep.clean import CleanReport
    from lazydelta.upkeep.clean_plan import Removal
    from lazydelta.upkeep.show import DeltaSummary, FolderSummary, PartSummary, SidecarSummary
    from lazydelta.upkeep.verify import VerifyReport

_SHOW_HEADERS = (
    "version",
    "kind",
    "level",
    "rows",
    "removed",
    "row groups",
    "size",
    "from",
    "to",
    "file",
    "state",
)
# On a terminal what matters comes first: columns for which there is no room are left out from the end.
_TERMINAL_ORDER = (
    "version",
    "kind",
    "state",
    "rows",
    "size",
    "from",
    "to",
    "row groups",
    "level",
    "removed",
    "file",
)
_SHOW_RIGHT = {"version", "level", "rows", "removed", "row groups", "size"}
_CLEAN_HEADERS = ("size", "kind", "file", "reason")
Cells = tuple[str, ...]


def show_build(report: BuildReport, delta_files: Sequence[str], *, as_json: bool) -> None:
    """What was written, or why nothing was."""
    if as_json:
        write_json_lines([{**msgspec.structs.asdict(report), "delta_files": delta_files}])
        return
    lines = _build_lines(report, delta_files)
    write_told("\n".join(f"{label:<17} {one_line(text)}" for label, text in lines))


def show_verification(report: VerifyReport, *, as_json: bool) -> None:
    """What was compared, and every difference that is kept by name."""
    if as_json:
        write_json_lines([report])
        return
    write_told("\n".join(f"{label:<17} {one_line(text)}" for label, text in _verification_lines(report)))


def show_sidecars(summary: FolderSummary, *, as_json: bool) -> None:
    """Every sidecar with its parts, then delta files."""
    if not summary.sidecars and not summary.deltas:
        talk = f"there is no stats sidecar in {summary.folder}; `lazydelta sidecar build` writes one"
        print(one_line(talk), file=sys.stderr)
    if as_json:
        write_json_lines([*summary.sidecars, *summary.deltas])
    elif is_terminal():
        places = [_SHOW_HEADERS.index(name) for name in _TERMINAL_ORDER]
        rows = [[row[at] for at in places] for row in _show_rows(summary, is_human=True)]
        AlignedRows(_TERMINAL_ORDER, right=_SHOW_RIGHT).write(rows)
    else:
        write_lines(map("\t".join, _show_rows(summary, is_human=False)))
    for count, what in (
        (summary.unreferenced_parts, "parts that no manifest names"),
        (summary.temporary_files, "temporary files of writers"),
        (summary.strangers, "files under names that are not a sidecar's"),
    ):
        if count:
            print(f"besides: {count:,} {what}", file=sys.stderr)


def show_clean(report: CleanReport, *, as_json: bool) -> None:
    """What went or would go; the summary is talk, so that the rows stay data."""
    if as_json:
        write_json_lines([report])
        return
    if is_terminal():
        rows = [_clean_cells(removal, human_bytes(removal.size_bytes)) for removal in report.removed]
        AlignedRows(_CLEAN_HEADERS, right={"size"}).write(rows)
    else:
        write_lines("\t".join(_clean_cells(removal, str(removal.size_bytes))) for removal in report.removed)
    verb = "would go" if report.is_dry_run else "went"
    kept = ", ".join(f"{version:,}" for version in report.versions_kept) or "none"
    gone = f"{_counted(len(report.removed), 'file')} {verb}, {human_bytes(report.bytes_removed)}"
    print(f"{gone}; sidecars kept: {kept}", file=sys.stderr)
    for name in report.strangers:
        print(one_line(f"not touched: {name} is not a sidecar's file"), file=sys.stderr)


def _build_lines(report: BuildReport, delta_files: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield "sidecar", f"version {report.version:,}, {report.kind}: {report.reason}"
    parts, groups = _counted(report.parts_total, "part"), _counted(report.num_row_groups, "row group")
    yield "files", f"{report.num_files:,} in {parts}, {groups}"
    written = f"{_counted(report.parts_written, 'part')} with {_counted(report.rows_written, 'row')}"
    yield "written", f"{written}; {human_bytes(report.bytes_written)}, manifest included"
    yield "referenced", f"{_counted(report.parts_referenced, 'part')} of earlier builds"
    for name in delta_files:
        yield "delta file", name
    yield "read", human_bytes(report.bytes_read)
    yield "time", f"{report.elapsed_ms / 1000:,.1f} s"


def _verification_lines(report: VerifyReport) -> Iterator[tuple[str, str]]:
    yield "table", f"{report.table}, sidecar of version {report.version:,}"
    yield (
        "files",
        f"{report.files_checked:,} live in the log, {report.rows_checked:,} live rows in the sidecar",
    )
    yield "parts", f"{report.parts_checked:,} with {_counted(report.row_groups_checked, 'row group')}"
    yield "delta files", f"{report.delta_files_checked:,}"
    for note in report.notes:
        yield "note", note
    for found in report.differences:
        yield found.kind, f"{found.path}: {found.what}"
    if report.is_ok:
        yield "result", "no difference"
    else:
        unnamed = report.differences_total - len(report.differences)
        yield (
            "result",
            _counted(report.differences_total, "difference")
            + (f", {unnamed:,} not shown" if unnamed else ""),
        )


def _show_rows(summary: FolderSummary, *, is_human: bool) -> Iterator[Cells]:
    for sidecar in summary.sidecars:
        yield _sidecar_cells(sidecar, is_human=is_human)
        for part in sidecar.parts:
            yield _part_cells(sidecar.version, part, is_human=is_human)
    for delta in summary.deltas:
        yield _delta_cells(delta, is_human=is_human)


def _sidecar_cells(sidecar: SidecarSummary, *, is_human: bool) -> Cells:
    return (
        str(sidecar.version),
        "sidecar",
        "",
        _number(sidecar.num_files, is_human=is_human),
        _number(sidecar.removed_rows, is_human=is_human),
        _number(sidecar.row_groups, is_human=is_human),
        _size(sidecar.size_bytes, is_human=is_human),
        one_line(sidecar.order_min or ""),
        one_line(sidecar.order_max or ""),
        sidecar.file,
        one_line("valid" if sidecar.is_valid else sidecar.problem or ""),
    )


def _part_cells(version: int, part: PartSummary, *, is_human: bool) -> Cells:
    return (
        str(version),
        "part",
        str(part.level),
        _number(part.rows, is_human=is_human),
        _number(part.removed_rows, is_human=is_human),
        _number(part.row_groups, is_human=is_human),
        _size(part.size_bytes, is_human=is_human),
        one_line(part.order_min or ""),
        one_line(part.order_max or ""),
        one_line(part.file),
        "new" if part.is_of_this_build else "referenced",
    )


def _delta_cells(delta: DeltaSummary, *, is_human: bool) -> Cells:
    size = _size(delta.size_bytes, is_human=is_human)
    state = one_line("valid" if delta.is_valid else delta.problem or "")
    rows = _number(delta.rows, is_human=is_human)
    first = "" if delta.after is None else str(delta.after + 1)
    return (str(delta.version), "delta", "", rows, "", "", size, first, str(delta.until), delta.file, state)


def _clean_cells(removal: Removal, size: str) -> Cells:
    return size, removal.kind, one_line(removal.name), one_line(removal.reason)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _number(value: int | None, *, is_human: bool) -> str:
    if value is None:
        return ""
    return f"{value:,}" if is_human else str(value)


def _size(value: int | None, *, is_human: bool) -> str:
    if value is None:
        return ""
    return human_bytes(value) if is_human else str(value)
