"""Rule 14, segments: which files of the log one version needs, whatever else lies in the folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from tests.support.actions import add, relative_dv, remove
from tests.support.checkpoint_writer import KINDS, STATS_FORMS
from tests.support.reading import STRATEGIES, keys, live_keys
from tests.support.table_builder import TableBuilder

EVERY_STRATEGY = pytest.mark.parametrize("strategy", STRATEGIES)
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def small_table(folder: Path) -> TableBuilder:
    """Six versions with removes and a deletion vector."""
    table = TableBuilder(folder).commit(["a", "b", "c%20d"]).commit(["e"], ["b"])
    table.commit([add("a", deletion_vector=relative_dv())], ["a"]).commit(["f"])
    return table.commit(["g"], ["e"]).commit([add("a")], [remove("a", deletion_vector=relative_dv())])


def versions_and_statistics() -> Iterator[Any]:
    """Every version, every form of statistics; both at once in the long suite."""
    long = pytest.mark.long("this version and this form of statistics are each in the default suite")
    for version in range(6):
        for stats in STATS_FORMS:
            marks = [] if version == 3 or stats == STATS_FORMS[0] else [long]
            yield pytest.param(version, stats, marks=marks)


@EVERY_KIND
@pytest.mark.parametrize(("version", "stats"), list(versions_and_statistics()))
def test_rule_14_a_checkpoint_of_any_kind_at_any_version_gives_the_same_table(
    tmp_path: Path, kind: str, version: int, stats: str
) -> None:
    table = small_table(tmp_path).checkpoint(kind, version=version, stats=stats, row_group_rows=2)
    for strategy in STRATEGIES:
        assert live_keys(tmp_path, strategy=strategy) == table.live(), strategy


@EVERY_KIND
@pytest.mark.parametrize("place", ["start", "middle", "end"])
def test_rule_14_protocol_and_metadata_may_sit_anywhere_in_the_checkpoint(
    tmp_path: Path, kind: str, place: str
) -> None:
    table = small_table(tmp_path).checkpoint(kind, version=3, row_group_rows=1, table_state_at=place)
    table.clean_up(before=4)
    assert live_keys(tmp_path) == table.live()
    assert ld.open(str(tmp_path)).metadata.id == table.metadata["id"]


@pytest.mark.parametrize("kind", ["v2-parquet", "v2-json", "classic-named-v2"])
@pytest.mark.parametrize("sidecars", [0, 1, 3])
@EVERY_STRATEGY
def test_rule_14_a_v2_checkpoint_has_any_number_of_sidecars(
    tmp_path: Path, kind: str, sidecars: int, strategy: str
) -> None:
    table = small_table(tmp_path).checkpoint(kind, version=4, sidecars=sidecars).clean_up(before=5)
    assert live_keys(tmp_path, strategy=strategy) == table.live()


def test_rule_14_a_classic_named_v2_checkpoint_is_recognised_by_content(tmp_path: Path) -> None:
    table = small_table(tmp_path).checkpoint("classic-named-v2", version=4).without_hint().clean_up(before=5)
    assert (table.log / f"{4:020}.checkpoint.parquet").exists()
    assert live_keys(tmp_path) == table.live()


@EVERY_STRATEGY
def test_rule_14_a_zero_byte_checkpoint_is_ignored(tmp_path: Path, strategy: str) -> None:
    table = small_table(tmp_path).checkpoint(version=2).checkpoint(version=4)
    table.truncate("*4.checkpoint.parquet", 0)
    scan = ld.open(str(tmp_path)).scan(strategy=strategy)
    assert set(keys(scan.files())) == table.live()
    assert scan.explain().checkpoint_version == 2
    assert not scan.explain().fallbacks, "what is ignored is not damage"


@EVERY_STRATEGY
def test_rule_14_two_of_three_parts_are_no_checkpoint(tmp_path: Path, strategy: str) -> None:
    table = small_table(tmp_path).checkpoint(version=1).checkpoint("v1-multipart", version=4, parts=3)
    table.log_file("*4.checkpoint.0000000002.0000000003.parquet").unlink()
    scan = ld.open(str(tmp_path)).scan(strategy=strategy)
    assert set(keys(scan.files())) == table.live()
    assert scan.explain().checkpoint_version == 1


def test_rule_14_parts_of_two_sets_are_not_mixed(tmp_path: Path) -> None:
    # Part 1 of 2 and part 2 of 3: no set is complete, although the numbers 1 and 2 are there.
    table = small_table(tmp_path).checkpoint("v1-multipart", version=3, parts=2)
    table.checkpoint("v1-multipart", version=3, parts=3)
    table.log_file("*3.checkpoint.0000000002.0000000002.parquet").unlink()
    table.log_file("*3.checkpoint.0000000003.0000000003.parquet").unlink()
    scan = ld.open(str(tmp_path)).scan()
    assert set(keys(scan.files())) == table.live()
    assert scan.explain().checkpoint_version is None


def test_rule_14_a_complete_set_beside_an_incomplete_one_is_used(tmp_path: Path) -> None:
    table = small_table(tmp_path).checkpoint("v1-multipart", version=3, parts=2)
    table.checkpoint("v1-multipart", version=3, parts=3)
    table.log_file("*3.checkpoint.0000000003.0000000003.parquet").unlink()
    table.clean_up(before=4)
    assert live_keys(tmp_path) == table.live()


def test_rule_14_two_v2_checkpoints_of_one_version_are_one_too_many_but_harmless(tmp_path: Path) -> None:
    table = small_table(tmp_path).checkpoint("v2-parquet", version=4).checkpoint("v2-json", version=4)
    table.checkpoint("v1", version=4).clean_up(before=5)
    assert live_keys(tmp_path) == table.live()


HINTS = {
    "missing": None,
    "empty": "",
    "garbage": "{ not json",
    "another shape": "[1, 2]",
    "a version that does not exist": '{"version": 4711, "size": 3}',
    "a version without a checkpoint": '{"version": 3, "size": 3}',
    "stale": '{"version": 1, "size": 3}',
    "wrong parts": '{"version": 4, "size": 3, "parts": 7}',
    "negative": '{"version": -1, "size": 3}',
    "a number too large": '{"version": 99999999999999999999, "size": 3}',
    "no version": '{"size": 3}',
}


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("is_clean", [True, False])
@EVERY_STRATEGY
def test_rule_14_the_hint_counts_only_where_it_matches_the_listing(
    tmp_path: Path, hint: str, is_clean: bool, strategy: str
) -> None:
    table = small_table(tmp_path).checkpoint(version=1).checkpoint(version=4).without_hint()
    text = HINTS[hint]
    if text is not None:
        table.with_hint(text)
    if is_clean:
        table.clean_up(before=4)
    assert live_keys(tmp_path, strategy=strategy) == table.live()


@EVERY_KIND
@EVERY_STRATEGY
def test_rule_14_removes_in_a_checkpoint_never_mask(tmp_path: Path, kind: str, strategy: str) -> None:
    # The checkpoint at 2 holds a tombstone of `a`; the tail adds it again.
    table = TableBuilder(tmp_path).commit(["a", "b"]).commit(removes=["a"]).commit(["c"]).checkpoint(kind)
    table.commit(["a"])
    assert live_keys(tmp_path, strategy=strategy) == table.live() == {(name, None) for name in "abc"}


@EVERY_STRATEGY
def test_rule_14_strange_names_in_the_log_are_ignored(tmp_path: Path, strategy: str) -> None:
    table = small_table(tmp_path).checkpoint(version=3)
    for name in (
        "0000000000000000000a.json",
        "00000000000000000099.json.tmp",
        ".00000000000000000099.json.crc",
        "_commits",
        "99.json",
        "00000000000000000099.checkpoint.json",
        "00000000000000000099.checkpoint.parquet.tmp",
        "00000000000000000099.00000000000000000100.json",
        "00000000000000000098.00000000000000000099.compacted.json",
    ):
        (table.log / name).write_text("not a log file")
    (table.log / "_staged_commits").mkdir()
    (table.log / "_lazy").mkdir()
    (table.log / "_lazy" / f"v{9:020}.manifest.json").write_text("{}")
    (table.log / "v1.json").mkdir()
    assert live_keys(tmp_path, strategy=strategy) == table.live()


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_a_folder_in_the_place_of_a_commit_is_damage_and_not_an_older_version(
    tmp_path: Path, ahead: int
) -> None:
    table = small_table(tmp_path).checkpoint(version=1)
    commit = table.log / f"{table.version + ahead:020}.json"
    commit.unlink(missing_ok=True)
    commit.mkdir()
    told = f"commit {table.version + 1} is missing" if ahead == 2 else "a folder is in the place of a file"
    with pytest.raises(ld.errors.LazyDeltaError, match=told):
        live_keys(tmp_path)


def test_rule_14_a_log_without_any_commit_file_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    table = small_table(tmp_path).checkpoint()
    table.clean_up(before=table.version + 1)
    assert ld.open(str(tmp_path)).version == table.version
    assert live_keys(tmp_path) == table.live()


def test_rule_14_a_table_moved_elsewhere_reads_the_same(tmp_path: Path) -> None:
    table = small_table(tmp_path / "here").checkpoint(version=3)
    shutil.move(tmp_path / "here", tmp_path / "there with space")
    assert live_keys(tmp_path / "there with space") == table.live()
    assert live_keys((tmp_path / "there with space").as_uri()) == table.live()
