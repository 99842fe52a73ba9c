"""A table as a pyarrow dataset, held against pyarrow's own dataset of the same rows in memory."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyarrow import acero

import lazydelta as ld
from lazydelta.engines.dataset import LazyDataset
from lazydelta.engines.fragment import LazyFragment
from lazydelta.engines.scanner import LazyScanner
from lazydelta.errors import InvalidRequestError
from tests.support.row_tables import HOURS, ROWS_A_FILE, all_readings, eventually, readings_table

FIELD = pc.field
FILTERS = [
    FIELD("id") < 10,
    (FIELD("value") > 5) & (FIELD("device") == "sensor-1"),
    ~(FIELD("value") > 5),
    FIELD("device").isin(["sensor-2", None]),
    ~FIELD("device").isin(["sensor-2"]),
    FIELD("_event_hour") == "2026021003",
    pc.starts_with(FIELD("device"), "sensor-3"),
    FIELD("id") * 2 - FIELD("id") > 200,
    FIELD("value").cast("int64", safe=False) == 3,
    FIELD("device").is_null() | (FIELD("id") >= 230),
    pc.field("id") > 1e9,
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("readings"))


@pytest.fixture(scope="module")
def dataset(url: str) -> LazyDataset:
    return ld.open(url).to_pyarrow_dataset()


@pytest.fixture(scope="module")
def twin(dataset: LazyDataset) -> pads.Dataset:
    """The same rows in the same order, without lazydelta's scanner."""
    rows = pa.Table.from_pylist(all_readings(), dataset.schema)
    places = dataset.scanner(["id"]).to_table()["id"]
    return pads.dataset(rows.take(places))


def test_every_method_of_pyarrows_dataset_is_overridden() -> None:
    names = {name for name in dir(pads.UnionDataset) if not name.startswith("__")} | {
        "__init__",
        "__reduce__",
    }
    assert names - vars(LazyDataset).keys() == set()
    assert {"scanner", "join_asof", "children", "_scan_options"} <= names  # pyarrow has them still


@pytest.mark.parametrize(
    ("native", "lazy"),
    [(pads.Scanner, LazyScanner), (pads.Fragment, LazyFragment)],
    ids=["scanner", "fragment"],
)
def test_what_stands_in_for_pyarrows_classes_has_their_methods(native: type, lazy: type) -> None:
    static = {name for name in dir(native) if isinstance(inspect.getattr_static(native, name), staticmethod)}
    names = {name for name in dir(native) if not name.startswith("_")} - static
    assert names - set(dir(lazy)) == set()
    assert not issubclass(lazy, native)


@pytest.mark.parametrize("keep", FILTERS, ids=str)
def test_a_filter_is_applied_exactly(dataset: LazyDataset, twin: pads.Dataset, keep: pc.Expression) -> None:
    expected = twin.to_table(filter=keep)
    assert dataset.to_table(filter=keep).equals(expected)
    assert dataset.count_rows(filter=keep) == twin.count_rows(filter=keep) == expected.num_rows
    assert pa.Table.from_batches(dataset.to_batches(filter=keep), dataset.schema).equals(expected)
    assert dataset.scanner(filter=keep).to_reader().read_all().equals(expected)
    assert dataset.head(3, filter=keep).equals(expected.slice(0, 3))
    assert dataset.filter(keep).to_table().equals(expected)
    assert dataset.filter(keep).count_rows(FIELD("id") > 20) == twin.filter(keep).count_rows(
        filter=FIELD("id") > 20
    )


