"""Missing, extra, twice, different: each is found, counted and named, and nothing else is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.upkeep.compare_rows import PART_COLUMN, compare_rows, differing_rows
from lazydelta.upkeep.findings import Findings
from tests.unit.sidecar.samples import layout_for

FIXED = [
    pa.field("path", pa.string()),
    pa.field("size", pa.int64()),
    pa.field("dv.storageType", pa.string()),
    pa.field("dv.pathOrInlineDv", pa.string()),
    pa.field("dv.offset", pa.int32()),
    pa.field("tags", pa.map_(pa.string(), pa.string())),
]
LEAST = layout_for({"value": "double"}).schema.field("min.value")
LOG = pa.schema([*FIXED, LEAST])
PARTS = ["part-0", "part-1"]


def log(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), LOG)


def part(*rows: dict[str, Any], value_type: pa.DataType | None = None) -> pa.Table:
    fields = [*FIXED, pa.field(PART_COLUMN, pa.int32())]
    if value_type is not None:
        fields.append(LEAST.with_name("stats.min.value").with_type(value_type))
    return pa.Table.from_pylist([{PART_COLUMN: 0} | row for row in rows], pa.schema(fields))


def found(log_rows: pa.Table, families: Sequence[pa.Table]) -> list[tuple[str, str, str]]:
    findings = Findings()
    compare_rows(log_rows, families, part_names=PARTS, findings=findings)
    assert findings.total == len(list(findings.named()))
    return [(one.kind, one.path, one.what) for one in findings.named()]


def test_equal_rows_in_another_order_are_no_difference() -> None:
    rows = [{"path": name, "size": 1, "tags": [("a", "1"), ("b", None)]} for name in "abc"]
    assert found(log(*rows), [part(*reversed(rows))]) == []


def test_nothing_on_either_side_is_no_difference() -> None:
    assert found(log(), []) == []
    assert found(log(), [part()]) == []


def test_a_missing_and_an_extra_file_are_named() -> None:
    assert found(log({"path": "a"}, {"path": "b"}), [part({"path": "b"}, {"path": "c"})]) == [
        ("missing", "a", "is live in the log and not in the sidecar"),
        ("extra", "c", "is in part-0 and not live in the log"),
    ]


def test_a_file_that_is_twice_is_named_with_its_parts_even_across_schemas() -> None:
    families = [
        part({"path": "a"}, {"path": "b"}),
        part({"path": "a", PART_COLUMN: 1}, value_type=pa.float64()),
    ]
    assert found(log({"path": "a"}, {"path": "b"}), families) == [
        ("twice", "a", "is in the sidecar 2 times: in part-0, part-1")
    ]


def test_the_deletion_vector_is_part_of_the_key_and_offset_0_is_not_none() -> None:
    vector = {"dv.storageType": "u", "dv.pathOrInlineDv": "xyz"}
    with_offset = {"path": "a", **vector, "dv.offset": 0}
    assert found(log({"path": "a"}, with_offset), [part(with_offset, {"path": "a"})]) == []
    kinds = {kind for kind, _, _ in found(log(with_offset), [part({"path": "a", **vector})])}
    assert kinds == {"missing", "extra"}


def test_a_differing_column_is_told_with_both_values_and_the_part() -> None:
    [(kind, path, what)] = found(log({"path": "a", "size": 5}), [part({"path": "a", "size": 6})])
    assert (kind, path, what) == ("differs", "a", "in part-0: size is 6 and in the log 5")


def test_null_differs_from_a_value() -> None:
    [(_, _, what)] = found(log({"path": "a", "size": 5}), [part({"path": "a"})])
    assert what == "in part-0: size is null and in the log 5"


def test_columns_pair_up_by_role_not_by_name_and_one_that_a_part_lacks_says_nothing() -> None:
    row = {"path": "a", "min.value": 1.5}
    assert found(log(row), [part({"path": "a"})]) == []
    family = part({"path": "a", "stats.min.value": 1.25}, value_type=pa.float64())
    assert "stats.min.value is 1.25 and in the log 1.5" in found(log(row), [family])[0][2]


def test_a_statistic_from_before_a_widening_is_compared_in_its_own_type() -> None:
    family = part({"path": "a", "stats.min.value": 0.1}, value_type=pa.float32())
    assert found(log({"path": "a", "min.value": 0.1}), [family]) == []
    assert found(log({"path": "a", "min.value": 0.2}), [family]) != []


def test_a_file_with_many_differing_columns_is_one_difference() -> None:
    family = part(
        {"path": "a", "size": 2, "stats.min.value": 2.0, "tags": [("k", "v")]}, value_type=pa.float64()
    )
    [(_, _, what)] = found(log({"path": "a", "size": 1, "min.value": 1.0}), [family])
    assert what.count(" and in the log ") == 3


def test_only_the_first_differences_are_named_and_all_are_counted() -> None:
    findings = Findings(named_max=3)
    compare_rows(log(*({"path": f"{n}"} for n in range(100))), [part()], part_names=PARTS, findings=findings)
    assert findings.counts == {"missing": 100}
    assert [one.path for one in findings.named()] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (pa.array([math.nan, 1.0, None]), pa.array([math.nan, 2.0, None]), [False, True, False]),
        (pa.array([None, "a", "a"]), pa.array(["a", None, "a"]), [True, True, False]),
        (pa.nulls(2), pa.nulls(2), [False, False]),
        (pa.array([], pa.int64()), pa.array([], pa.int64()), []),
    ],
)
def test_values_are_compared_row_by_row(left: pa.Array, right: pa.Array, expected: list[bool]) -> None:
    assert differing_rows(left, right).tolist() == expected


def test_maps_are_equal_whatever_their_order_and_wherever_they_are_cut() -> None:
    kind = pa.map_(pa.string(), pa.string())
    left = pa.array(
        [None, [("z", "z")], [("a", "1"), ("b", "2")], [("a", "1")], [("a", None)], None, [], [("a", "1")]],
        kind,
    )
    right = pa.array(
        [None, [("q", "q")], [("b", "2"), ("a", "1")], [("a", "2")], [("a", None)], [], [], [("b", "1")]],
        kind,
    )
    expected = [False, True, False, True, False, True, False, True]
    assert differing_rows(left, right).tolist() == expected
    assert differing_rows(left.slice(2, 4), right.slice(2, 4)).tolist() == expected[2:6]
