"""A float column that became a double: the same answers with the sidecar and without, and nothing to verify.

The texts are those of writers: the digits of the float, the double that it is, and the nine digits that Java
wrote before version 19.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.verify import verify_sidecar
from tests.support import actions
from tests.support.actions import add
from tests.support.keys import Action
from tests.support.sidecar_damage import storage_of
from tests.support.table_builder import TableBuilder

TEXTS = ["0.1", "0.10000000149011612", "4.44868507E18", "7.0"]
EXACT = 0.10000000149011612
WIDENED = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
ORDERED = SidecarConfig(time_column="c")


def file_of(name: str, text: str) -> Action:
    bounds = f'{{"c":{text}}}'
    stats = f'{{"numRecords":1,"minValues":{bounds},"maxValues":{bounds},"nullCount":{{"c":0}}}}'
    return add(name, partition={}, stats=stats)


@pytest.fixture(params=["widened since", "built anew", "built upon"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> TableBuilder:
    """Files of a float column with a sidecar, then the column was widened."""
    table = TableBuilder(
        tmp_path,
        schema={"c": "float"},
        partition_columns=[],
        protocol=actions.protocol(["deletionVectors", "v2Checkpoint", "typeWidening"]),
    )
    table.commit(adds=[file_of(f"f{number}", text) for number, text in enumerate(TEXTS)]).checkpoint()
    build_sidecar(storage_of(table), config=ORDERED)
    field = {"name": "c", "type": "double", "nullable": True, "metadata": WIDENED}
    schema = json.dumps({"type": "struct", "fields": [field]})
    table.commit(metadata=actions.metadata(schema, partition_columns=[]))
    if request.param != "widened since":
        table.commit(adds=[file_of("g", "0.123456789012")]).checkpoint()
        build_sidecar(storage_of(table), config=ORDERED, full=request.param == "built anew")
    return table


def opened(table: TableBuilder, *, sidecar: bool) -> ld.Table:
    options = {"delta.sidecar.enabled": str(sidecar).lower(), "delta.cache.bytes": "0"}
    return ld.open(table.path, storage_options=options)


def told(table: TableBuilder, *, sidecar: bool) -> list[dict[str, Any]]:
    paths = ["f0", "f1", "f3"]
    rows: list[dict[str, Any]] = opened(table, sidecar=sidecar).get_stats_for_files(paths, ["c"]).to_pylist()
    return rows


def test_the_bounds_are_the_outer_readings_with_the_sidecar_and_without(table: TableBuilder) -> None:
    rows = told(table, sidecar=True)
    assert rows == told(table, sidecar=False)
    assert [(row["min.c"], row["max.c"]) for row in rows] == [(0.1, EXACT), (0.1, EXACT), (7.0, 7.0)]


@pytest.mark.parametrize(
    ("literal", "kept"),
    [
        (0.1, {"f0", "f1"}),
        (EXACT, {"f0", "f1"}),
        (0.1000001, set()),
        (7.0, {"f3"}),
        (4.448685e18, {"f2"}),
        (4.44868507e18, {"f2"}),
        (4448685070372241408.0, {"f2"}),
    ],
)
def test_a_filter_keeps_the_same_files_with_the_sidecar_and_without(
    table: TableBuilder, literal: float, kept: set[str]
) -> None:
    for sidecar in (True, False):
        files = opened(table, sidecar=sidecar).scan(ld.col("c") == literal).files()
        assert {file.path for file in files} == kept, sidecar


def test_a_bound_that_every_writer_spells_alike_rules_out_up_to_itself(table: TableBuilder) -> None:
    for sidecar in (True, False):
        below = opened(table, sidecar=sidecar).scan(ld.col("c") < 7.0).files()
        assert {file.path for file in below} - {"g"} == {"f0", "f1"}, sidecar


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_order_is_by_the_same_values(table: TableBuilder, order: str) -> None:
    files = [file.path for file in opened(table, sidecar=True).scan(order=order).files() if file.path != "g"]
    by_value = ["f0", "f1", "f3", "f2"]
    assert files == (by_value if order == "asc" else by_value[::-1])


def test_an_undamaged_sidecar_passes_verification(table: TableBuilder) -> None:
    report = verify_sidecar(storage_of(table), config=ORDERED)
    assert report.differences == ()
