"""The public face: `lazydelta.__all__`, open, Table, Scan, LazyDeltaScanner."""

from __future__ import annotations

import asyncio
import datetime as dt
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError, LazyDeltaError, TableNotFoundError
from lazydelta.log import open_snapshot
from lazydelta.settings import Settings
from lazydelta.storage import open_storage
from lazydelta.table import Table
from tests.support.actions import add, inline_dv, stats
from tests.support.faulty_storage import FaultyStorage, faulty
from tests.support.table_builder import TableBuilder

LIVE = ["b", "c", "d"]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    builder = TableBuilder(tmp_path).commit(adds=["a", "b"]).checkpoint()
    builder.commit(adds=[add("c", partition={"date": "2026-02-09"})], removes=["a"])
    return builder.commit(adds=[add("d", deletion_vector=inline_dv(), stats=stats(10))])


def paths(files: object) -> list[str]:
    return sorted(file.path for file in files)  # type: ignore[attr-defined]


def test_every_public_name_imports() -> None:
    for name in ld.__all__:
        assert getattr(ld, name) is not None
    names: dict[str, object] = {}
    exec("from lazydelta import *", names)
    assert set(ld.__all__) <= set(names)


def test_a_prompt_completes_every_public_name_before_its_first_use() -> None:
    code = "import lazydelta as ld; print(*(name for name in dir(ld) if not name.startswith('_')))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.split() == sorted(ld.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = ld.nonsense  # type: ignore[attr-defined]


def test_importing_lazydelta_does_not_import_arrow() -> None:
    code = "import sys, lazydelta; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_delta_table_is_open_under_another_name(table: TableBuilder) -> None:
    opened = ld.DeltaTable(str(table.path), storage_options={"delta.batch_size": "10"})
    assert isinstance(opened, ld.Table)
    assert (opened.version, paths(opened.scan())) == (2, LIVE)


def test_a_table_tells_its_version_schema_protocol_and_metadata(table: TableBuilder) -> None:
    opened = ld.open(table.path)
    assert repr(opened) == f"lazydelta.Table({opened.url!r}, version=2)"
    assert repr(opened.scan()) == f"lazydelta.Scan({opened.url!r}, version=2)"
    told = f"lazydelta.Scan({opened.url!r}, version=2, where=\"date = '2026-02-09'\", limit=3, order='desc')"
    assert repr(opened.scan("date = '2026-02-09'", limit=3, order="desc")) == told
    assert len(repr(opened.scan(" or ".join(["date = '2026-02-09'"] * 1000)))) < len(opened.url) + 300
    assert opened.schema.field("value").type == pa.float64()
    assert opened.protocol.min_reader_version == 3
    assert opened.metadata.partition_columns == ["date"]


def test_info_comes_without_reading_the_file_list(table: TableBuilder) -> None:
    info = ld.open(table.crc().path).info()
    assert (info.version, info.num_files, info.checkpoint_version) == (2, 3, 0)
    assert (info.commits_since_checkpoint, info.size_bytes) == (2, 3000)
    assert info.tail_bytes == sum((table.log / f"{v:020}.json").stat().st_size for v in (1, 2))


def test_open_takes_a_version_or_a_time_but_not_both(table: TableBuilder) -> None:
    assert paths(ld.open(table.path, version=0).scan()) == ["a", "b"]
    for moment in ("2026-02-02T02:41:00Z", dt.datetime(2026, 2, 2, 2, 41, 30, tzinfo=dt.UTC)):
        assert ld.open(table.path, timestamp=moment).version == 1
    with pytest.raises(InvalidRequestError, match="both"):
        ld.open(table.path, version=1, timestamp="2026-02-08")


@pytest.mark.parametrize("version", [-1, True, "1", 1.0])
def test_a_version_is_a_whole_number(table: TableBuilder, version: object) -> None:
    with pytest.raises(InvalidRequestError, match="version"):
        ld.open(table.path, version=version)  # type: ignore[arg-type]


