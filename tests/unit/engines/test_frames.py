"""Tables as frames of Polars and pandas, and the example of the design documents."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from polars.testing import assert_frame_equal

import lazydelta as ld
from lazydelta.engines.polars_source import PolarsSource
from lazydelta.errors import CorruptDataError, InvalidRequestError
from tests.support.row_tables import HOURS, ROWS_A_FILE, all_readings, by_id, readings_table

COL = pl.col
POLARS_FILTERS = [
    COL("id") < 10,
    (COL("value") > 5) & (COL("device") == "sensor-1"),
    ~(COL("value") > 5),
    COL("device").is_in(["sensor-2"]),
    COL("device").is_in(["sensor-2", None], nulls_equal=True),
    ~COL("id").is_in([1, 2]),
    COL("id").is_between(3, 7, closed="left"),
    COL("device").str.starts_with("sensor-3"),
    COL("id") % 7 == 0,
    COL("device").is_null() | (COL("id") > 230),
    COL("value").cast(pl.Int64) == 3,
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    return ld.open(readings_table(tmp_path_factory.mktemp("readings")))


@pytest.fixture(scope="module")
def frame(table: ld.Table) -> pl.DataFrame:
    """The same rows in the scan's order, from Arrow."""
    frame = pl.from_arrow(table.to_arrow())
    assert isinstance(frame, pl.DataFrame)
    return frame


@pytest.fixture
def damaged(tmp_path: Path) -> ld.Table:
    """A table of which the last hour alone can be read."""
    url = readings_table(tmp_path)
    for path in Path(url).glob("_event_hour=202602100[0-6]/*.parquet"):
        path.write_bytes(b"not parquet")
    return ld.open(url)


@pytest.mark.parametrize("keep", POLARS_FILTERS, ids=str)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars_filters_give_the_rows_that_polars_gives(
    table: ld.Table, frame: pl.DataFrame, keep: pl.Expr, engine: str
) -> None:
    lazy = table.to_polars()
    found = lazy.filter(keep).select("id", "value").collect(engine=engine)
    assert_frame_equal(found, frame.filter(keep).select("id", "value"))
    assert lazy.filter(keep).select(pl.len()).collect(engine=engine).item() == frame.filter(keep).height


@pytest.mark.parametrize(
    "keep",
    [
        COL("value") == 109.22561189039709,
        COL("value") >= 109.22561189039709,
        COL("value") == pl.lit(109.22561189039709).cast(pl.Float64),
        COL("value").is_between(109.22561189039709, 109.22561189039709),
        COL("value").is_in([109.22561189039709]),
    ],
    ids=str,
)
def test_polars_filters_on_doubles_of_many_digits_keep_their_rows(tmp_path: Path, keep: pl.Expr) -> None:
    write_deltalake(tmp_path, pa.table({"value": [109.22561189039709]}))
    assert ld.open(tmp_path).to_polars().filter(keep).collect().height == 1


def test_polars_applies_filters_that_are_functions(table: ld.Table, frame: pl.DataFrame) -> None:
    keep = COL("id").map_elements({7, 17, 27}.__contains__, return_dtype=pl.Boolean)
    assert_frame_equal(table.to_polars().filter(keep).collect(), frame.filter(COL("id").is_in([7, 17, 27])))


def test_polars_plans_of_many_kinds_agree_with_the_frame_in_memory(
    table: ld.Table, frame: pl.DataFrame
) -> None:
    lazy, twin = table.to_polars(), frame.lazy()
    for query in (
        lambda rows: rows,
        lambda rows: rows.head(3),
        lambda rows: rows.head(0),
        lambda rows: rows.filter(COL("id") > 5).head(3),
        lambda rows: rows.head(50).filter(COL("value") > 5),
        lambda rows: rows.head(50).filter(COL("value") > 5).head(7).select("device"),
        lambda rows: rows.slice(10, 5),
        lambda rows: rows.tail(4),
        lambda rows: rows.select(pl.len()),
        lambda rows: rows.select(COL("value") * 2, pl.lit(1).alias("one")),
        lambda rows: rows.group_by("device").agg(COL("value").sum().round(6)).sort("device"),
        lambda rows: rows.join(rows.filter(COL("id") < 9), on="id").sort("id"),
        lambda rows: rows.sort("value", "id").limit(9),
        lambda rows: rows.with_columns(half=COL("value") / 2).filter(COL("half") > 2),
    ):
        assert_frame_equal(query(lazy).collect(), query(twin).collect())


def test_polars_filters_reach_files_and_columns(damaged: ld.Table) -> None:
    last = list(range(7 * ROWS_A_FILE, 8 * ROWS_A_FILE))
    for keep in (
        COL("_event_hour") == "2026021007",
        COL("id") >= 210,
        (COL("id") >= 210) & (COL("id") % 1 == 0),
        COL("id").is_between(210, 500),
        COL("id").is_in(last),
    ):
        found = damaged.to_polars().filter(keep).select("id").collect()
        assert found["id"].to_list() == last
    with pytest.raises(CorruptDataError, match="cannot be read"):
        damaged.to_polars().collect()


