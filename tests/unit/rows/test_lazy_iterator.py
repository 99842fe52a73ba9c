"""LazyRecordBatchIterator: one pass, how it ends, and what it leaves behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import polars
import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import CorruptDataError, InvalidRequestError
from tests.support.row_tables import HOURS, ROWS_A_FILE, ROWS_A_GROUP, eventually, readings_table

TOTAL = HOURS * ROWS_A_FILE
LONG = pytest.mark.long("another way to the same end, which takes a process or many scans")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("readings"))


@pytest.fixture
def scan(url: str) -> ld.Scan:
    return ld.open(url).scan(order="asc")


def worker_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("lazydelta-rows")]


def open_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("lazy", [True, False])
def test_an_iterator_tells_where_it_is(scan: ld.Scan, lazy: bool) -> None:
    batches = scan.batches(["id"], lazy=lazy)
    groups = HOURS * -(-ROWS_A_FILE // ROWS_A_GROUP)
    assert batches.num_batches == (None if lazy else groups)
    assert batches.current_index == 0
    for index, batch in enumerate(batches):
        assert batch.schema == batches.schema == pa.schema([("id", pa.int64())])
        assert batches.current_index == index + 1
    assert batches.num_batches == batches.current_index == groups


def test_has_next_does_not_lose_a_batch(scan: ld.Scan) -> None:
    batches = scan.batches(["id"])
    ids = []
    while batches.has_next():
        assert batches.has_next()
        batch = batches.next()
        assert batch is not None
        ids += batch.column("id").to_pylist()
    assert ids == list(range(TOTAL))
    assert batches.next() is None
    assert not batches.has_next()


def test_a_second_pass_over_an_exhausted_iterator_raises(scan: ld.Scan) -> None:
    batches = scan.batches()
    assert sum(batch.num_rows for batch in batches) == TOTAL
    for again in (lambda: list(batches), batches.to_reader, batches.read_all, batches.__arrow_c_stream__):
        with pytest.raises(InvalidRequestError, match="read to their end"):
            again()
    assert next(batches, None) is None, "an iterator that ended stays ended"


def test_asking_whether_there_is_more_is_no_pass(url: str) -> None:
    batches = ld.open(url).scan("id < 0").batches()
    assert not batches.has_next()
    assert list(batches) == []
    assert batches.num_batches == 0


def test_a_pass_can_be_continued(scan: ld.Scan) -> None:
    batches = scan.batches(["id"])
    first = next(batches)
    rest = batches.read_all()
    assert first.num_rows + rest.num_rows == TOTAL


def test_nothing_is_read_before_the_first_pull(scan: ld.Scan) -> None:
    before = worker_threads()  # of other scans, which end by themselves
    batches = scan.batches()
    assert set(worker_threads()) <= set(before)
    assert batches.schema.names == ["id", "_event_hour", "value", "device"]
    assert scan.estimate().source == "the sizes of the log's files"


@pytest.mark.parametrize("ahead", [0, 2])
def test_pulling_after_close_raises_instead_of_looking_like_the_end(scan: ld.Scan, ahead: int) -> None:
    with scan.batches(prefetch_size=ahead) as batches:
        next(batches)
    for pull in (batches.next, batches.has_next, lambda: next(batches)):
        with pytest.raises(InvalidRequestError, match="closed before its end"):
            pull()
    batches.close()


def test_closing_from_another_thread_ends_a_consumer_that_waits(scan: ld.Scan) -> None:
    batches = scan.batches()
    next(batches)
    closer = threading.Thread(target=batches.close)
    closer.start()
    closer.join()
    with pytest.raises(InvalidRequestError, match="closed"):
        list(batches)


def test_threads_that_share_an_iterator_get_every_batch_once(scan: ld.Scan) -> None:
    expected = sorted(row["id"] for row in scan.to_arrow(["id"]).to_pylist())
    batches = scan.batches(["id"])
    found: list[int] = []

    def consume() -> None:
        while batches.has_next():
            batch = batches.next()
            if batch is not None:
                found.extend(batch.column("id").to_pylist())

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == expected


def test_a_forked_child_is_told_instead_of_waiting_for_threads_it_has_not(url: str) -> None:
    code = """
        import os, sys, warnings
        import lazydelta as ld
        from lazydelta.errors import InvalidRequestError
        warnings.simplefilter("ignore")
        batches = ld.open(sys.argv[1]).scan().batches()
        next(batches)
        child = os.fork()
        if child == 0:
            try:
                next(batches)
            except InvalidRequestError as error:
                os._exit(7 if "forked" in error.what else 1)
            os._exit(2)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), url], check=False, timeout=300, capture_output=True
    )
    assert done.returncode == 7, done.stderr