def test_settings_are_settings(table: TableBuilder) -> None:
    with pytest.raises(InvalidRequestError, match="settings is a dict") as caught:
        ld.open(table.path, settings={"delta.batch_size": 10})  # type: ignore[arg-type]
    assert "storage_options" in caught.value.fix


def test_options_beside_settings_are_an_error_not_ignored(table: TableBuilder) -> None:
    with pytest.raises(InvalidRequestError, match="settings and storage_options"):
        ld.open(table.path, settings=ld.Settings(), storage_options={"delta.batch_size": "1"})
    assert ld.open(table.path, settings=ld.Settings(), storage_options={}).version == 2


def test_no_table_is_an_error_with_what_where_and_fix(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError) as caught:
        ld.open(tmp_path / "nothing")
    assert all((caught.value.what, caught.value.where, caught.value.fix))
    assert isinstance(caught.value, LazyDeltaError)


def test_files_carry_statistics_only_when_asked_for(table: TableBuilder) -> None:
    scan = ld.open(table.path).scan()
    assert {file.stats for file in scan.files()} == {None}
    (with_vector,) = [file for file in scan.files(with_stats=True) if file.path == "d"]
    assert with_vector.stats == '{"numRecords":10}'
    assert with_vector.dv_id is not None
    assert with_vector.dv_id.startswith("i")


def test_a_scan_can_be_run_again(table: TableBuilder) -> None:
    scan = ld.open(table.path).scan()
    assert paths(scan) == paths(scan) == LIVE


def test_batches_have_the_columns_asked_for(table: TableBuilder) -> None:
    scan = ld.open(table.path).scan()
    assert scan.file_batches().__next__().schema.names == [
        "path",
        "size",
        "modification_time",
        "partition_values",
        "deletion_vector",
    ]
    assert {tuple(batch.schema.names) for batch in scan.file_batches(["size", "path"])} == {("size", "path")}
    with pytest.raises(InvalidRequestError, match="pth") as caught:
        scan.file_batches(["pth"])
    assert "did you mean path?" in caught.value.fix


def test_files_async_gives_the_same_files(table: TableBuilder) -> None:
    async def collect() -> list[str]:
        return sorted([file.path async for file in ld.open(table.path).scan().files_async()])

    assert asyncio.run(collect()) == LIVE


def test_files_async_does_not_hold_the_loop(tmp_path: Path) -> None:
    """While a slow store is read, other tasks of the loop go on."""
    builder = TableBuilder(tmp_path).commit(adds=["a"]).checkpoint().commit(adds=["b"]).crc()
    opened, _ = watched(builder, slow_seconds=0.1)
    turns = 0

    async def count_turns(done: asyncio.Event) -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await asyncio.sleep(0.005)

    async def scan() -> list[str]:
        done = asyncio.Event()
        turning = asyncio.create_task(count_turns(done))
        found = sorted([file.path async for file in opened.scan().files_async()])
        done.set()
        await turning
        return found

    assert asyncio.run(scan()) == ["a", "b"]
    assert turns >= 3


def test_leaving_files_async_early_closes_the_scan(table: TableBuilder) -> None:
    scan = ld.open(table.path).scan(strategy="reverse", batch_size=1)

    async def first() -> str:
        files = scan.files_async()
        try:
            return (await files.__anext__()).path
        finally:
            await files.aclose()  # type: ignore[attr-defined]

    assert asyncio.run(first()) == "d"
    report = scan.explain()
    assert (report.files_emitted, report.is_finished) == (1, False)


def test_a_scanner_is_a_table_and_a_configuration_in_one(table: TableBuilder) -> None:
    config = ld.LazyScanConfig(predicate="date = '2026-02-09'", strategy=ld.ScanStrategy.FORWARD)
    scanner = ld.LazyDeltaScanner(str(table.path), config)
    assert paths(scanner.scan_files()) == ["c"]
    assert scanner.explain().strategy == "forward"
    assert paths(ld.LazyDeltaScanner(table.path).scan_files()) == LIVE


