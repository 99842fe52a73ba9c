"""Rules 1 to 8 of the design, each by a test that fails without it and is named after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError, LazyDeltaError, UnsupportedTableError, VersionNotFoundError
from tests.support import actions
from tests.support.actions import absolute_dv, add, inline_dv, relative_dv, remove
from tests.support.eager_twin import replay
from tests.support.reading import STRATEGIES, keys, live_keys
from tests.support.table_builder import TableBuilder

EVERY_STRATEGY = pytest.mark.parametrize("strategy", STRATEGIES)
HERE = ("", "after a checkpoint")


@EVERY_STRATEGY
@pytest.mark.parametrize(
    ("added", "removed"),
    [
        ("/some/absolute/path", "file:///some/absolute/path"),
        ("file:///some/absolute/path", "/some/absolute/path"),
        ("/with%20space/p@%23h", "file:///with%20space/p@%23h"),
        ("{root}/inside.parquet", "inside.parquet"),
        ("inside.parquet", "file://{root}/inside.parquet"),
        ("date=a%20b/%C3%BC.parquet", "date=a%20b/ü.parquet"),
    ],
)
@pytest.mark.parametrize("where", HERE)
def test_rule_1_identity_one_file_spelled_two_ways_is_one_file(
    tmp_path: Path, added: str, removed: str, where: str, strategy: str
) -> None:
    root = str(tmp_path)
    table = TableBuilder(tmp_path).commit([add(added.replace("{root}", root))])
    if where:
        table.checkpoint()
    table.commit(removes=[removed.replace("{root}", root)])
    assert live_keys(tmp_path, strategy=strategy) == set()


@EVERY_STRATEGY
@pytest.mark.parametrize("where", HERE)
def test_rule_1_identity_a_path_is_decoded_exactly_once(tmp_path: Path, where: str, strategy: str) -> None:
    # `a%2520b` is the file `a%20b`; `a%20b` is the file `a b`: two files.
    table = TableBuilder(tmp_path).commit(["a%2520b", "a%20b"])
    if where:
        table.checkpoint()
    table.commit(removes=["a%20b"])
    assert live_keys(tmp_path, strategy=strategy) == {("a%20b", None)}


@EVERY_STRATEGY
@pytest.mark.parametrize(
    ("live", "dead"),
    [
        (relative_dv(offset=0), relative_dv(offset=None)),
        (relative_dv(offset=None), relative_dv(offset=0)),
        (relative_dv(offset=1), relative_dv(offset=11)),
        (inline_dv(), relative_dv(inline_dv()["pathOrInlineDv"], offset=None)),
        (absolute_dv("file:///v.bin"), absolute_dv("file:///w.bin")),
        (relative_dv(), None),
    ],
)
def test_rule_1_identity_files_that_differ_in_their_deletion_vector_are_two(
    tmp_path: Path, live: dict[str, object], dead: dict[str, object] | None, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit([add("a", deletion_vector=dead)]).checkpoint()
    table.commit([add("a", deletion_vector=live)], [remove("a", deletion_vector=dead)])
    table.commit(removes=[remove("a", deletion_vector=dead)])
    files = list(ld.open(str(tmp_path)).scan(strategy=strategy).files())
    assert keys(files) == list(replay(tmp_path).live)
    vector = files[0].deletion_vector
    assert vector is not None
    assert vector.offset == live.get("offset")
    assert vector.storage_type == live["storageType"]
    assert vector.path_or_inline_dv == live["pathOrInlineDv"]


@EVERY_STRATEGY
@pytest.mark.parametrize("where", HERE)
def test_rule_1_identity_an_unknown_storage_type_is_an_error(
    tmp_path: Path, where: str, strategy: str
) -> None:
    vector = {"storageType": "z", "pathOrInlineDv": "abc", "sizeInBytes": 1, "cardinality": 1}
    table = TableBuilder(tmp_path).commit([add("a", deletion_vector=vector)])
    if where:
        table.checkpoint()
    with pytest.raises(UnsupportedTableError, match="'z'"):
        list(ld.open(str(tmp_path)).scan(strategy=strategy).files())


@EVERY_STRATEGY
def test_rule_2_newest_wins_between_two_commits(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(removes=["a"]).commit([add("a", size=7)])
    assert [file.size for file in ld.open(str(table.path)).scan(strategy=strategy).files()] == [7]


@EVERY_STRATEGY
@pytest.mark.parametrize("data_change", [True, False])
def test_rule_2_newest_wins_a_re_add_shadows_the_checkpoint_whatever_data_change_says(
    tmp_path: Path, data_change: bool, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit([add("a", size=1), "b"]).checkpoint()
    table.commit([add("a", size=2, data_change=data_change)])
    files = list(ld.open(str(tmp_path)).scan(strategy=strategy).files())
    assert sorted((file.path, file.size) for file in files) == [("a", 2), ("b", 1000)]


@EVERY_STRATEGY
def test_rule_2_newest_wins_an_add_that_a_predicate_drops_still_shadows_older_ones(
    tmp_path: Path, strategy: str
) -> None:
    # The newest add of `a` says the 9th; the checkpoint's says the 8th and must not be believed.
    table = TableBuilder(tmp_path).commit([add("a", partition={"date": "2026-02-08"})]).checkpoint()
    table.commit([add("a", partition={"date": "2026-02-09"})])
    assert live_keys(tmp_path, where="date = '2026-02-08'", strategy=strategy) == set()


@EVERY_STRATEGY
@pytest.mark.parametrize("removes_first", [True, False])
def test_rule_3_one_commit_is_atomic_the_add_of_a_vector_update_stays(
    tmp_path: Path, removes_first: bool, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit([add("a", deletion_vector=relative_dv())], ["a"])
    if not removes_first:
        path = table.log / f"{1:020}.json"
        lines = path.read_text().splitlines()
        path.write_text("\n".join(reversed(lines)) + "\n")
    assert live_keys(tmp_path, strategy=strategy) == table.live()


@EVERY_STRATEGY
def test_rule_3_compaction_files_that_hold_dead_keys_are_decided_by_the_first_line(
    tmp_path: Path, strategy: str
) -> None:
    # As a commit the file would keep both adds: `a` was removed later, `b` was rewritten.
    table = (
        TableBuilder(tmp_path)
        .commit(["a", add("b", size=1)])
        .commit(removes=["a"])
        .commit([add("b", size=2)])
    )
    table.compact(0, 2, dead_keys=True)
    files = list(ld.open(str(tmp_path)).scan(strategy=strategy).files())
    assert [(file.path, file.size) for file in files] == [("b", 2)]


@EVERY_STRATEGY
def test_rule_3_a_compaction_file_from_version_0_replaces_its_commits(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"], ["a"]).commit(["d"])
    table.compact(0, 2)
    scan = ld.open(str(tmp_path)).scan(strategy=strategy)
    assert set(keys(scan.files())) == table.live()
    assert scan.explain().commits_read <= 2


@EVERY_STRATEGY
def test_rule_3_a_compaction_file_without_its_old_tombstones_brings_nothing_back_to_life(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).checkpoint().commit(["c"]).commit(removes=["a"])
    table.compact(1, 2, tombstones=False)
    assert live_keys(tmp_path, strategy=strategy) == {("b", None), ("c", None)}


def test_rule_3_a_compaction_file_above_a_checkpoint_is_used_when_asked_for(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).checkpoint()
    for version in range(1, 9):
        table.commit([f"v{version}"], ["a"] if version == 4 else [])
    table.compact(1, 8)
    scan = ld.open(str(tmp_path)).scan(use_log_compaction=True)
    assert set(keys(scan.files())) == table.live()
    assert scan.explain().commits_read <= 1


@EVERY_STRATEGY
def test_rule_4_nothing_is_emitted_before_an_unreadable_protocol_is_known(
    tmp_path: Path, strategy: str
) -> None:
    # The unknown feature stands in the oldest commit of the tail; the newest ones have files.
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint()
    table.commit(protocol=actions.protocol(["deletionVectors", "v2Checkpoint", "timeCrystals"]))
    table.commit(["b"]).commit(["c"])
    with pytest.raises(UnsupportedTableError, match="timeCrystals"):
        next(iter(ld.open(str(tmp_path)).scan(limit=1, strategy=strategy).files()))


@EVERY_STRATEGY
def test_rule_5_a_gap_in_the_tail_ends_the_query_before_anything_is_emitted(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint().commit(["b"]).commit(["c"]).commit(["d"])
    table.delete_commit(2)
    with pytest.raises(CorruptLogError, match="commit 2 is missing between 1 and 3"):
        list(ld.open(str(tmp_path)).scan(limit=1, strategy=strategy).files())


@EVERY_STRATEGY
def test_rule_5_the_commit_of_the_checkpoint_is_not_part_of_the_tail(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"]).delete_commit(1)
    table.delete_commit(0)
    assert live_keys(tmp_path, strategy=strategy) == table.live()


@EVERY_STRATEGY
@pytest.mark.parametrize("has_crc", [True, False])
def test_rule_5_a_damaged_checkpoint_commit_disturbs_nobody(
    tmp_path: Path, has_crc: bool, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint()
    if has_crc:
        table.crc()
    table.commit(["c"]).corrupt("*1.json")
    assert live_keys(tmp_path, strategy=strategy) == table.live()


@EVERY_STRATEGY
def test_rule_5_a_truncated_line_ends_the_stream_with_an_error(tmp_path: Path, strategy: str) -> None:
    table = (
        TableBuilder(tmp_path)
        .commit(["a"])
        .checkpoint()
        .commit(["b"])
        .commit(["c", "d"])
        .truncate("*2.json", -20)
    )
    with pytest.raises(CorruptLogError, match="line 3"):
        list(ld.open(str(tmp_path)).scan(strategy=strategy).files())
    assert table.version == 2


@EVERY_STRATEGY
def test_rule_5_a_commit_that_vanishes_under_the_scan_ends_it_with_an_error(
    tmp_path: Path, strategy: str
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint()
    for version in range(1, 30):
        table.commit([f"v{version}"])
    table.crc()
    opened = ld.open(str(tmp_path))
    table.delete_commit(5)
    with pytest.raises(LazyDeltaError, match="5"):
        list(opened.scan(strategy=strategy).files())


@EVERY_STRATEGY
def test_rule_6_versions_are_pinned_although_the_log_moves_on(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    opened = ld.open(str(tmp_path))
    table.commit(["c"], ["a"], metadata=actions.metadata({"other": "string"}, partition_columns=()))
    table.checkpoint("v1")
    assert set(keys(opened.scan(strategy=strategy).files())) == {("a", None), ("b", None)}
    assert opened.schema.names == list(actions.TELEMETRY)


def test_rule_6_a_version_can_be_asked_for(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"], ["a"])
    for version in range(3):
        assert live_keys(tmp_path, version=version) == table.live(version)


@EVERY_STRATEGY
def test_rule_7_never_below_the_floor_even_where_old_commits_lie_about(tmp_path: Path, strategy: str) -> None:
    # Commit 0 contradicts the checkpoint; it is below the floor and must not be heard.
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().commit(["c"])
    (table.log / f"{0:020}.json").write_text(
        json.dumps({"add": add("ghost") | {"partitionValues": {}}}) + "\n"
    )
    assert live_keys(tmp_path, strategy=strategy) == table.live()


def test_rule_7_a_version_that_was_cleaned_up_names_the_earliest_readable_one(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for version in range(8):
        table.commit([f"v{version}"])
    table.checkpoint(version=5).clean_up(before=5)
    with pytest.raises(VersionNotFoundError) as caught:
        ld.open(str(tmp_path), version=3)
    assert "3" in caught.value.what
    assert "5" in str(caught.value)
    assert live_keys(tmp_path, version=5) == table.live(5)


def test_rule_7_without_a_checkpoint_the_floor_is_version_0(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"]).delete_commit(0)
    with pytest.raises(LazyDeltaError, match=r"commit 0|commit 1"):
        ld.open(str(tmp_path))
    assert table.version == 2


def test_rule_8_exact_every_one_of_many_removes_counts_and_no_other(tmp_path: Path) -> None:
    names = [f"part-{number:06}.parquet" for number in range(20_000)]
    dead = set(names[::3])
    table = TableBuilder(tmp_path).commit(names).checkpoint(row_group_rows=3000).commit(removes=sorted(dead))
    # A filter with a false positive in a thousand would lose a dozen files here.
    for strategy in STRATEGIES:
        for limit in (1, 1 << 25):
            found = live_keys(table.path, strategy=strategy, remove_set_memory_limit=limit)
            assert found == {(name, None) for name in names if name not in dead}, (strategy, limit)
