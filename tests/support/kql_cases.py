"""The examples of Kusto's documentation, as data: what each query gives, and whether a run gives the same.

A case has `id` (page and number), `query`, `columns` (name and type, as Kusto's own parser tells them)
and `rows` (what the page shows), and, where we do not answer, `refused`: the operator or function that
the error names. Values are as JSON has them; a datetime, a timespan and a guid are text as Kusto prints
them. `ordered` rows come in order; `digits` is how many the page shows; `mended` tells what of a page's
table is not what its own query says; `left_out` why an example is none.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).resolve().parents[1] / "kql_cases"
Case = dict[str, Any]
Rows = list[list[Any]]
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DIGITS = 10


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, by its file and place."""
    return tuple(case for path in sorted(FOLDER.glob("*.json")) for case in topic_cases(path))


def cases() -> tuple[Case, ...]:
    """Those that are run: not left out."""
    return tuple(case for case in all_cases() if "left_out" not in case)


def answer(result: Any) -> tuple[list[list[str]], Rows]:
    """Columns and rows of a KqlResult, as a case has them (Any: a result, or what is shaped as one)."""
    columns = [[column.name, column.type] for column in result.columns]
    rows: Rows = []
    for batch in result:
        values = [_values(array, kind) for array, (_, kind) in zip(batch.columns, columns, strict=True)]
        rows.extend([list(row) for row in zip(*values, strict=True)] if values else [])
    return columns, rows


def differences(case: Case, columns: list[list[str]], rows: Rows) -> list[str]:
    """What is otherwise than the case says, in words."""
    found = []
    if columns != case["columns"]:
        found.append(f"columns are {columns}, not {case['columns']}")
        return found
    kinds = [kind for _, kind in columns]
    wanted = [list(row) for row in case["rows"]]
    if not case.get("ordered"):
        rows, wanted = sorted(rows, key=_order), sorted(wanted, key=_order)
    if len(rows) != len(wanted):
        found.append(f"{len(rows)} rows, not {len(wanted)}")
    for at, (row, expected) in enumerate(zip(rows, wanted, strict=False)):
        for (name, _), kind, got, want in zip(columns, kinds, row, expected, strict=True):
            if not same(
                _as_shown(got, case), _as_shown(want, case), kind, digits=case.get("digits", _DIGITS)
            ):
                found.append(f"row {at}, {name}: {got!r}, not {want!r}")
    return found


def same(got: Any, want: Any, kind: str, *, digits: int = _DIGITS) -> bool:
    """Whether two values are one, numbers to so many digits."""
    if isinstance(got, bool) or isinstance(want, bool) or got is None or want is None:
        return got is want
    if isinstance(want, int | float) and isinstance(got, int | float):
        return math.isclose(got, want, rel_tol=0.5 * 10 ** (1 - digits), abs_tol=1e-12)
    if isinstance(want, list) and isinstance(got, list):
        return len(got) == len(want) and all(same(a, b, kind) for a, b in zip(got, want, strict=True))
    if isinstance(want, dict) and isinstance(got, dict):
        return got.keys() == want.keys() and all(same(got[key], want[key], kind) for key in got)
    return bool(got == want)


def timespan_text(microseconds: int) -> str:
    """As Kusto prints it."""
    sign, rest = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    days, rest = divmod(rest, 86_400_000_000)
    hours, rest = divmod(rest, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    seconds, rest = divmod(rest, 1_000_000)
    text = f"{hours:02}:{minutes:02}:{seconds:02}" + (f".{rest * 10:07}" if rest else "")
    return sign + (f"{days}." if days else "") + text


def _as_shown(value: Any, case: Case) -> Any:
    """A page shows no blanks around a text; we keep datetimes to the microsecond, which `cut` tells."""
    if isinstance(value, str) and case.get("trimmed"):
        return value.strip()
    if isinstance(value, str) and case.get("cut") == "microseconds":
        return re.sub(r"(\.\d{6})\dZ$", r"\1Z", value)
    return value


def topic_cases(path: Path) -> list[Case]:
    """The cases of one file."""
    read: list[Case] = json.loads(path.read_text("utf-8"))
    return read


def _values(array: pa.Array, kind: str) -> list[Any]:
    if kind == "datetime":
        return [
            _datetime_text(value) for value in array.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        ]
    if kind == "timespan":
        return [
            None if value is None else timespan_text(value) for value in array.cast(pa.int64()).to_pylist()
        ]
    if kind == "dynamic":
        return [None if value is None else json.loads(value) for value in array.to_pylist()]
    if kind == "decimal":
        return [None if value is None else float(value) for value in array.to_pylist()]
    if kind == "real":
        return [_real(value) for value in array.to_pylist()]
    return array.to_pylist()


def _datetime_text(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    moment = _EPOCH + dt.timedelta(microseconds=microseconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}0Z".rjust(28, "0")


def _real(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _order(row: list[Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)