def test_arguments_of_a_scan_win_over_its_configuration(table: TableBuilder) -> None:
    config = ld.LazyScanConfig(limit=1, strategy="forward")
    report = ld.open(table.path).scan(config=config, limit=2, batch_size=1).explain()
    assert (report.limit, report.strategy, report.files_emitted) == (2, "forward", 2)


def test_two_filters_are_an_error_not_one_of_them(table: TableBuilder) -> None:
    assert len(list(ld.open(table.path).scan(predicate="false").files())) == 0
    with pytest.raises(InvalidRequestError, match="where and predicate"):
        ld.open(table.path).scan("true", predicate="false")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"limits": 1}, "limits"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"batch_size": 0}, "batch_size"),
        ({"commit_read_parallelism": 0}, "commit_read_parallelism"),
        ({"scan_timeout_seconds": -1}, "scan_timeout_seconds"),
        ({"strategy": "sideways"}, "sideways"),
        ({"where": "nonsense = 1"}, "nonsense"),
        ({"limit": "3"}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"strict": "false"}, "strict"),
        ({"enable_fallback": "no"}, "enable_fallback"),
        ({"use_log_compaction": 0}, "use_log_compaction"),
    ],
)
def test_a_scan_names_what_it_cannot_take(table: TableBuilder, given: dict[str, object], word: str) -> None:
    with pytest.raises(InvalidRequestError, match=word):
        ld.open(table.path).scan(**given)  # type: ignore[arg-type]


def test_nothing_of_the_file_list_is_read_before_the_first_pull(table: TableBuilder) -> None:
    opened, store = watched(table.crc())
    before = len(store.log.calls)
    files = opened.scan(where="date = '2026-02-09'").files()
    assert len(store.log.calls) == before
    assert next(files).path == "c"
    assert len(store.log.calls) > before


@pytest.mark.parametrize("strategy", ["reverse", "forward"])
def test_closing_a_half_consumed_scan_stops_the_reads(tmp_path: Path, strategy: str) -> None:
    builder = TableBuilder(tmp_path).commit(adds=[f"base-{n}" for n in range(50)]).checkpoint()
    for number in range(60):
        builder.commit(adds=[f"new-{number}"])
    opened, store = watched(builder.crc())
    files = opened.scan(strategy=strategy, batch_size=1).files()
    next(files)
    files.close()
    after_close = len(store.log.calls)
    time.sleep(0.6)
    assert len(store.log.calls) <= after_close + 10, "what was under way at the close ends by itself"
    if strategy == "reverse":
        commits = sum(name.endswith(".json") for _, name in store.log.calls)
        assert 1 <= commits <= 11, "one was wanted, ten are fetched side by side"
        assert not any("checkpoint.parquet" in name for _, name in store.log.calls)


def test_history_is_read_as_it_is_pulled(table: TableBuilder) -> None:
    opened, store = watched(table)
    before = len(store.log.calls)
    history = opened.history()
    assert next(history).version == 2
    assert len(store.log.calls) == before + 2, "one listing, one commit"
    assert [record.version for record in history] == [1, 0]
    assert [record.version for record in opened.history(limit=1)] == [2]


@pytest.mark.parametrize("limit", [-1, True, "2"])
def test_a_history_s_limit_is_a_whole_number(table: TableBuilder, limit: object) -> None:
    with pytest.raises(InvalidRequestError, match="limit"):
        list(ld.open(table.path).history(limit))  # type: ignore[arg-type]


def test_explain_runs_the_scan_once_if_nobody_has(table: TableBuilder) -> None:
    scan = ld.open(table.path).scan()
    report = scan.explain()
    assert (report.files_emitted, report.is_finished) == (3, True)
    assert scan.explain() == report
    assert "files             3 emitted" in str(report)


def watched(builder: TableBuilder, *, slow_seconds: float = 0.0) -> tuple[Table, FaultyStorage]:
    """The table on a store that keeps a list of its calls, and may be slow."""

    def plan(_call: int) -> None:
        time.sleep(slow_seconds)

    store = faulty(open_storage(str(builder.path), Settings()), plan)
    return Table(open_snapshot(store, parallelism=4), Settings()), store