@pytest.mark.parametrize(
    "columns",
    [
        None,
        ["device", "id"],
        ["id", "id"],
        [],
        {"double": FIELD("value") * 2, "one": pc.scalar(1), "id": FIELD("id")},
        {},
        {"two": pc.scalar(2)},
    ],
    ids=str,
)
def test_columns_are_chosen_and_computed_as_pyarrow_does(
    dataset: LazyDataset, twin: pads.Dataset, columns: list[str] | dict[str, pc.Expression] | None
) -> None:
    for keep in (None, FIELD("value") > 9, FIELD("id") < 9):
        expected = twin.to_table(columns=columns, filter=keep)
        found = dataset.to_table(columns=columns, filter=keep)
        assert found.schema.equals(expected.schema)
        assert found.num_rows == expected.num_rows
        assert found.to_pylist() == expected.to_pylist()
        assert dataset.scanner(columns, keep).projected_schema.equals(expected.schema)
        assert dataset.scanner(columns, keep).dataset_schema.equals(dataset.schema)


def test_a_column_that_comes_on_request_can_be_chosen_and_filtered_by(dataset: LazyDataset) -> None:
    rows = dataset.to_table(columns=["_row_index"])
    assert rows["_row_index"].to_pylist() == list(range(ROWS_A_FILE)) * HOURS
    kept = dataset.to_table(columns=["id", "_file_path"], filter=FIELD("_row_index") == 3)
    assert sorted(kept["id"].to_pylist()) == [hour * ROWS_A_FILE + 3 for hour in range(HOURS)]
    assert len(set(kept["_file_path"].to_pylist())) == HOURS


@pytest.mark.parametrize("places", [[0], [5, 3, 3, 200], [], pa.array([239, 0])])
def test_rows_are_taken_by_their_places(dataset: LazyDataset, twin: pads.Dataset, places: list[int]) -> None:
    assert dataset.take(pa.array(places, pa.int64())).equals(twin.take(pa.array(places, pa.int64())))
    keep = FIELD("value") > 1
    assert dataset.take(pa.array([4, 1]), filter=keep).equals(twin.take(pa.array([4, 1]), filter=keep))


def test_rows_that_are_not_there_cannot_be_taken(dataset: LazyDataset) -> None:
    with pytest.raises(InvalidRequestError, match="there is no row 240"):
        dataset.take([240])
    with pytest.raises(InvalidRequestError, match="there is no row -1"):
        dataset.take([-1])
    with pytest.raises(InvalidRequestError, match="num_rows is -1"):
        dataset.head(-1)


def test_batches_are_as_small_as_asked(dataset: LazyDataset) -> None:
    batches = list(dataset.to_batches(batch_size=4))
    assert max(batch.num_rows for batch in batches) <= 4
    assert sum(batch.num_rows for batch in batches) == HOURS * ROWS_A_FILE
    tagged = next(iter(dataset.scanner(batch_size=4).scan_batches()))
    assert tagged.record_batch.num_rows <= 4
    assert tagged.fragment is dataset


def test_options_that_tune_pyarrows_reading_are_taken(dataset: LazyDataset) -> None:
    scanner = dataset.scanner(
        ["id"],
        None,
        use_threads=False,
        batch_readahead=1,
        fragment_readahead=1,
        fragment_scan_options=None,
        cache_metadata=False,
        memory_pool=pa.default_memory_pool(),
    )
    assert scanner.count_rows() == HOURS * ROWS_A_FILE


def test_a_dataset_is_sorted_and_joined_in_memory(dataset: LazyDataset, twin: pads.Dataset) -> None:
    order = [("value", "descending"), ("id", "ascending")]
    assert dataset.sort_by(order).to_table().equals(twin.sort_by(order).to_table())
    names = pa.table({"device": ["sensor-1", "sensor-2"], "place": ["hall", "roof"]})
    for other in (pads.dataset(names), names):
        joined = dataset.join(other, "device", join_type="inner").to_table().sort_by("id")
        assert joined.equals(
            twin.join(pads.dataset(names), "device", join_type="inner").to_table().sort_by("id")
        )
    narrow = dataset.filter(FIELD("id") < 5)
    right = pa.table({"id": pa.array([0, 3]), "seen": pa.array(["a", "b"])})
    nearest = narrow.sort_by("id").to_table()
    expected = nearest.join_asof(right, "id", [], -10)
    found = narrow.join_asof(pads.dataset(right), "id", [], -10).to_table()
    assert found.sort_by("id").equals(expected.sort_by("id"))


