"""Pages: one after the other they are the whole scan, whatever happens to the table in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import CorruptDataError, InvalidRequestError, VersionNotFoundError
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, remove, stats
from tests.support.cached import UNCACHED
from tests.support.deletion_vector_writer import inline_vector
from tests.support.reading import keys
from tests.support.row_tables import HOURS, ROWS_A_FILE, ROWS_A_GROUP, all_readings, readings_table, rows_of
from tests.support.table_builder import TableBuilder

LONG = pytest.mark.long("more sizes of a page, or a table without a checkpoint")
ORDERS = pytest.mark.parametrize("order", ["asc", "desc"])
SOURCES = ["commits", "checkpoint", "sidecar"]
FILTERS = [
    None,
    "value > 5",
    "_event_hour >= '2026021004'",
    "_event_hour = '2026021002' and value > 9",
    "device = 'sensor-3' and value < 4",
    "id < 0",
]
Rows = list[dict[str, Any]]


def made(folder: Path, source: str) -> str:
    at = None if source == "commits" else HOURS - 3
    return readings_table(folder, checkpoint_at=at, sidecar=source == "sidecar")


@pytest.fixture(scope="module", params=[pytest.param("commits", marks=LONG), *SOURCES[1:]])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    """The same files told by commits, by a checkpoint and a tail, by a sidecar and a tail."""
    return ld.open(made(tmp_path_factory.mktemp(request.param), request.param), storage_options=UNCACHED)


def paged(
    scan: Callable[[], ld.Scan], rows: int, *, between: Callable[[], Any] = lambda: None, **how: Any
) -> Rows:
    """All rows, page by page, each by a scan of its own."""
    found: Rows = []
    token: str | None = None
    while True:
        page = scan().page(rows, after=token, **how)
        assert page.rows.num_rows <= rows
        found += page.rows.to_pylist()
        token = page.next_token
        if token is None:
            return found
        assert page.rows.num_rows == rows
        between()


def paged_files(
    scan: Callable[[], ld.Scan], files: int, *, between: Callable[[], Any] = lambda: None, **how: Any
) -> list[ld.DeltaFile]:
    """The same of files."""
    found: list[ld.DeltaFile] = []
    token: str | None = None
    while True:
        page = scan().file_page(files, after=token, **how)
        found += page.files
        token = page.next_token
        if token is None:
            return found
        assert len(page.files) == files
        between()


@ORDERS
@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("rows", [pytest.param(9, marks=LONG), 50, pytest.param(1000, marks=LONG)])
def test_pagination_concatenated_pages_equal_the_unbounded_scan(
    table: ld.Table, where: str | None, order: str, rows: int
) -> None:
    assert paged(lambda: table.scan(where), rows, order=order) == rows_of(table.scan(where, order=order))


@ORDERS
def test_pages_of_one_row_are_the_whole_scan(table: ld.Table, order: str) -> None:
    where = "_event_hour >= '2026021002' and _event_hour <= '2026021003' and value > 5"
    assert paged(lambda: table.scan(where), 1, order=order) == rows_of(table.scan(where, order=order))


@ORDERS
@pytest.mark.parametrize("where", [None, "_event_hour >= '2026021004'", "_event_hour > '3'"])
@pytest.mark.parametrize("files", [pytest.param(1, marks=LONG), 3, pytest.param(100, marks=LONG)])
def test_pages_of_files_are_the_whole_scan(
    table: ld.Table, where: str | None, order: str, files: int
) -> None:
    whole = list(table.scan(where, order=order).files())
    assert paged_files(lambda: table.scan(where), files, order=order) == whole


def test_a_page_has_the_columns_asked_for_and_no_others(table: ld.Table) -> None:
    page = table.scan("value > 5").page(10, columns=["device", "_row_index", "id"])
    assert page.rows.schema == pa.schema(
        [("device", pa.string()), ("_row_index", pa.int64()), ("id", pa.int64())]
    )
    assert page.version == table.version
    plain = table.scan("value > 5").page(10)
    assert plain.rows.schema == table.schema
    assert plain.rows.column("id") == page.rows.column("id")


def test_an_empty_page_has_the_columns_and_no_token(table: ld.Table) -> None:
    page = table.scan("id < 0").page(5)
    assert (page.rows.num_rows, page.next_token, page.rows.schema) == (0, None, table.schema)


def test_the_last_page_has_no_token_where_the_log_can_tell(table: ld.Table) -> None:
    every = HOURS * ROWS_A_FILE
    assert table.scan().page(every).next_token is None
    assert table.scan().page(every - 1).next_token is not None
    assert table.scan().file_page(HOURS).next_token is None
    assert table.scan().file_page(HOURS - 1).next_token is not None


@ORDERS
def test_a_limit_counts_over_all_pages(table: ld.Table, order: str) -> None:
    whole = rows_of(table.scan(order=order))
    for limit in (1, 20, 25, 41):
        scan = table.scan(limit=limit)
        assert paged(lambda scan=scan: scan, 20, order=order) == whole[:limit]  # type: ignore[misc]
    files = list(table.scan(order=order).files())
    assert paged_files(lambda: table.scan(limit=5), 2, order=order) == files[:5]


def test_a_limit_of_none_is_an_empty_page(table: ld.Table) -> None:
    page, file_page = table.scan(limit=0).page(5), table.scan(limit=0).file_page(5)
    assert (page.rows.num_rows, page.next_token) == (0, None)
    assert (file_page.files, file_page.next_token) == ((), None)


@ORDERS
@pytest.mark.parametrize("where", [None, "device = 'sensor-3' and value < 4"])
@pytest.mark.parametrize("files_at_once", [1, pytest.param(2, marks=LONG), pytest.param(HOURS, marks=LONG)])
def test_pages_are_the_same_however_few_files_are_taken_at_once(
    table: ld.Table, monkeypatch: pytest.MonkeyPatch, order: str, where: str | None, files_at_once: int
) -> None:
    monkeypatch.setattr("lazydelta.limits.PAGE_FILES_AT_ONCE", files_at_once)
    assert paged(lambda: table.scan(where), 45, order=order) == rows_of(table.scan(where, order=order))


def test_the_order_of_the_scan_and_that_of_the_token_count_where_none_is_given(table: ld.Table) -> None:
    down = table.scan(order="desc")
    first = down.page(10)
    assert first.rows.to_pylist() == all_readings()[::-1][:10]
    second = table.scan().page(10, after=first.next_token)
    assert second.rows.to_pylist() == all_readings()[::-1][10:20]


# --- what happens in between --------------------------------------------------


def grow(folder: str) -> None:
    """One more file, one fewer."""
    hour = f"2026021{DeltaTable(folder).version() % 10}"
    rows = pa.Table.from_pylist([all_readings()[0] | {"id": -1, "_event_hour": hour}])
    write_deltalake(folder, rows, mode="append", partition_by=["_event_hour"])
    DeltaTable(folder).delete(f"id = {DeltaTable(folder).version() * 3}")


def build(folder: str, **config: Any) -> None:
    build_sidecar(open_storage(folder, Settings()), config=SidecarConfig(row_group_rows=2, **config))


@ORDERS
@pytest.mark.parametrize("source", SOURCES)
def test_commits_between_pages_do_not_exist_for_them(tmp_path: Path, source: str, order: str) -> None:
    folder = made(tmp_path, source)
    whole = rows_of(ld.open(folder).scan("value > 3", order=order))
    assert (
        paged(lambda: ld.open(folder).scan("value > 3"), 37, order=order, between=lambda: grow(folder))
        == whole
    )


@ORDERS
def test_the_source_may_change_between_pages(tmp_path: Path, order: str) -> None:
    folder = made(tmp_path, "commits")
    options = UNCACHED
    whole = rows_of(ld.open(folder).scan(order=order))
    files = list(ld.open(folder).scan(order=order).files())
    told: list[str] = []
    lazy = Path(folder) / "_delta_log" / "_lazy"
    changes: list[Callable[[], Any]] = [
        lambda: DeltaTable(folder).create_checkpoint(),
        lambda: build(folder),
        lambda: shutil.rmtree(lazy),
        lambda: build(folder, time_column="value"),  # another order than the pages have
        lambda: shutil.rmtree(lazy),
        lambda: None,
    ]
    rows: Rows = []
    seen: list[ld.DeltaFile] = []
    token = file_token = None
    for change in changes:
        scan = ld.open(folder, storage_options=options).scan()
        page = scan.page(41, after=token, order=order)
        told.append(scan.explain().source)
        file_page = scan.file_page(1, after=file_token, order=order)
        assert scan.explain().source == told[-1]
        rows += page.rows.to_pylist()
        seen += file_page.files
        token, file_token = page.next_token, file_page.next_token
        change()
    assert rows == whole
    assert told[:3] == ["none", "checkpoint 7", "sidecar 7 (manifest)"]
    assert told[4] == "checkpoint 7"
    assert seen == files[:6]


@ORDERS
def test_a_cached_table_gives_the_same_pages(tmp_path: Path, order: str) -> None:
    folder = made(tmp_path, "sidecar")
    opened = ld.open(folder)
    whole = rows_of(opened.scan(order=order))
    assert paged(lambda: ld.open(folder).scan(), 61, order=order, between=lambda: grow(folder)) == whole


# --- what a page reads ---------------------------------------------------------


@ORDERS
def test_a_page_reads_on_and_not_again(tmp_path: Path, order: str) -> None:
    folder = made(tmp_path, "sidecar")
    scan = ld.open(folder, storage_options=UNCACHED).scan()
    token = scan.page(3 * ROWS_A_FILE + 2 * ROWS_A_GROUP + 1, order=order).next_token
    scan.page(3, after=token, order=order)
    rows = scan.explain().rows
    assert rows is not None
    assert rows.files_opened <= 2, "the files before are not opened again"
    assert rows.row_groups_read <= 3, "the row groups before are not read again: two, and one ahead"


def wide_table(folder: Path, files: int) -> TableBuilder:
    """Ten files an hour, all at the checkpoint, in a sidecar with ten a row group and forty a part."""
    table = TableBuilder(
        folder, schema={"v": "long", "_event_hour": "string"}, partition_columns=["_event_hour"]
    )
    told = [
        add(f"part-{at:05}.parquet", partition={"_event_hour": f"20260210{at // 10:02}"}, stats=stats(5))
        for at in range(files)
    ]
    table.commit(told).checkpoint()
    storage = open_storage(str(folder), Settings())
    build_sidecar(storage, config=SidecarConfig(row_group_rows=10, row_groups_max=4))
    return table


@ORDERS
@pytest.mark.parametrize("at", [9, 10, 11, 55, 119, 180])
def test_a_page_of_files_seeks_in_the_sidecar(tmp_path: Path, order: str, at: int) -> None:
    table = wide_table(tmp_path, 200)
    scan = ld.open(str(table.path), storage_options=UNCACHED).scan()
    whole = list(scan.file_page(1000, order=order).files)
    assert len(whole) == 200
    token = scan.file_page(at, order=order).next_token
    page = scan.file_page(3, after=token, order=order)
    assert list(page.files) == whole[at : at + 3]
    report = scan.explain()
    assert report.row_groups_read <= 2
    assert report.parts_read <= 2


@ORDERS
def test_a_page_seeks_by_path_where_many_files_have_one_hour(tmp_path: Path, order: str) -> None:
    table = TableBuilder(
        tmp_path, schema={"v": "long", "_event_hour": "string"}, partition_columns=["_event_hour"]
    )
    told = [add(f"part-{at:05}.parquet", partition={"_event_hour": "2026021000"}) for at in range(120)]
    table.commit(told).checkpoint()
    build_sidecar(
        open_storage(str(tmp_path), Settings()), config=SidecarConfig(row_group_rows=10, row_groups_max=40)
    )
    scan = ld.open(str(tmp_path), storage_options=UNCACHED).scan()
    token = scan.file_page(75, order=order).next_token
    page = scan.file_page(4, after=token, order=order)
    expected = sorted((f"part-{at:05}.parquet" for at in range(120)), reverse=order == "desc")[75:79]
    assert [file.path for file in page.files] == expected
    assert scan.explain().row_groups_read <= 2


# --- deletion vectors, odd columns ---------------------------------------------


@ORDERS
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_deleted_rows_are_in_no_page(tmp_path: Path, order: str, rows: int) -> None:
    table = TableBuilder(tmp_path, schema={"id": "long"}, partition_columns=())
    gone = {0, 1, 19, 20, 21, 59}
    for name, first in (("a.parquet", 0), ("b.parquet", 60)):
        pq.write_table(pa.table({"id": range(first, first + 60)}), tmp_path / name, row_group_size=20)
    sizes = {name: (tmp_path / name).stat().st_size for name in ("a.parquet", "b.parquet")}
    plain = {name: add(name, partition={}, size=size, stats=stats(60)) for name, size in sizes.items()}
    table.commit(list(plain.values()))
    table.commit(
        [plain["a.parquet"] | {"deletionVector": inline_vector(gone)}],
        [remove("a.parquet")],
    )
    left = [id_ for id_ in range(120) if id_ not in gone]
    expected = left if order == "asc" else left[::-1]
    found = paged(lambda: ld.open(str(tmp_path)).scan(), rows, order=order)
    assert [row["id"] for row in found] == expected


def test_a_table_may_have_a_column_that_is_called_like_the_row_index(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    write_deltalake(folder, pa.table({"_row_index": pa.array([5, 3, 9, 1], pa.int64())}))
    found = paged(lambda: ld.open(folder).scan("_row_index > 1"), 1)
    assert [row["_row_index"] for row in found] == [5, 3, 9]


# --- what is refused -------------------------------------------------------------


def token_of(scan: ld.Scan, **how: Any) -> str:
    token = scan.page(5, **how).next_token
    assert token is not None
    return token


@pytest.mark.parametrize(
    ("where", "how"),
    [
        ("value > 4", {}),
        (None, {}),
        ("value > 5", {"order": "desc"}),
        ("value > 5", {"columns": ["id"]}),
    ],
)
def test_a_token_of_another_query_is_refused(table: ld.Table, where: str | None, how: dict[str, Any]) -> None:
    token = token_of(table.scan("value > 5"), order="asc")
    with pytest.raises(InvalidRequestError, match="another query"):
        table.scan(where).page(5, after=token, **how)


def test_a_token_of_another_time_zone_or_limit_is_refused(table: ld.Table) -> None:
    token = token_of(table.scan("value > 5"))
    for other in ({"time_zone": "Europe/Berlin"}, {"limit": 100}):
        with pytest.raises(InvalidRequestError, match="another query"):
            table.scan("value > 5", **other).page(5, after=token)


def test_a_token_of_rows_is_none_of_files_nor_the_other_way_round(table: ld.Table) -> None:
    with pytest.raises(InvalidRequestError, match="another query"):
        table.scan().file_page(5, after=token_of(table.scan()))
    with pytest.raises(InvalidRequestError, match="another query"):
        table.scan().page(5, after=table.scan().file_page(1).next_token)


def test_the_same_filter_in_other_words_is_the_same_query(table: ld.Table) -> None:
    token = token_of(table.scan("value > 5 AND id>=0"))
    page = table.scan("value>5   and id>=0").page(5, after=token)
    assert page.rows.num_rows == 5


@pytest.mark.parametrize("is_newer", [False, True])
def test_a_token_of_another_table_is_refused(table: ld.Table, tmp_path: Path, is_newer: bool) -> None:
    folder = readings_table(tmp_path, hours=HOURS + 1 if is_newer else 2)
    with pytest.raises(InvalidRequestError, match="another table") as told:
        table.scan().page(5, after=token_of(ld.open(folder).scan()))
    assert told.value.where == f"{table.url} @ {table.version}"


def test_text_that_is_no_token_is_refused(table: ld.Table) -> None:
    token = token_of(table.scan())
    for after in ("", "nonsense", token[:-1], token[::-1], 5):
        with pytest.raises(InvalidRequestError, match="page token"):
            table.scan().page(5, after=after)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [0, -1, 1.5, "5", None, True, limits.PAGE_COUNT_MAX + 1])
def test_a_number_of_rows_that_is_none_is_refused(table: ld.Table, rows: Any) -> None:
    with pytest.raises(InvalidRequestError, match="rows is"):
        table.scan().page(rows)
    with pytest.raises(InvalidRequestError, match="files is"):
        table.scan().file_page(rows)


def test_an_order_that_is_none_is_refused(table: ld.Table) -> None:
    with pytest.raises(InvalidRequestError, match="sideways"):
        table.scan().page(5, order="sideways")


def test_an_unknown_column_is_refused(table: ld.Table) -> None:
    with pytest.raises(InvalidRequestError, match="valeu"):
        table.scan().page(5, columns=["valeu"])


def test_a_version_that_is_cleaned_up_is_an_error_that_says_so(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, partition_columns=()).commit(adds=["a", "b", "c"])
    token = ld.open(str(tmp_path)).scan().file_page(1).next_token
    table.commit(adds=["d"]).checkpoint().clean_up(before=1)
    with pytest.raises(VersionNotFoundError, match="version 0"):
        ld.open(str(tmp_path)).scan().file_page(1, after=token)


def test_a_file_that_was_vacuumed_is_an_error_that_names_it(tmp_path: Path) -> None:
    folder = made(tmp_path, "commits")
    scan = ld.open(folder).scan()
    token = token_of(scan)
    for file in scan.files():
        (Path(folder) / file.path).unlink()
    with pytest.raises(CorruptDataError, match="is not there"):
        ld.open(folder).scan().page(5, after=token)


def numbered_table(folder: Path) -> TableBuilder:
    """Two files whose order by `id` is not that of their names."""
    table = TableBuilder(folder, schema={"id": "long"}, partition_columns=())
    told = []
    for name, first in (("b.parquet", 0), ("a.parquet", 10)):
        pq.write_table(pa.table({"id": range(first, first + 10)}), folder / name)
        about = stats(10, low={"id": first}, high={"id": first + 9})
        told.append(add(name, partition={}, size=(folder / name).stat().st_size, stats=about))
    return table.commit(told)


@ORDERS
def test_pages_by_a_statistic_go_on_without_the_sidecar_that_chose_it(tmp_path: Path, order: str) -> None:
    numbered_table(tmp_path).checkpoint()
    build(str(tmp_path), time_column="id")
    scan = ld.open(str(tmp_path), storage_options=UNCACHED).scan(order=order)
    first = scan.page(5)
    shutil.rmtree(tmp_path / "_delta_log" / "_lazy")
    rest = ld.open(str(tmp_path), storage_options=UNCACHED).scan(order=order).page(50, after=first.next_token)
    ids = [*first.rows.column("id").to_pylist(), *rest.rows.column("id").to_pylist()]
    assert ids == sorted(range(20), reverse=order == "desc")


def test_a_file_whose_place_was_lost_is_an_error_not_another_page(tmp_path: Path) -> None:
    table = numbered_table(tmp_path).checkpoint()
    build(str(tmp_path), time_column="id")
    token = token_of(ld.open(str(tmp_path), storage_options=UNCACHED).scan())
    shutil.rmtree(tmp_path / "_delta_log" / "_lazy")
    table.checkpoint(stats="none")  # tells nothing of the order that the pages have
    with pytest.raises(InvalidRequestError, match="not at its place"):
        ld.open(str(tmp_path), storage_options=UNCACHED).scan().page(5, after=token)


def test_where_a_key_is_set_tokens_are_signed(tmp_path: Path) -> None:
    folder = made(tmp_path, "commits")
    signed = {"delta.page.signing_key": "a secret"}
    token = token_of(ld.open(folder, storage_options=signed).scan())
    page = ld.open(folder, storage_options=signed).scan().page(5, after=token)
    assert [row["id"] for row in page.rows.to_pylist()] == [5, 6, 7, 8, 9]
    with pytest.raises(InvalidRequestError, match="signed"):
        ld.open(folder).scan().page(5, after=token)
    with pytest.raises(InvalidRequestError, match="not signed"):
        ld.open(folder, storage_options=signed).scan().page(5, after=token_of(ld.open(folder).scan()))


def test_explain_and_estimate_tell_of_the_page(table: ld.Table) -> None:
    scan = table.scan()
    token = scan.page(100).next_token
    scan.page(10, after=token)
    report = scan.explain()
    assert report.strategy == "ordered"
    assert report.rows is not None
    assert report.rows.rows_emitted == 11  # one to see whether there are more
    assert scan.estimate() is not None
    scan.file_page(2)
    assert scan.explain().rows is None
    assert keys(scan.files()) == keys(table.scan().files())