def test_polars_asks_for_few_rows_and_few_are_read(table: ld.Table) -> None:
    asked: list[tuple[list[str] | None, int | None]] = []

    class Watched(PolarsSource, frozen=True, eq=False):
        def batches(self, with_columns, predicate, n_rows, batch_size):  # type: ignore[no-untyped-def]
            asked.append((with_columns, n_rows))
            return super().batches(with_columns, predicate, n_rows, batch_size)

    source = Watched(table.scan().source, ("id", "device"))
    frame = pl.io.plugins.register_io_source(source.batches, schema=source.schema)
    assert frame.select("id").head(2).collect().height == 2
    assert asked == [(["id"], 2)]


def test_a_scan_becomes_a_frame_with_its_filter_limit_and_columns(table: ld.Table) -> None:
    scan = table.scan("value > 5", limit=7, order="asc")
    expected = scan.to_arrow(["id", "value"])
    lazy = scan.to_polars(["id", "value"])
    assert_frame_equal(lazy.collect(), pl.from_arrow(expected))
    assert lazy.filter(COL("value") > 8).collect().to_dicts() == [
        row for row in expected.to_pylist() if row["value"] > 8
    ]
    assert lazy.head(3).collect().height == 3
    assert lazy.head(100).collect().height == 7
    assert scan.to_pandas(["id", "value"]).to_dict("records") == expected.to_pylist()


def test_metadata_columns_come_on_request(table: ld.Table) -> None:
    lazy = table.to_polars(["id", "_row_index"])
    assert lazy.filter(COL("_row_index") == 0).collect().height == HOURS
    assert table.to_pandas(["_file_path"])["_file_path"].nunique() == HOURS


def test_pandas_gets_the_rows_of_the_partitions_asked_for(table: ld.Table) -> None:
    frame = table.to_pandas(
        partitions=[("_event_hour", "=", "2026021006")], columns=["device", "value", "id"]
    )
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["device", "value", "id"]
    rows = [row for row in all_readings() if row["_event_hour"] == "2026021006"]
    assert by_id(frame.to_dict("records")) == [
        {name: row[name] for name in ("device", "value", "id")} for row in rows
    ]
    typed = table.to_pandas(["id"], types_mapper={table.schema.field("id").type: pd.Int64Dtype()}.get)
    assert typed["id"].dtype == pd.Int64Dtype()


@pytest.mark.parametrize(
    ("partitions", "hours"),
    [
        ([("_event_hour", ">=", "2026021006")], {6, 7}),
        ([("_event_hour", "in", ["2026021001", "2026021003"])], {1, 3}),
        ([("_event_hour", "not in", ["2026021001"]), ("_event_hour", "<", "2026021003")], {0, 2}),
        ((("_event_hour", "!=", "2026021001"),), set(range(HOURS)) - {1}),
        ([], set(range(HOURS))),
        (None, set(range(HOURS))),
        ([("id", "<", 30)], {0}),
    ],
)
def test_partitions_narrow_every_way_of_reading(
    table: ld.Table, partitions: list[tuple[str, str, object]] | None, hours: set[int]
) -> None:
    wanted = {f"20260210{hour:02}" for hour in hours}
    assert set(table.to_arrow(partitions=partitions)["_event_hour"].to_pylist()) == wanted
    assert set(table.to_polars(partitions=partitions).collect()["_event_hour"]) == wanted
    dataset = table.to_pyarrow_dataset(partitions=partitions)
    assert set(dataset.to_table()["_event_hour"].to_pylist()) == wanted
    assert len(dataset.get_fragments()) == len(hours)
    assert dataset.count_rows() == len(hours) * ROWS_A_FILE


@pytest.mark.parametrize("partitions", ["_event_hour = 1", 7, [("_event_hour", "=")], [("hour", "=", "1")]])
def test_partitions_that_are_none_are_refused(table: ld.Table, partitions: object) -> None:
    with pytest.raises(InvalidRequestError):
        table.to_arrow(partitions=partitions)  # type: ignore[arg-type]  # that is the point


def test_a_library_that_is_not_installed_is_named(table: ld.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, read in (("polars", table.to_polars), ("pandas", table.to_pandas)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(InvalidRequestError, match=rf"lazydelta\[{name}\]"):
            read()


def test_the_python_example_of_the_design_documents_runs(
    table: ld.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    dt = ld.DeltaTable(table.url, storage_options={})

    for file_info in dt.file_infos(predicate="_event_hour >= '2026021006'"):
        print(f"File: {file_info.path}, Size: {file_info.size}")

    dataset = dt.to_pyarrow_dataset(
        partitions=[("_event_hour", ">=", "2026021006")],
    )
    rows = dataset.to_table(columns=["device", "value", "id"])
    print(f"Got {rows.num_rows} rows from {len(dataset.get_fragments())} files")

    df = dt.to_pandas(
        partitions=[("_event_hour", "=", "2026021007")],
        columns=["device", "value"],
    )

    printed = capsys.readouterr().out.splitlines()
    assert [line.startswith("File: _event_hour=202602100") for line in printed] == [True, True, False]
    assert printed[-1] == "Got 60 rows from 2 files"
    assert df.shape == (ROWS_A_FILE, 2)
    assert list(df.columns) == ["device", "value"]
