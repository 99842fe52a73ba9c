"""Statistics of files on stdout, one line for each.

Contract: JSON has no NaN, no moments and no decimals: they are text there, as Delta's own statistics have
them; a moment that no calendar of Python's has is shown all the same.
"""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.cli.streams import AlignedRows, is_terminal, write_json_lines, write_lines
from lazydelta.cli.text import one_line
from lazydelta.scan.values import values_of

_LINES_AT_ONCE = 1024


def show_stats(stats: pa.RecordBatch, *, as_json: bool) -> None:
    """Write every row."""
    if as_json:
        columns = {name: _plain_values(stats.column(name)) for name in stats.schema.names}
        rows = zip(*columns.values(), strict=True)
        write_json_lines([dict(zip(columns, row, strict=True)) for row in rows])
        return
    # The path is the longest: on a terminal it comes last, where nothing has to line up with it.
    names = stats.schema.names
    shown = [*names[1:], names[0]] if is_terminal() else names
    lines = list(
        zip(*([_cell(value) for value in _plain_values(stats.column(name))] for name in shown), strict=True)
    )
    if is_terminal():
        AlignedRows(shown, right=set(shown) - {"path"}, needed={"path"}).write(lines)
        return
    for start in range(0, len(lines), _LINES_AT_ONCE):
        write_lines(map("\t".join, lines[start : start + _LINES_AT_ONCE]))


def _plain_values(column: pa.Array) -> list[Any]:  # Any: what JSON can hold
    """The values as JSON has them."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return list(pc.replace_substring(column.cast(pa.string()), " ", "T").to_pylist())
    if pa.types.is_decimal(column.type):
        return list(column.cast(pa.string()).to_pylist())
    values = values_of(column)
    if pa.types.is_floating(column.type):
        return [_number(value) for value in values]
    return values


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return one_line(value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value))