def test_what_a_dataset_cannot_do_says_so(dataset: LazyDataset) -> None:
    with pytest.raises(InvalidRequestError, match="schema cannot be replaced"):
        dataset.replace_schema(pa.schema([("id", pa.int32())]))
    assert dataset.replace_schema(dataset.schema) is dataset
    assert dataset.children == []
    assert dataset.partition_expression.equals(pc.scalar(True))
    assert "version=7" in repr(dataset)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"columns": ["valu"]}, "did you mean value"),
        ({"columns": "value"}, "give a list of names"),
        ({"columns": ["value.x"]}, "no column 'value.x'"),
        ({"columns": {"x": "value"}}, "pyarrow.compute.Expression"),
        ({"columns": {"x": FIELD("device") + 1}}, "cannot be made"),
        ({"filter": FIELD("vale") == 1}, "did you mean value"),
        ({"filter": FIELD("value") == "x"}, "does not fit the table"),
        ({"filter": "value > 1"}, "give an expression"),
        ({"filter": FIELD("value") + 1}, "does not fit the table"),
    ],
    ids=str,
)
def test_a_scan_that_does_not_fit_is_refused_before_anything_is_read(
    dataset: LazyDataset, asked: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        dataset.scanner(**asked)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    "read",
    [
        lambda dataset: pads.Scanner.from_dataset(dataset).to_table(),
        lambda dataset: pads.Scanner.from_dataset(dataset).count_rows(),
        lambda dataset: pads.dataset([dataset, dataset]).to_table(),
        lambda dataset: pads.InMemoryDataset(pa.table({"id": [1]})).join(dataset, "id"),
        lambda dataset: acero.Declaration("scan", acero.ScanNodeOptions(dataset)).to_table(),
        lambda dataset: pads.UnionDataset.sort_by(dataset, "id"),
    ],
    ids=["scanner", "count", "union", "join", "acero", "sort"],
)
def test_pyarrows_own_functions_meet_an_error_not_the_end_of_the_process(
    dataset: LazyDataset, read: object
) -> None:
    with pytest.raises((InvalidRequestError, pa.ArrowException), match="past the dataset's own methods"):
        read(dataset)  # type: ignore[operator]


def test_a_copy_is_written_from_a_stream(dataset: LazyDataset, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="LazyScanner"):
        pads.write_dataset(dataset, tmp_path / "refused", format="parquet")
    pads.write_dataset(dataset.scanner(["id"]).to_reader(), tmp_path / "copy", format="parquet")
    assert sorted(pq.read_table(tmp_path / "copy")["id"].to_pylist()) == list(range(HOURS * ROWS_A_FILE))


def test_files_that_a_filter_rules_out_are_not_opened(tmp_path: Path) -> None:
    table = readings_table(tmp_path)
    for path in Path(table).glob("_event_hour=202602100[0-6]/*.parquet"):
        path.write_bytes(b"not parquet")
    dataset = ld.open(table).to_pyarrow_dataset()
    last = range(7 * ROWS_A_FILE, 8 * ROWS_A_FILE)
    for keep in (
        FIELD("_event_hour") == "2026021007",  # a partition value
        FIELD("id") >= 210,  # statistics
        (FIELD("id") >= 210) & (FIELD("id") * 2 > 0),  # the part that can be told
        FIELD("id").isin([210, *range(211, 240)]),
        pc.if_else(FIELD("id").is_valid(), FIELD("id").isin(list(last)), pa.scalar(None, pa.bool_())),
    ):
        assert dataset.to_table(filter=keep)["id"].to_pylist() == list(last)
        assert [fragment.count_rows() for fragment in dataset.get_fragments(keep)] == [ROWS_A_FILE]