def test_an_error_is_raised_again_not_taken_for_the_end(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    for path in Path(url).glob("_event_hour=2026021003/*.parquet"):
        path.write_bytes(b"PAR1")
    batches = ld.open(url).scan(order="asc").batches(["id"])
    seen = 0
    with pytest.raises(CorruptDataError, match="version 7"):
        for batch in batches:
            seen += batch.num_rows
    assert seen == 3 * ROWS_A_FILE, "what comes before the damage comes out"
    with pytest.raises(CorruptDataError):
        next(batches)
    assert batches.num_batches is None
    assert eventually(lambda: worker_threads() == [])


def test_a_limit_reads_no_file_past_it(url: str, tmp_path: Path) -> None:
    scan = ld.open(url).scan(order="asc", limit=ROWS_A_FILE + 1)
    assert sum(batch.num_rows for batch in scan.batches(prefetch_size=8)) == ROWS_A_FILE + 1
    told = scan.explain().rows
    assert told is not None
    assert told.files_opened == 2
    assert told.limit_ends_traversal


def test_a_limit_of_few_rows_reads_one_row_group(url: str) -> None:
    scan = ld.open(url).scan("value >= 0", order="asc", limit=3)
    assert len(scan.to_arrow()) == 3
    told = scan.explain().rows
    assert told is not None
    assert (told.files_opened, told.row_groups_read) == (1, 1)
    assert not told.limit_ends_traversal


def test_explain_tells_rows_read_and_dropped(url: str) -> None:
    scan = ld.open(url).scan("value > 5 and _event_hour > '2026021001'")
    found = scan.to_arrow(["id"])
    report = scan.explain()
    assert report.rows is not None
    assert report.rows.is_finished
    assert report.rows.rows_emitted == len(found)
    assert report.rows.rows_read - report.rows.rows_filtered == len(found)
    assert report.rows.files_opened == report.files_emitted == HOURS - 2
    assert report.rows.bytes_read > 0
    assert report.rows.time_to_first_row_ms is not None
    assert f"{len(found)} emitted of {report.rows.rows_read} read" in str(report)
    list(scan.files())
    assert scan.explain().rows is None, "the latest run was one of files"


def test_the_seed_s_names_are_there() -> None:
    for name in ("next", "has_next", "num_batches", "current_index"):
        assert hasattr(ld.LazyRecordBatchIterator, name)


def test_it_is_an_arrow_stream(scan: ld.Scan) -> None:
    assert pa.table(scan.batches(["id"])).column("id").to_pylist() == list(range(TOTAL))
    reader = pa.RecordBatchReader.from_stream(scan.batches(["id"]))
    assert reader.read_all().num_rows == TOTAL
    assert scan.batches(["id"]).to_reader().read_all().num_rows == TOTAL
    assert polars.DataFrame(scan.batches(["id"]))["id"].to_list() == list(range(TOTAL))


@pytest.mark.parametrize("size", [-1, 1.5, "2", True, None, 65])
def test_a_prefetch_size_that_is_none_is_refused(scan: ld.Scan, size: object) -> None:
    with pytest.raises(InvalidRequestError, match="prefetch_size"):
        scan.batches(prefetch_size=size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=[] if how in ("dropped", "reader dropped") else LONG)
        for how in ("dropped", "closed", "reader dropped", "left", "never pulled", "exhausted")
    ],
)
def test_nothing_leaks_over_many_abandoned_scans(url: str, how: str) -> None:
    table = ld.open(url)

    def abandon() -> None:
        scan = table.scan(limit=None if how != "left" else 20)
        batches = scan.batches(["id"])
        if how == "reader dropped":
            batches.to_reader().read_next_batch()
        elif how == "exhausted":
            assert len(batches.read_all()) == TOTAL
        elif how != "never pulled":
            next(batches)
        if how == "closed":
            batches.close()

    for _ in range(5):
        abandon()
    gc.collect()
    assert eventually(lambda: worker_threads() == [])
    handles, threads = open_handles(), threading.active_count()
    for _ in range(60):
        abandon()
    gc.collect()
    assert eventually(lambda: worker_threads() == [])
    assert eventually(lambda: open_handles() <= handles)
    assert eventually(lambda: threading.active_count() <= threads)


def ended(code: str) -> str:
    """What a process of its own printed, after it ended well and in silence."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    "holder",
    [
        pytest.param("batches", marks=LONG),
        "batches.to_reader()",
        pytest.param("pa.table(batches).to_reader()", marks=LONG),
    ],
)
def test_the_interpreter_exits_cleanly_with_an_open_reader(url: str, holder: str) -> None:
    code = f"""
        import pyarrow as pa, lazydelta as ld
        batches = ld.open({url!r}).scan(batch_size=2).batches()
        held = {holder}
        first = next(iter(held))
        print(first.num_rows)
    """
    ended(code)


@pytest.mark.parametrize(
    "work",
    [
        "sum(batch.num_rows for batch in table.scan(batch_size=2).batches())",
        pytest.param("sum(1 for _ in table.scan().files())", marks=LONG),
        pytest.param("table.scan().page(5).rows.num_rows", marks=LONG),
        pytest.param("sum(batch.num_rows for batch in table.scan(order='desc').batches())", marks=LONG),
        "table.sql('select sum(id) from t where id >= 0').fetchall()",
        pytest.param("asyncio.run(count(table.scan().files_async()))", marks=LONG),
    ],
)
@pytest.mark.parametrize("pause", [0, pytest.param(0.3, marks=LONG)])
def test_a_thread_that_outlives_the_main_one_reads_to_its_end(url: str, work: str, pause: float) -> None:
    code = f"""
        import asyncio, threading, time, lazydelta as ld
        table = ld.open({url!r})
        async def count(files):
            return len([file async for file in files])
        def read():
            time.sleep({pause})
            print({work}, flush=True)
        threading.Thread(target=read).start()
    """
    assert ended(code).strip()


def test_two_iterators_of_one_scan_do_not_disturb_each_other(scan: ld.Scan) -> None:
    one, other = scan.batches(["id"]), scan.batches(["id"])
    pairs = zip(one, other, strict=True)
    assert all(first.equals(second) for first, second in pairs)


def test_a_scan_that_is_over_has_no_threads_of_its_own(scan: ld.Scan) -> None:
    list(scan.batches())
    assert eventually(lambda: worker_threads() == [])
