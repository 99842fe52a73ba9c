"""A second query: what it asks of the store, and that it is never older than asked nor of mixed versions."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.errors import TableNotFoundError, VersionNotFoundError
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.actions import add, inline_dv, metadata, stats
from tests.support.cached import CACHED, LAZILY, UNCACHED, Asked
from tests.support.sidecar_damage import lazy_folder, storage_of
from tests.support.table_builder import TableBuilder

SCHEMA = {"value": "double", "count": "long", "_event_hour": "string"}
SMALL = SidecarConfig(row_group_rows=10, row_groups_max=4)
LAST = "_event_hour >= '2026021022'"


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    ld.cache.clear()
    yield
    ld.cache.clear()


def hour_file(number: int, *, hour: int | None = None, name: str = "part") -> dict[str, Any]:
    at = f"20260210{number // 5 if hour is None else hour:02}"
    told = stats(low={"value": number / 2, "count": number}, high={"value": number, "count": number + 7})
    return add(f"{name}-{number:05}.parquet", partition={"_event_hour": at}, stats=told)


def table_with_sidecar(folder: Path, *, files: int = 120, tail: int = 3) -> TableBuilder:
    """A checkpoint with its sidecar, and some commits since."""
    table = TableBuilder(folder, schema=SCHEMA, partition_columns=("_event_hour",))
    table.commit([hour_file(number) for number in range(files)]).checkpoint()
    build_sidecar(storage_of(table), config=SMALL)
    for number in range(tail):
        table.commit([hour_file(number, hour=22 + number % 2, name="tail")])
    return table


# --- requests -------------------------------------------------------------------


@pytest.mark.parametrize("where", [None, LAST, "value > 50", "_event_hour = '2026021003' and count < 20"])
@pytest.mark.parametrize("strategy", ["auto", "reverse", "forward"])
def test_a_second_query_lists_the_log_and_asks_for_nothing_else(
    tmp_path: Path, where: str | None, strategy: str
) -> None:
    table = table_with_sidecar(tmp_path)
    first = Asked(table.path, where=where, strategy=strategy)
    second = Asked(table.path, where=where, strategy=strategy)
    assert second.requests == {"list": 1}
    assert (
        second.files
        == first.files
        == Asked(table.path, options=UNCACHED, where=where, strategy=strategy).files
    )
    assert second.report.files_skipped == first.report.files_skipped
    assert second.report.requests == 1
    assert second.report.bytes_read == 0


def test_within_the_staleness_that_is_allowed_nothing_is_asked_at_all(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    first = Asked(table.path, options=LAZILY, where=LAST)
    second = Asked(table.path, options=LAZILY, where=LAST)
    assert second.requests == {}
    assert second.files == first.files


def test_a_limit_takes_the_same_files_again_without_a_read(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=20)
    first = Asked(table.path, limit=4)
    assert 0 < first.report.commits_read < 20
    second = Asked(table.path, limit=4)
    assert second.files == first.files
    assert second.requests == {"list": 1}


def test_a_larger_limit_goes_on_below_what_is_known_of_the_tail(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=20)
    Asked(table.path, limit=4)
    more = Asked(table.path, limit=12)
    assert more.files == Asked(table.path, options=UNCACHED, limit=12).files
    assert more.report.commits_read <= 12
    everything = Asked(table.path)
    assert everything.live == table.live()
    assert everything.files == Asked(table.path, options=UNCACHED).files


def test_a_new_commit_costs_the_listing_and_that_commit(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=20)
    Asked(table.path)
    table.commit([hour_file(7, hour=23, name="newest")], removes=["tail-00003.parquet"])
    after = Asked(table.path)
    assert after.table.version == table.version
    assert after.live == table.live()
    assert after.requests == {"list": 1, "get": 1}
    assert after.report.commits_read == 1
    assert after.files == Asked(table.path, options=UNCACHED).files


def test_a_new_commit_on_a_table_with_checksums_costs_the_checksum_more(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=20).crc()
    Asked(table.path)
    table.commit([hour_file(7, hour=23, name="newest")]).crc()
    after = Asked(table.path)
    assert after.requests == {"list": 1, "get": 2}
    assert after.table.info().num_files == len(table.live())
    assert after.live == table.live()


def test_other_columns_of_the_same_files_cost_only_what_was_not_read(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    list(ld.open(str(table.path), storage_options=CACHED).scan(where=LAST).file_batches(["path"]))
    again = Asked(table.path, where=LAST)
    assert again.files == Asked(table.path, options=UNCACHED, where=LAST).files
    assert again.report.commits_read == 0


def test_statistics_as_json_come_with_a_tail_from_the_cache(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    Asked(table.path)
    again = Asked(table.path, with_stats=True)
    assert again.files == Asked(table.path, options=UNCACHED, with_stats=True).files
    assert all(file.stats is not None for file in again.files)
    assert again.report.commits_read == 0


def test_a_table_without_a_checkpoint_is_read_from_the_cache_too(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).commit(["c"], removes=["a"])
    assert Asked(table.path).live == table.live()
    again = Asked(table.path)
    assert again.live == table.live()
    assert again.requests == {"list": 1}
    table.commit(["d"], removes=["b"])
    assert Asked(table.path).live == table.live()


def test_without_a_sidecar_one_is_looked_for_each_time_so_that_a_new_one_is_found(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema=SCHEMA, partition_columns=("_event_hour",))
    table.commit([hour_file(number) for number in range(50)]).checkpoint()
    assert Asked(table.path, where=LAST).report.source.startswith("checkpoint")
    assert Asked(table.path, where=LAST).report.source.startswith("checkpoint")
    build_sidecar(storage_of(table), config=SMALL)
    assert Asked(table.path, where="_event_hour >= '2026021003'").report.source.startswith("sidecar")


# --- never older than asked -------------------------------------------------------


def test_every_version_is_seen_as_soon_as_it_is_there(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["f0"])
    for number in range(1, 25):
        table.commit([f"f{number}"], removes=[f"f{number - 3}"] if number % 3 == 0 else [])
        if number % 5 == 0:
            table.checkpoint()
        asked = Asked(table.path)
        assert (asked.table.version, asked.live) == (table.version, table.live())


def test_a_stale_answer_is_at_most_as_old_as_allowed(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    options = CACHED | {"delta.cache.max_staleness_seconds": "0.3"}
    before = Asked(table.path, options=options)
    table.commit([hour_file(1, hour=23, name="later")])
    stale = Asked(table.path, options=options)
    assert stale.table.version in (before.table.version, table.version)
    time.sleep(0.31)
    assert Asked(table.path, options=options).table.version == table.version
    assert Asked(table.path, options=options).live == table.live()


def test_one_who_allows_staleness_does_not_make_others_stale(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    Asked(table.path, options=LAZILY)
    table.commit([hour_file(1, hour=23, name="later")])
    assert Asked(table.path, options=LAZILY).table.version == table.version - 1
    assert Asked(table.path).table.version == table.version
    # The listing of the one who asked now serves the one who need not.
    assert Asked(table.path, options=LAZILY).table.version == table.version


def test_a_pinned_table_stays_at_its_version_while_the_cache_goes_on(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    pinned = ld.open(str(table.path), storage_options=CACHED)
    was = table.live()
    for number in range(3):
        table.commit([hour_file(number, hour=23, name="later")], removes=[f"part-{number:05}.parquet"])
        assert Asked(table.path).live == table.live()
    table.checkpoint()
    assert Asked(table.path).live == table.live()
    assert {(file.path, file.dv_id) for file in pinned.scan().files()} == was


def test_any_version_can_be_read_between_others(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=6)
    for version in (6, 3, 6, 0, 5, None, 3, 6, 1):
        asked = Asked(table.path, version=version)
        assert asked.table.version == (6 if version is None else version)
        assert asked.live == table.live(version)


def test_a_version_that_is_not_there_yet_is_an_error_and_then_is_there(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=2)
    Asked(table.path)
    with pytest.raises(VersionNotFoundError, match="version 3 does not exist, the newest is 2"):
        Asked(table.path, version=3)
    table.commit([hour_file(1, hour=23, name="later")])
    assert Asked(table.path, version=3).live == table.live()


def test_new_metadata_and_protocol_count_from_their_commit_on(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=2)
    assert Asked(table.path).table.schema.names == list(SCHEMA)
    wider = SCHEMA | {"extra": "string"}
    table.commit(metadata=metadata(wider, partition_columns=("_event_hour",)))
    table.commit([hour_file(9, hour=23, name="later")])
    after = Asked(table.path)
    assert after.table.schema.names == list(wider)
    assert Asked(table.path, version=2).table.schema.names == list(SCHEMA)


# --- logs that were rewritten -------------------------------------------------------


def test_a_log_restored_with_the_same_names_sizes_and_times_is_read_anew(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").commit(["a1"]).checkpoint().commit(["b1"]).commit(["c1"])
    assert Asked(table.path).live == table.live()
    shutil.rmtree(table.path)
    again = TableBuilder(tmp_path / "t").commit(["a2"]).checkpoint().commit(["b2"]).commit(["c2"])
    assert Asked(again.path).live == again.live() == {("a2", None), ("b2", None), ("c2", None)}


def test_one_commit_rewritten_in_place_forgets_the_whole_table(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    Asked(table.path)
    commit = table.log / f"{2:020}.json"
    times = commit.stat()
    commit.write_text(commit.read_text().replace("tail-00001", "tail-66666"))
    os.utime(commit, ns=(times.st_atime_ns, times.st_mtime_ns))
    again = Asked(table.path)
    assert ("tail-66666.parquet", None) in again.live
    assert ("tail-00001.parquet", None) not in again.live
    assert ld.cache.stats().invalidations > 0


def test_a_log_that_went_back_is_read_as_it_is_now(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=5)
    Asked(table.path)
    table.delete_commit(5)
    table.delete_commit(4)
    assert Asked(table.path).live == table.live(3)


def test_a_table_that_was_dropped_is_not_there_any_more(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path / "t")
    Asked(table.path)
    shutil.rmtree(table.path)
    with pytest.raises(TableNotFoundError):
        Asked(table.path)
    assert ld.cache.stats().entries == 0


def test_a_new_checkpoint_lets_go_of_what_hung_on_the_old_one(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    Asked(table.path)
    table.checkpoint()
    build_sidecar(storage_of(table), config=SMALL)
    asked = Asked(table.path)
    assert asked.live == table.live()
    assert asked.report.checkpoint_version == table.version
    by_kind = ld.cache.stats().by_kind
    assert by_kind["tail"].entries == 0
    assert by_kind["state"].entries == 1
    assert Asked(table.path).requests == {"list": 1}


def test_a_cleaned_up_log_is_followed_to_its_new_checkpoint(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=6)
    Asked(table.path)
    table.checkpoint().clean_up(before=6)
    assert Asked(table.path).live == table.live()
    table.commit([hour_file(3, hour=23, name="later")])
    assert Asked(table.path).live == table.live()


# --- damage -----------------------------------------------------------------------


def test_a_part_that_is_gone_gives_the_checkpoint_and_is_not_trusted_again(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    Asked(table.path, where=LAST)  # some row groups are known, others are not
    for part in lazy_folder(table).glob("*.parquet"):
        part.unlink()
    asked = Asked(table.path)
    assert asked.live == table.live()
    assert asked.report.fallbacks


def test_a_damaged_commit_is_an_error_and_leaves_the_cache_right(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    Asked(table.path)
    path = table.log / f"{table.version + 1:020}.json"
    path.write_text('{"add": {"path": \n')
    with pytest.raises(ld.errors.CorruptLogError):
        Asked(table.path)
    path.unlink()
    assert Asked(table.path).live == table.live()


# --- switches -----------------------------------------------------------------------


def test_without_a_budget_nothing_is_kept(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    Asked(table.path, options=UNCACHED)
    assert ld.cache.stats().entries == 0
    assert Asked(table.path, options=UNCACHED).requests["get"] > 1


def test_a_small_budget_is_kept_to_and_gives_the_same_files(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=10)
    for budget in (1, 2_000, 20_000, 200_000):
        options = {"delta.cache.bytes": str(budget)}
        for _ in range(2):
            assert Asked(table.path, options=options).live == table.live()
            assert ld.cache.stats().bytes <= budget


def test_tables_opened_with_other_options_share_nothing(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    mine = LAZILY | {"account_key": "mine"}
    Asked(table.path, options=mine)
    assert Asked(table.path, options=mine).requests == {}
    assert Asked(table.path, options=LAZILY | {"account_key": "theirs"}).requests["get"] > 1


def test_a_strict_scan_watches_every_commit_itself(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    table.commit([hour_file(1, hour=23, name="later")], extra_actions=[{"txn": {"appId": "a", "version": 1}}])
    Asked(table.path)
    strict = Asked(table.path, strict=True)
    assert strict.live == table.live()
    assert any("strict" in reason for reason in strict.report.fallbacks)


def test_unknown_actions_are_told_of_a_known_tail_too(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    table.commit(["x"], extra_actions=[{"novelty": {"a": 1}}])
    first, second = Asked(table.path), Asked(table.path)
    assert first.report.unknown_actions == second.report.unknown_actions == {"novelty": 1}


def test_deletion_vectors_of_a_known_tail_stay_with_their_files(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    table.commit(
        [add("tail-00000.parquet", partition={"_event_hour": "2026021022"}, deletion_vector=inline_dv())],
        removes=["tail-00000.parquet"],
    )
    first, second = Asked(table.path), Asked(table.path)
    assert first.live == second.live == table.live()
    table.commit(["more"])
    assert Asked(table.path).live == table.live()


def test_explain_tells_what_came_from_the_cache(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    where = "_event_hour >= '2026021020'"
    first = Asked(table.path, where=where).report
    assert (first.cache_hits, first.cache_bytes) == ({}, 0)
    assert "from the cache" not in str(first)
    second = Asked(table.path, where=where).report
    assert {"state", "sidecar", "tail", "answer"} <= set(second.cache_hits)
    other = Asked(table.path, where="_event_hour > '2026021020'").report
    assert {"footer", "rows"} <= set(other.cache_hits)
    assert other.requests == 1
    assert second.cache_bytes > 1000
    assert "from the cache" in str(second)
    stats_now = ld.cache.stats()
    assert stats_now.hits > 0
    assert stats_now.by_kind["tail"].hits == 2
    assert stats_now.bytes == sum(kind.bytes for kind in stats_now.by_kind.values())


def test_rows_of_more_columns_join_those_that_are_known(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    list(ld.open(str(table.path), storage_options=CACHED).scan().file_batches(["path", "size"]))
    wider = Asked(table.path)
    assert wider.report.row_groups_read > 0
    again = list(ld.open(str(table.path), storage_options=LAZILY).scan().file_batches(["path"]))
    assert sum(batch.num_rows for batch in again) == len(table.live())
    assert Asked(table.path).requests == {"list": 1}
    assert ld.cache.stats().by_kind["rows"].entries == 12


# --- long tails -----------------------------------------------------------------------


def long_tail(folder: Path, *, commits: int = 60, since: int = 4) -> TableBuilder:
    """A tail that a delta file tells but for its newest commits."""
    table = table_with_sidecar(folder, tail=commits)
    write_delta_files(storage_of(table), config=SMALL)
    for number in range(since):
        table.commit([hour_file(number, hour=23, name="later")], removes=[f"tail-{number:05}.parquet"])
    return table


@pytest.mark.parametrize("where", [None, LAST, "value > 20", "_event_hour > '2026021022' and count < 9"])
def test_a_tail_told_by_delta_files_is_kept_like_any_other(tmp_path: Path, where: str | None) -> None:
    table = long_tail(tmp_path)
    first = Asked(table.path, where=where)
    assert first.report.delta_files == 1
    plain = Asked(table.path, options=UNCACHED | {"delta.sidecar.enabled": "false"}, where=where)
    assert first.live == plain.live
    second = Asked(table.path, where=where)
    assert second.requests == {"list": 1}
    assert second.files == first.files
    assert second.report.files_skipped == first.report.files_skipped
    table.commit(
        [hour_file(50, hour=23, name="newest")], removes=["later-00001.parquet", "tail-00040.parquet"]
    )
    third = Asked(table.path, where=where)
    assert third.requests["get"] == 1
    assert third.live == Asked(table.path, options=UNCACHED, where=where).live


def test_a_tail_kept_without_a_column_does_not_serve_who_asks_for_it(tmp_path: Path) -> None:
    table = long_tail(tmp_path)
    list(ld.open(str(table.path), storage_options=CACHED).scan().file_batches(["path", "size"]))
    for how in ({"with_stats": True}, {"where": "value > 20"}, {"where": LAST}, {}):
        asked = Asked(table.path, **how)
        plain = Asked(table.path, options=UNCACHED | {"delta.sidecar.enabled": "false"}, **how)
        assert sorted(asked.files, key=str) == sorted(plain.files, key=str)


# --- answers of a sidecar ---------------------------------------------------------------


def test_commits_since_an_answer_was_kept_count_against_it(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    where = "_event_hour = '2026021003'"
    assert len(Asked(table.path, where=where).files) == 5
    table.commit(removes=["part-00016.parquet"])
    table.commit([hour_file(17, hour=3), hour_file(99, hour=3, name="late")])  # one comes once more
    after = Asked(table.path, where=where)
    assert "answer" in after.report.cache_hits
    assert after.files == Asked(table.path, options=UNCACHED, where=where).files
    assert len(after.files) == 5


@pytest.mark.parametrize(
    "again",
    [
        {"where": "_event_hour = '2026021004'"},
        {"where": "_event_hour = '2026021003' and value > 9"},
        {"where": "_event_hour = '2026021003'", "time_zone": "Europe/Berlin"},
        {"where": "_event_hour = '2026021003'", "limit": 2},
        {"where": {"_event_hour": "2026021003"}},
        {"where": "_event_hour = '2026021003'", "batch_size": 1},
    ],
)
def test_an_answer_serves_the_same_question_alone(tmp_path: Path, again: dict[str, Any]) -> None:
    table = table_with_sidecar(tmp_path)
    Asked(table.path, where="_event_hour = '2026021003'")
    assert Asked(table.path, **again).files == Asked(table.path, options=UNCACHED, **again).files


def test_an_answer_that_was_not_read_to_its_end_is_not_kept(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    where = "_event_hour < '2026021012'"
    assert len(Asked(table.path, where=where, limit=3).files) == 3
    assert ld.cache.stats().by_kind["answer"].entries == 0
    assert Asked(table.path, where=where).files == Asked(table.path, options=UNCACHED, where=where).files


def test_an_answer_is_read_anew_when_a_column_has_another_type(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    where = "count >= 100"
    before = Asked(table.path, where=where)
    table.commit(metadata=metadata(SCHEMA | {"count": "double"}, partition_columns=("_event_hour",)))
    after = Asked(table.path, where=where)
    assert "answer" not in after.report.cache_hits
    assert after.files == Asked(table.path, options=UNCACHED, where=where).files
    assert len(after.files) >= len(before.files) > 0
