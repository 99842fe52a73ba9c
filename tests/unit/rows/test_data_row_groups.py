"""Row groups left out by the statistics in a footer."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazydelta.predicate import matches
from lazydelta.protocol.actions import DeletionVector
from tests.support.data_files import DataFolder, field, struct
from tests.support.hypothesis_profile import examples

KINDS: dict[str, pa.DataType] = {
    "byte": pa.int8(),
    "long": pa.int32(),  # widened
    "double": pa.float32(),  # widened
    "float": pa.float32(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("ns"),
    "decimal(10,2)": pa.decimal128(9, 2),
    "decimal(25,3)": pa.decimal128(20, 3),
    "boolean": pa.bool_(),
}


def groups_left(folder: DataFolder, where: str, **facts: Any) -> list[int]:
    return [segment.row_group for segment in folder.loader(where=where).segments(folder.file(**facts))]


MAKERS: dict[str, Callable[[int], Any]] = {
    "byte": lambda n: n - 50,
    "long": lambda n: n - 50,
    "float": lambda n: (n - 50) / 2,
    "double": lambda n: (n - 50) / 2,
    "string": lambda n: f"{n:04d}",
    "date": lambda n: dt.date(1999, 12, 1) + dt.timedelta(n),
    "timestamp": lambda n: dt.datetime(1969, 12, 31, 23, 59, tzinfo=dt.UTC) + dt.timedelta(seconds=n),
    "timestamp_ntz": lambda n: dt.datetime(1969, 12, 31, 23, 59) + dt.timedelta(seconds=n),  # noqa: DTZ001
    "boolean": lambda n: n >= 50,
}


def value_of(kind: str, n: int) -> Any:
    """Values of a type in the order of `n`."""
    return MAKERS[kind](n) if kind in MAKERS else Decimal(n - 50) / 4


def sql(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return f"timestamp '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"date '{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_row_groups_whose_bounds_hold_the_value_are_left(tmp_path: Path, kind: str) -> None:
    folder = DataFolder(tmp_path, field("c", kind))
    values = [value_of(kind, n) for n in range(100)]
    folder.write(pa.table({"c": pa.array(values, KINDS[kind])}), row_group_size=25)
    if kind == "boolean":
        assert groups_left(folder, "c = false") == [0, 1]
        return
    assert groups_left(folder, f"c = {sql(values[60])}") == [2]
    assert groups_left(folder, f"c < {sql(values[25])}") == [0]
    # NaN is greatest, and bounds do not tell of it.
    assert groups_left(folder, f"c >= {sql(values[75])}") == (
        [0, 1, 2, 3] if "f" in kind or "dou" in kind else [3]
    )
    assert groups_left(folder, "c is null") == []


def test_a_column_that_the_file_lacks_is_null_in_every_row_group(tmp_path: Path) -> None:
    folder = DataFolder(
        tmp_path,
        field("c", "long"),
        field("s", struct(field("new", "long"))),
        field("t", struct(field("a", "long"))),
    )
    stored = {"x": list(range(4)), "s": [{"old": 1}] * 4}
    folder.write(pa.table(stored), row_group_size=2)
    for where in ("c = 1", "c <> 1", "s.new > 0", "t.a = 1", "not (c = 1)"):
        assert groups_left(folder, where) == []
    for where in ("c is null", "s.new is null", "s is null", "t is null or c = 1"):
        assert groups_left(folder, where) == [0, 1]


def test_partition_values_and_statistics_judge_together(tmp_path: Path) -> None:
    folder = DataFolder(
        tmp_path, field("p", "integer"), field("c", "long"), partition_columns=frozenset({"p"})
    )
    folder.write(pa.table({"c": list(range(4))}), row_group_size=2)
    assert groups_left(folder, "p = 1 or c = 3", partition_values={"p": "1"}) == [0, 1]
    assert groups_left(folder, "p = 1 or c = 3", partition_values={"p": "2"}) == [1]
    assert groups_left(folder, "p = 1 and c = 3", partition_values={"p": "1"}) == [1]


def test_with_a_deletion_vector_counts_of_nulls_speak_only_at_the_ends(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("c", "long"))
    folder.write(pa.table({"c": pa.array([None, None, None, 4, 5, 6], pa.int64())}), row_group_size=2)
    vector = DeletionVector("i", "", 0, 0)
    assert groups_left(folder, "c is not null", deletion_vector=vector) == [1, 2]
    assert groups_left(folder, "c is null", deletion_vector=vector) == [0, 1]


def test_first_rows_count_the_row_groups_that_were_left_out(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("c", "long"), metadata_columns=("_row_index",))
    file = folder.write(pa.table({"c": list(range(10))}), row_group_size=3)
    loader = folder.loader(where="c >= 7")
    (segment,) = [segment for segment in loader.segments(file) if segment.row_group == 2]
    assert segment.first_row == 6
    assert next(loader.load(segment)).column("_row_index").to_pylist() == [6, 7, 8]
    assert (loader.row_groups_seen, loader.row_groups_skipped) == (4, 2)


def test_without_statistics_nothing_is_left_out(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path, field("c", "long"))
    folder.write(pa.table({"c": list(range(4))}), row_group_size=2, write_statistics=False)
    assert groups_left(folder, "c = 100") == [0, 1]


FLOATS = [math.nan, -0.0, 0.0, 1.5, -math.inf, None]
TEXTS = ["", "a", "ab", "b" * 200, "\ud7ff", "\uffff", "\U0001f600", None]


@settings(max_examples=examples(25))
@given(st.integers(0, 2**32), st.sampled_from(["<", "<=", "=", "<>", ">", ">=", "in", "null"]), st.booleans())
def test_rows_are_the_same_with_and_without_leaving_row_groups_out(
    tmp_path_factory: pytest.TempPathFactory, seed: int, operator: str, negated: bool
) -> None:
    draw = random.Random(seed)
    folder = DataFolder(
        tmp_path_factory.mktemp("f"),
        field("f", "double"),
        field("s", struct(field("t", "string"))),
        field("n", "long"),
    )
    rows = 30
    table = pa.table(
        {
            "f": pa.array(draw.choices(FLOATS, k=rows), pa.float64()),
            "s": pa.array(
                [{"t": text} for text in draw.choices(TEXTS, k=rows)], pa.struct([("t", pa.string())])
            ),
            "n": pa.array(draw.choices([None, 1, 2, 3], k=rows), pa.int32()),
        }
    )
    file = folder.write(table, row_group_size=draw.randint(1, 5))
    column, literal = draw.choice(
        [("f", "1.5"), ("f", "0.0"), ("s.t", "'ab'"), ("s.t", "'\uffff'"), ("n", "2")]
    )
    where = {"in": f"{column} in ({literal})", "null": f"{column} is null"}.get(
        operator, f"{column} {operator} {literal}"
    )
    where = f"not ({where})" if negated else where
    pruned, whole = folder.loader(where=where), folder.loader()
    predicate = pruned._predicate
    kept, all_rows = (
        [
            row
            for segment in loader.segments(file)
            for batch in loader.load(segment)
            for row in batch.filter(matches(predicate, batch)).to_pylist()
        ]
        for loader in (pruned, whole)
    )
    assert repr(kept) == repr(all_rows)  # NaN is not itself
