"""Commits on stdout, newest first, each as soon as it is read."""

from __future__ import annotations

from collections.abc import Iterator

from lazydelta.cli.streams import AlignedRows, is_terminal, write_json_lines, write_lines
from lazydelta.cli.text import human_bytes, one_line
from lazydelta.log.history import CommitRecord

HEADERS = ("version", "timestamp", "operation", "size", "checkpoint", "engine", "user")
# Widths come from the first commit alone, so those that vary are given room.
_WIDTHS_MIN = {"operation": 12, "size": 8, "engine": 12}


def show_history(records: Iterator[CommitRecord], *, as_json: bool) -> None:
    """Write every commit as it comes."""
    if as_json:
        for record in records:
            write_json_lines([record])
    elif is_terminal():
        table = AlignedRows(HEADERS, right={"version", "size"}, whole={"timestamp"}, widths_min=_WIDTHS_MIN)
        for record in records:
            time = record.timestamp[:19].replace("T", " ")  # UTC, as everywhere
            table.write([_cells(record, time=time, size=human_bytes(record.size_bytes))])
    else:
        for record in records:
            write_lines(["\t".join(_cells(record, time=record.timestamp, size=str(record.size_bytes)))])


def _cells(record: CommitRecord, *, time: str, size: str) -> tuple[str, ...]:
    return (
        str(record.version),
        time,
        one_line(record.operation or ""),
        size,
        "yes" if record.has_checkpoint else "",
        one_line(record.engine or ""),
        one_line(record.user or ""),
    )
