"""SQL over tables: the answers, what reaches the scan, how it ends."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import CorruptDataError, InvalidRequestError, LazyDeltaError
from tests.support.row_tables import all_readings, eventually, readings_table

READINGS = all_readings()
# Of Arrow, for the whole process: they are started when there is work for one more of them, and stay.
POOL_THREADS = pa.cpu_count() + pa.io_thread_count()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("sql"))


@pytest.fixture(scope="module")
def table(url: str) -> ld.Table:
    return ld.open(url)


def test_the_table_is_called_t_and_this(table: ld.Table) -> None:
    assert table.sql("select count(*) from t").fetchall() == [(240,)]
    assert table.sql("select count(*) from this").fetchall() == [(240,)]


def test_filters_and_aggregates_agree_with_python(table: ld.Table) -> None:
    found = table.sql(
        "select device, count(*), max(value) from t "
        "where value >= 3 and _event_hour > '2026021002' group by device"
    ).fetchall()
    kept = [row for row in READINGS if row["value"] >= 3 and row["_event_hour"] > "2026021002"]
    devices = {row["device"] for row in kept}
    assert set(found) == {
        (
            device,
            sum(row["device"] == device for row in kept),
            max(row["value"] for row in kept if row["device"] == device),
        )
        for device in devices
    }


def test_tables_are_joined_whether_given_open_or_by_address(table: ld.Table, url: str) -> None:
    query = "select count(*) from a join b on a.id = b.id + 1 where b.value > 5"
    expected = sum(READINGS[id_]["value"] > 5 for id_ in range(239))
    assert ld.sql(query, a=table, b=url).fetchall() == [(expected,)]
    assert ld.sql(query, a=Path(url), b=table.scan()).fetchall() == [(expected,)]


def test_a_scan_brings_its_own_filter_and_limit(table: ld.Table) -> None:
    assert ld.sql("select count(*) from s", s=table.scan("id < 10")).fetchall() == [(10,)]
    assert ld.sql("select count(*) from s", s=table.scan(limit=7)).fetchall() == [(7,)]


def test_parameters_are_bound(table: ld.Table) -> None:
    assert table.sql("select id from t where id = ?", parameters=[17]).fetchall() == [(17,)]
    assert table.sql("select id from t where id = $id", parameters={"id": 18}).fetchall() == [(18,)]


def test_results_come_as_arrow_pandas_polars_and_batches(table: ld.Table) -> None:
    query = "select id, value from t order by id"
    ids = list(range(240))
    assert table.sql(query).read_all()["id"].to_pylist() == ids
    assert table.sql(query).arrow().read_all()["id"].to_pylist() == ids
    assert table.sql(query).fetch_record_batch().read_all()["id"].to_pylist() == ids
    assert pa.table(table.sql(query))["id"].to_pylist() == ids
    assert table.sql(query).df()["id"].tolist() == ids
    assert table.sql(query).pl()["id"].to_list() == ids
    assert [id_ for batch in table.sql(query) for id_ in batch["id"].to_pylist()] == ids
    assert table.sql(query).fetchone() == (0, 0.0)
    assert table.sql(f"select id from ({query}) where id < 0").fetchone() is None
    assert table.sql(query).columns == ["id", "value"]
    told = "<lazydelta.SqlResult of (id: int64, value: double), 0 batches handed out>"
    assert repr(table.sql(query)) == told


def test_columns_of_one_name_get_names_of_their_own(table: ld.Table) -> None:
    found = table.sql("select a.id, b.id, a.id + 1 as id from t a join t b using (id) order by 1").read_all()
    assert len(set(found.schema.names)) == 3
    assert [column[5].as_py() for column in found.columns] == [5, 5, 6]


def test_an_answer_without_rows_has_its_columns(table: ld.Table) -> None:
    found = table.sql("select id, value from t where id < 0").read_all()
    assert found.num_rows == 0
    assert found.schema == pa.schema([("id", pa.int64()), ("value", pa.float64())])


def test_the_query_runs_when_its_first_batch_is_asked_for(url: str) -> None:
    scan = ld.open(url).scan()
    found = ld.sql("select * from s", s=scan)
    before = scan.source.snapshot.storage.counters.snapshot().requests
    assert found.schema.names == ["id", "_event_hour", "value", "device"]
    assert scan.source.snapshot.storage.counters.snapshot().requests == before
    assert found.has_next()
    assert scan.source.snapshot.storage.counters.snapshot().requests > before
    found.close()


@pytest.mark.parametrize(
    ("query", "what", "where"),
    [
        ("select a frm t", "does not parse", "line 1, column 14"),
        ("select id\nfrom t\nwhere id ==== 3 x", "does not parse", "line 3, column"),
        ("select * from nowhere", "nowhere", "nowhere"),
        ("select valu from t", "valu", "select valu"),
        ("select cast(device as integer) from t", "convert", "column 8"),
    ],
)
def test_a_wrong_query_is_a_wrong_request_that_shows_the_place(
    table: ld.Table, query: str, what: str, where: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        table.sql(query).fetchall()
    assert what in caught.value.what
    assert where in caught.value.where


def test_an_unknown_column_comes_with_a_hint(table: ld.Table) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        table.sql("select valu from t")
    assert '"value"' in caught.value.fix


@pytest.mark.parametrize("query", ["", " ;", None, 3])
def test_a_query_that_says_nothing_is_refused(table: ld.Table, query: str) -> None:
    with pytest.raises(InvalidRequestError, match="the query is"):
        table.sql(query)


@pytest.mark.parametrize(("module", "extra"), [("duckdb", "sql"), ("polars", "polars"), ("pandas", "pandas")])
def test_a_library_that_is_missing_is_named_with_its_extra(
    table: ld.Table, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidRequestError, match=f"{module} is not installed") as caught:
        found = table.sql("select 1 as x")
        _ = found.pl() if module == "polars" else found.df()
    assert f"lazydelta[{extra}]" in caught.value.fix


def test_names_of_the_program_are_not_tables(table: ld.Table) -> None:
    stray = pa.table({"x": [1]})
    assert stray.num_rows == 1
    with pytest.raises(InvalidRequestError, match="stray"):
        table.sql("select * from stray")


def test_a_table_that_is_neither_table_nor_address_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="'a' is 3"):
        ld.sql("select 1 from a", a=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", ["much", "-1MB", 0, True, 1.5])
def test_a_memory_limit_that_is_no_size_is_refused(table: ld.Table, size: str) -> None:
    with pytest.raises(InvalidRequestError, match="memory_limit"):
        table.sql("select 1", memory_limit=size)


def test_a_query_that_cannot_spill_says_that_memory_is_short(table: ld.Table) -> None:
    with pytest.raises(LazyDeltaError, match="memory") as caught:
        table.sql("select list(range) from range(20000000)", memory_limit="20MB").fetchall()
    assert "memory_limit" in caught.value.fix


def test_damage_in_a_data_file_comes_out_as_it_was(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    victim = next(Path(url).glob("_event_hour=*/*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-40])
    with pytest.raises(CorruptDataError) as caught:
        ld.open(url).sql("select sum(id) from t").fetchall()
    assert victim.name in caught.value.where


def test_a_left_query_leaves_no_thread_behind(table: ld.Table) -> None:
    table.sql("select count(*) from t").fetchall()
    process = psutil.Process()  # Python's own list keeps the threads of others that once called it
    before = process.num_threads() + POOL_THREADS
    for _ in range(2 * POOL_THREADS):
        found = table.sql("select t.* from t, range(100000)")
        assert found.next() is not None
        del found
    assert eventually(lambda: process.num_threads() <= before)


@pytest.mark.parametrize(
    "many", [8, pytest.param(60, marks=pytest.mark.long("repeats what is done eight times by default"))]
)
@pytest.mark.parametrize("reader", ["lazydelta", "duckdb"])
def test_many_left_queries_take_no_more_than_a_few(
    table: ld.Table, reader: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lazydelta.limits.HANDOVER_BYTES_MIN", 0 if reader == "duckdb" else 2**40)
    process = psutil.Process()

    def leave(times: int) -> tuple[int, int, int]:
        for _ in range(times):
            found = table.sql("select a.*, b.device from t a join t b on a.id <> b.id")
            assert found.next() is not None
            del found
        gc.collect()
        return process.num_threads(), process.num_fds(), process.memory_info().rss

    threads, handles, rss = leave(5)
    assert eventually(lambda: leave(0)[0] <= threads)
    leave(many)
    assert eventually(lambda: leave(0)[0] <= threads + POOL_THREADS)
    assert eventually(lambda: leave(0)[1] <= handles)
    assert eventually(lambda: leave(0)[2] - rss < 24 * 2**20)


def test_closing_from_another_thread_ends_a_query_that_gives_nothing_yet() -> None:
    found = ld.sql("select sum(a.i * b.i) from range(1000000) a(i), range(1000000) b(i)")
    told: list[BaseException] = []

    def pull() -> None:
        try:
            found.next()
        except InvalidRequestError as error:
            told.append(error)

    thread = threading.Thread(target=pull)
    thread.start()
    used = psutil.Process().cpu_times().user
    assert eventually(lambda: psutil.Process().cpu_times().user > used + 0.2)  # the query works
    found.close()
    thread.join(120)
    assert not thread.is_alive()
    assert "closed" in str(told[0])


def test_leaving_the_program_with_open_results_is_clean(url: str) -> None:
    program = (
        "import sys, lazydelta as ld\n"
        "streamed = ld.open(sys.argv[1]).sql('select t.* from t, range(1000000)')\n"
        "connection = ld.connect({'r': sys.argv[1]})\n"
        "grouped = connection.sql('select device, id from r order by id')\n"
        "assert streamed.next().num_rows and grouped.next().num_rows\n"
    )
    command = [sys.executable, "-W", "error", "-c", program, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_does_not_fit_spills_and_is_cleaned_up(tmp_path: Path) -> None:
    # Each thread needs some memory that it cannot spill: as many as a machine has may need more than all.
    query = "set threads = 1; select i, count(*) as c from range(2000000) r(i) group by i order by i desc"
    with ld.sql(query, memory_limit="50MB", temp_directory=tmp_path) as found:
        first = found.next()
        assert first is not None and first["i"][0].as_py() == 1999999
        assert list(tmp_path.rglob("*.tmp")) != []
        assert 1 + sum(batch.num_rows for batch in found) > 1900000
    assert list(tmp_path.iterdir()) == []


def test_columns_and_filters_reach_the_scan(url: str) -> None:
    scan = ld.open(url).scan()
    everything = _bytes_read(scan, "select * from s")
    assert _bytes_read(scan, "select * from s where _event_hour = '2026021003'") < everything / 2


def test_rows_are_counted_by_the_log(url: str) -> None:
    scan = ld.open(url).scan()
    by_log = _bytes_read(scan, "select count(*) from s")
    assert by_log < _bytes_read(scan, "select count(id) from s") / 2
    assert ld.sql("select count(*) + 1 as n from s", s=scan).fetchall() == [(241,)]
    assert ld.sql("select count(*) from s where id < 100", s=scan).fetchall() == [(100,)]
    assert ld.sql("select count(*) from s where device like '%1'", s=scan).fetchall() == [(43,)]
    assert ld.sql("select count(*), count(device) from s", s=scan).fetchall() == [(240, 218)]
    assert ld.sql("select count(*) from (select distinct device from s)", s=scan).fetchall() == [(6,)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select * from s limit 10", 10),
        ("select id + 1 from s limit 10 offset 3", 10),
        ("select * from s where _event_hour >= '2026021004' limit 10", 10),
        ("select * from s where device like '%1' limit 10", 10),
        ("select * from (select * from s limit 30) where id >= 0 limit 100", 30),
        ("select * from s limit 0", 0),
        ("select count(*) from (select * from s limit 33)", 1),
        ("select * from s order by id limit 3", 3),
        ("(select * from s limit 2) union all (select * from s limit 3)", 5),
    ],
)
def test_limits_give_as_many_rows(url: str, query: str, rows: int) -> None:
    assert ld.sql(query, s=ld.open(url)).read_all().num_rows == rows


def test_a_limit_reaches_the_scan(url: str) -> None:
    scan = ld.open(url).scan()
    everything = _bytes_read(scan, "select * from s")
    assert _bytes_read(scan, "select * from s limit 3") < everything / 2
    assert _bytes_read(scan, "select * from s where _event_hour < '2026021004' limit 3") < everything / 2


def _bytes_read(scan: ld.Scan, query: str) -> int:
    counters = scan.source.snapshot.storage.counters
    before = counters.snapshot().bytes_read
    ld.sql(query, s=scan).read_all()
    return counters.snapshot().bytes_read - before


# --- connections ---------------------------------------------------------------


def test_a_connection_reads_the_newest_version_by_each_query(tmp_path: Path) -> None:
    url = str(tmp_path / "grows")
    write_deltalake(url, pa.table({"x": [1, 2]}))
    pinned = ld.open(url)
    with ld.connect({"grows": url, "pinned": pinned}) as connection:
        half = connection.sql("select * from grows")
        write_deltalake(url, pa.table({"x": [3]}), mode="append")
        assert connection.sql("select count(*) from grows").fetchall() == [(3,)]
        assert connection.sql("select count(*) from pinned").fetchall() == [(2,)]
        assert half.read_all().num_rows == 2


def test_a_connection_follows_a_schema_that_changes(tmp_path: Path) -> None:
    url = str(tmp_path / "widens")
    write_deltalake(url, pa.table({"x": [1]}))
    with ld.connect({"widens": url}) as connection:
        connection.sql("create view v as select * from widens").fetchall()
        write_deltalake(url, pa.table({"x": [2], "y": ["a"]}), mode="append", schema_mode="merge")
        found = connection.sql("select y from WIDENS order by x").fetchall()
        assert found == [(None,), ("a",)]
        assert connection.tables["widens"].names == ["x", "y"]


def test_macros_may_read_attached_tables(url: str) -> None:
    with ld.connect({"readings": url}) as connection:
        connection.sql("create macro newest(n) as table select id from readings where id >= n").fetchall()
        assert connection.sql("select min(id) from newest(7)").fetchall() == [(7,)]


def test_tables_and_views_of_one_query_are_there_for_the_next(url: str) -> None:
    with ld.connect({"readings": url}) as connection:
        connection.execute("create table few as select * from readings where id < 5").fetchall()
        connection.sql("create view twice as select id * 2 as id from readings").fetchall()
        assert connection.sql("select count(*) from few").fetchall() == [(5,)]
        assert connection.sql("select max(id) from twice").fetchall() == [(478,)]


def test_results_of_one_connection_do_not_disturb_each_other(url: str) -> None:
    with ld.connect({"readings": url}) as connection:
        first, second = (connection.sql("select id from readings order by id") for _ in range(2))
        assert first.next() == second.next()
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_tables_can_be_attached_and_detached(url: str) -> None:
    with ld.connect() as connection:
        connection.attach("readings", url)
        assert connection.sql("select count(*) from readings").fetchall() == [(240,)]
        connection.detach("readings")
        with pytest.raises(InvalidRequestError, match="readings"):
            connection.sql("select count(*) from readings")
        with pytest.raises(InvalidRequestError, match="no table 'readings'"):
            connection.detach("readings")


def test_a_closed_connection_says_so(url: str) -> None:
    connection = ld.connect({"readings": url})
    connection.close()
    connection.close()
    with pytest.raises(InvalidRequestError, match="closed"):
        connection.sql("select 1")


def test_a_table_that_is_not_there_is_told_at_connect(tmp_path: Path) -> None:
    with pytest.raises(ld.errors.TableNotFoundError):
        ld.connect({"gone": str(tmp_path / "gone")})