def test_counting_all_rows_opens_no_file(tmp_path: Path) -> None:
    table = readings_table(tmp_path)
    DeltaTable(table).delete("id = 3")  # its file is written anew
    for path in Path(table).rglob("part-*.parquet"):
        path.write_bytes(b"not parquet")
    dataset = ld.open(table).to_pyarrow_dataset()
    assert dataset.count_rows() == HOURS * ROWS_A_FILE - 1
    assert dataset.to_table(columns=[]).num_rows == HOURS * ROWS_A_FILE - 1
    with pytest.raises(ld.errors.CorruptDataError):
        dataset.to_table(columns=["_row_index"])


def test_the_first_rows_take_no_more_than_their_file(tmp_path: Path) -> None:
    table = readings_table(tmp_path)
    dataset = ld.open(table).to_pyarrow_dataset()
    first = next(dataset.get_fragments())
    for path in Path(table).rglob("*.parquet"):
        if path.name not in first.path:
            path.write_bytes(b"not parquet")
    assert dataset.head(5).num_rows == 5
    assert dataset.head(5, filter=FIELD("id") >= 0).num_rows == 5


def test_fragments_are_the_files_and_can_be_read_alone(dataset: LazyDataset, twin: pads.Dataset) -> None:
    fragments = dataset.get_fragments()
    assert len(fragments) == HOURS
    files = list(fragments)
    assert len(fragments) == len(list(fragments)) == HOURS
    assert pa.concat_tables([file.to_table() for file in files]).equals(twin.to_table())
    keep = FIELD("value") > 5
    assert sum(file.count_rows(keep) for file in files) == twin.count_rows(filter=keep)
    first = files[0]
    hour = pads.get_partition_keys(first.partition_expression)["_event_hour"]
    assert hour in first.path
    assert first.size > 0
    assert first.physical_schema.equals(dataset.schema)
    assert set(first.to_table(columns=["_event_hour"])["_event_hour"].to_pylist()) == {hour}
    assert first.head(2, columns=["id"]).equals(twin.head(2, columns=["id"]))
    assert first.take([3, 1]).equals(twin.take([3, 1]))
    assert first.to_table(pa.schema([("id", pa.int64())])).schema.names == ["id"]
    assert next(iter(first.to_batches(batch_size=2))).num_rows == 2
    assert first.scanner(columns=["id"]).projected_schema.names == ["id"]
    assert next(dataset.filter(FIELD("id") == 5).get_fragments()).to_table()["id"].to_pylist() == [5]
    assert isinstance(next(iter(pads.UnionDataset.get_fragments(dataset))), LazyFragment)


def test_datasets_and_files_are_told_apart_by_what_they_read(url: str) -> None:
    def tokens(*partitions: tuple[str, str, str], keep: pc.Expression | None = None) -> list[object]:
        dataset = ld.open(url).to_pyarrow_dataset(partitions=list(partitions))
        dataset = dataset if keep is None else dataset.filter(keep)
        return [each.__dask_tokenize__() for each in (dataset, *dataset.get_fragments())]

    assert tokens() == tokens()
    ways = [tokens(), tokens(("_event_hour", ">", "2026021001")), tokens(keep=FIELD("id") < 99)]
    every = [token for way in ways for token in way]
    assert len(set(every)) == len(every)


def test_readers_that_are_dropped_stop_their_threads(dataset: LazyDataset) -> None:
    def threads() -> int:
        return sum(thread.name.startswith("lazydelta-rows") for thread in threading.enumerate())

    assert eventually(lambda: threads() == 0)
    for _ in range(20):
        reader = dataset.scanner(batch_size=3).to_reader()
        reader.read_next_batch()
        batches = dataset.to_batches(batch_size=3)
        next(batches)
    del reader, batches
    assert eventually(lambda: threads() == 0)


def test_the_interpreter_ends_cleanly_with_readers_half_read(url: str) -> None:
    script = f"""
        import lazydelta as ld
        dataset = ld.open({url!r}).to_pyarrow_dataset()
        reader = dataset.scanner(batch_size=3).to_reader()
        batches = dataset.to_batches(batch_size=3)
        print(reader.read_next_batch().num_rows, next(batches).num_rows)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 3\n", "")
