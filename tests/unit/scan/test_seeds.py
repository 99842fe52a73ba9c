"""The unit tests that the two design notes ask for, by name and meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.errors import VersionNotFoundError
from tests.support.actions import add, relative_dv, remove, stats
from tests.support.reading import STRATEGIES, keys, live_keys, live_paths
from tests.support.table_builder import TableBuilder

BOTH = pytest.mark.parametrize("strategy", STRATEGIES)


def test_append_only_parity_reverse_gives_newest_first_what_forward_gives(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for version in range(6):
        table.commit([f"v{version}.parquet"])
    assert live_paths(table.path, strategy="reverse") == [
        f"v{version}.parquet" for version in range(5, -1, -1)
    ]
    assert live_keys(table.path, strategy="forward") == live_keys(table.path, strategy="reverse")


@BOTH
def test_remove_newer_than_add_hides_the_file(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit().commit(removes=["a"]).commit(["c"])
    assert live_keys(table.path, strategy=strategy) == {("b", None), ("c", None)}


@BOTH
def test_same_version_rewrite_emits_the_new_file_and_suppresses_the_old(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint().commit(["b"], ["a"])
    assert live_keys(table.path, strategy=strategy) == {("b", None)}


@BOTH
def test_predicate_pruning_drops_a_file_whose_statistics_exclude_every_row(
    tmp_path: Path, strategy: str
) -> None:
    # Not a float: NaN is greater than every number, so that a float's maximum excludes nothing above it.
    table = TableBuilder(tmp_path)
    table.commit([add("low", stats=stats(low={"count": 0}, high={"count": 5}))]).checkpoint()
    table.commit([add("high", stats=stats(low={"count": 50}, high={"count": 90}))])
    assert live_paths(table.path, where="count < 10", strategy=strategy) == ["low"]
    assert live_paths(table.path, where="count > 10 and count < 60", strategy=strategy) == ["high"]
    assert live_paths(table.path, where="count > 1000", strategy=strategy) == []


@BOTH
def test_vacuum_floor_a_remove_below_the_checkpoint_is_never_looked_for(
    tmp_path: Path, strategy: str
) -> None:
    # The tombstone of `gone` fell out of the checkpoint and the old commits were cleaned up; walking below
    # the floor would bring the file back or fail.
    table = (
        TableBuilder(tmp_path).commit(["gone", "kept"]).commit(removes=["gone"]).commit(["new"]).checkpoint()
    )
    table.commit(["newest"]).clean_up(before=2)
    assert live_keys(table.path, strategy=strategy) == {("kept", None), ("new", None), ("newest", None)}
    report = ran(table.path, strategy=strategy)
    assert report.checkpoint_version == 2
    assert report.commits_read == 1


def test_vacuum_floor_a_version_below_it_is_refused_by_name(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"]).checkpoint().clean_up(before=2)
    with pytest.raises(VersionNotFoundError, match="2"):
        ld.open(str(table.path), version=1)


def test_vacuum_floor_the_retention_guard_may_refuse_it(tmp_path: Path) -> None:
    asked: list[int] = []

    def refuse(floor: int) -> bool:
        asked.append(floor)
        return False

    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"])
    with pytest.raises(ld.errors.LazyDeltaError, match="1"):
        list(ld.open(str(table.path)).scan(retention_guard=refuse).files())
    assert asked == [1]


@pytest.mark.parametrize("action", ["metaData", "protocol", "cdc", "txn", "somethingNew"])
@BOTH
def test_tripwire_a_strict_scan_falls_back_to_the_canonical_order_and_says_so(
    tmp_path: Path, action: str, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).checkpoint().commit(["c"], ["a"])
    extra = {
        "metaData": table.metadata,
        "protocol": table.protocol,
        "cdc": {"path": "_change_data/x", "partitionValues": {}, "size": 1, "dataChange": False},
        "txn": {"appId": "app", "version": 1},
        "somethingNew": {"x": 1},
    }[action]
    table.commit(["d"], extra_actions=[{action: extra}]).commit(["e"])
    scan = ld.open(str(table.path)).scan(strict=True, strategy=strategy)
    assert sorted(keys(scan.files())) == [("b", None), ("c", None), ("d", None), ("e", None)]
    # Forward is the canonical order already: there is nothing to fall back to.
    assert len(scan.explain().fallbacks) == (1 if scan.explain().strategy == "reverse" else 0)
    assert scan.explain().commits_read <= scan.explain().commits_total
    lenient = ld.open(str(table.path)).scan(strategy=strategy)
    assert sorted(keys(lenient.files())) == [("b", None), ("c", None), ("d", None), ("e", None)]
    assert not lenient.explain().fallbacks


def test_tripwire_without_fallback_is_an_error(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(ld.errors.LazyDeltaError):
        list(ld.open(str(table.path)).scan(strict=True, enable_fallback=False).files())


def test_early_termination_a_limit_reads_only_the_commits_it_needs(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["old"]).checkpoint()
    for version in range(1, 41):
        table.commit([f"v{version}"])
    table.crc()
    scan = ld.open(str(table.path)).scan(limit=2, commit_read_parallelism=2)
    assert [file.path for file in scan.files()] == ["v40", "v39"]
    report = scan.explain()
    assert report.files_emitted == 2
    assert report.commits_read <= 5
    assert report.row_groups_read == 0


def test_early_termination_an_older_commit_that_is_not_needed_is_not_judged(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["old"]).checkpoint()
    for version in range(1, 41):
        table.commit([f"v{version}"])
    table.crc().corrupt("*01.json")
    scan = ld.open(str(table.path)).scan(limit=2, commit_read_parallelism=2)
    assert [file.path for file in scan.files()] == ["v40", "v39"]


@BOTH
def test_snapshot_pinning_later_commits_do_not_exist_for_an_opened_table(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint().commit(["b"])
    opened = ld.open(str(table.path))
    table.commit(["c"], ["a"]).checkpoint()
    assert opened.version == 1
    assert set(keys(opened.scan(strategy=strategy).files())) == {("a", None), ("b", None)}


@BOTH
def test_snapshot_pinning_holds_in_the_middle_of_a_scan(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).checkpoint(row_group_rows=1).commit(["c", "d"])
    files = ld.open(str(table.path)).scan(strategy=strategy, batch_size=1).files()
    first = next(files)
    table.commit(["e"], ["a", "b", "c", "d"]).checkpoint()
    assert {first.path, *(file.path for file in files)} == {"a", "b", "c", "d"}


@BOTH
def test_memory_limit_past_it_the_remove_set_moves_to_disk_and_stays_exact(
    tmp_path: Path, strategy: str
) -> None:
    names = [f"part-{number:05}.parquet" for number in range(5000)]
    table = TableBuilder(tmp_path).commit(names).checkpoint(row_group_rows=500)
    table.commit(removes=names[:4900])
    scan = ld.open(str(table.path)).scan(strategy=strategy, remove_set_memory_limit=1)
    assert {file.path for file in scan.files()} == set(names[4900:])
    assert scan.explain().remove_set_peak >= 4900
    assert scan.explain().remove_set_on_disk


@BOTH
def test_file_added_and_removed_since_the_checkpoint_does_not_come_back(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["A", "B", "C"]).checkpoint().commit(["D"]).commit(["E"])
    table.commit(removes=["D"]).commit()
    assert live_keys(table.path, strategy=strategy) == {(name, None) for name in "ABCE"}


@BOTH
def test_re_add_without_remove_comes_once_with_the_newest_words(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit([add("a", size=1), "b"]).checkpoint()
    table.commit([add("a", size=2, data_change=False)]).commit([add("a", size=3, data_change=False)])
    files = list(ld.open(str(table.path)).scan(strategy=strategy).files())
    assert sorted((file.path, file.size) for file in files) == [("a", 3), ("b", 1000)]


@BOTH
def test_two_deletion_vector_updates_of_one_file_leave_the_newest(tmp_path: Path, strategy: str) -> None:
    first, second = relative_dv(offset=1, rows=1), relative_dv(offset=43, rows=2)
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint()
    table.commit([add("a", deletion_vector=first)], ["a"])
    table.commit([add("a", deletion_vector=second)], [remove("a", deletion_vector=first)])
    [file] = ld.open(str(table.path)).scan(strategy=strategy).files()
    assert file.deletion_vector is not None
    assert (file.path, file.deletion_vector.cardinality, file.deletion_vector.offset) == ("a", 2, 43)


@BOTH
def test_two_deletion_vector_updates_survive_a_checkpoint_between_them(tmp_path: Path, strategy: str) -> None:
    first, second = relative_dv(offset=1, rows=1), relative_dv(offset=43, rows=2)
    table = TableBuilder(tmp_path).commit(["a"]).commit([add("a", deletion_vector=first)], ["a"]).checkpoint()
    table.commit([add("a", deletion_vector=second)], [remove("a", deletion_vector=first)])
    [file] = ld.open(str(table.path)).scan(strategy=strategy).files()
    assert file.deletion_vector is not None
    assert file.deletion_vector.cardinality == 2


def ran(path: Path, **scan: Any) -> ld.ScanReport:
    """The report of a scan run to its end."""
    run = ld.open(str(path)).scan(**scan)
    for _ in run.files():
        pass
    return run.explain()
