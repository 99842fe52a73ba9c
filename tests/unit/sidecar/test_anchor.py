"""Anchors: what lies before one is left out, exactly, whatever the order goes by."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.log import DELETION_VECTOR_TYPE, RAW_PATH
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.sidecar.order.anchor import Anchor, dv_ids, from_anchor_on, plain_values, with_ties_in_order
from lazydelta.sidecar.order.sort_keys import key_at, sort_order
from lazydelta.sidecar.read.traversal import ORDER_VALUE, SortColumn, Traversal

VALUES: dict[str, list[Any]] = {
    "string": [None, "", "a", "ab", "b", "é", "\uffff", "\U0001f600"],
    "long": [None, -(2**63), -1, 0, 1, 2**63 - 1],
    "double": [None, math.nan, -math.inf, -0.0, 0.0, 0.1, math.inf],
    "float": [None, math.nan, -1.5, -0.0, 0.0, 2.5],
    "boolean": [None, False, True],
    "binary": [None, b"", b"\x00", b"a", b"\xff"],
    "date": [None, date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    "timestamp": [None, datetime(1969, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
    "timestamp_ntz": [None, datetime(1969, 1, 1), datetime(2026, 1, 1, 0, 0, 0, 1)],  # noqa: DTZ001
    "decimal(20,3)": [None, Decimal("-1.000"), Decimal("0.001"), Decimal("99999999999999999.999")],
}
VECTORS = [
    None,
    {"storage_type": "u", "path_or_inline_dv": "a", "offset": 1},
    {"storage_type": "i", "path_or_inline_dv": "b"},
]
PATHS = ["a", "b", "b%20", "é"]


def traversal_by(type_name: str | None, *, descending: bool) -> Traversal:
    if type_name is None:
        return Traversal(column=None, descending=descending)
    column = SortColumn(path=("c",), name="c", type=PrimitiveType(type_name), is_partition=True)
    return Traversal(column=column, descending=descending)


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.RecordBatch, Traversal]:
    """Files with any keys, none twice, in their order."""
    type_name = draw(st.sampled_from([None, *VALUES]))
    traversal = traversal_by(type_name, descending=draw(st.booleans()))
    values = st.sampled_from(VALUES[type_name]) if type_name else st.none()
    files = st.tuples(values, st.sampled_from(PATHS), st.sampled_from([0, 1, 2]))
    drawn = draw(st.lists(files, min_size=1, max_size=12, unique_by=lambda file: file[1:]))
    rows = pa.RecordBatch.from_pydict(
        {
            RAW_PATH: pa.array([path for _, path, _ in drawn], pa.string()),
            "deletion_vector": pa.array([VECTORS[at] for _, _, at in drawn], DELETION_VECTOR_TYPE),
        }
    )
    if type_name is not None:
        own = pa.array([value for value, _, _ in drawn], arrow_type(PrimitiveType(type_name)))
        rows = rows.append_column(ORDER_VALUE, own)
    rows = rows.take(sort_order(rows, traversal.keys, descending=traversal.descending))
    return with_ties_in_order(rows, traversal), traversal


def anchor_at(rows: pa.RecordBatch, row: int, traversal: Traversal, *, is_included: bool = False) -> Anchor:
    """The place of a row, as a token carries it there and back."""
    one, column = rows.slice(row, 1), traversal.column
    value = None if column is None else plain_values(one.column(ORDER_VALUE))[0]
    return Anchor(
        column=None if column is None else column.path,
        type_name=None if column is None else column.type.name,
        value=msgspec.msgpack.decode(msgspec.msgpack.encode(value)),
        raw_path=one.column(RAW_PATH)[0].as_py(),
        dv_id=dv_ids(one)[0],
        is_included=is_included,
    )


@given(cases(), st.booleans(), st.randoms(use_true_random=False))
def test_what_an_anchor_leaves_is_what_comes_behind_it(
    case: tuple[pa.RecordBatch, Traversal], is_included: bool, dice: Any
) -> None:
    rows, traversal = case
    for row in range(rows.num_rows):
        anchor = anchor_at(rows, row, traversal, is_included=is_included)
        left = from_anchor_on(rows, anchor, traversal)
        # As text: NaN is not equal to itself.
        assert str(left.to_pylist()) == str(rows.slice(row if is_included else row + 1).to_pylist())
        mixed = rows.take(pa.array(dice.sample(range(rows.num_rows), rows.num_rows)))
        assert from_anchor_on(mixed, anchor, traversal).num_rows == left.num_rows


@given(cases())
def test_an_anchor_compares_with_rows_as_its_own_row_does(case: tuple[pa.RecordBatch, Traversal]) -> None:
    rows, traversal = case
    for row in range(rows.num_rows):
        own = key_at(rows, row, traversal.keys, descending=traversal.descending)
        assert anchor_at(rows, row, traversal).key(traversal) == own


@given(cases())
def test_files_of_one_key_come_by_their_deletion_vectors(case: tuple[pa.RecordBatch, Traversal]) -> None:
    rows, traversal = case
    ids = dv_ids(rows)
    for row in range(1, rows.num_rows):
        keys = [key_at(rows, at, traversal.keys, descending=traversal.descending) for at in (row - 1, row)]
        assert keys[0] < keys[1] or (
            keys[0] == keys[1]
            and (ids[row - 1] > ids[row] if traversal.descending else ids[row - 1] < ids[row])
        )


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("long", "seven"),
        ("long", 2**63),
        ("date", "x"),
        ("decimal(20,3)", "x"),
        ("boolean", 7),
        ("string", 1),
    ],
)
def test_a_value_of_another_type_is_none(type_name: str, value: Any) -> None:
    anchor = Anchor(column=("c",), type_name=type_name, value=value, raw_path="a")
    with pytest.raises(ValueError, match="is no"):
        anchor.key(traversal_by(type_name, descending=False))
