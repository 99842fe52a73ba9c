"""Commits and checkpoints that log cleanup takes while a scan is under way, told in `explain`."""

from __future__ import annotations

from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError
from tests.support.cached import UNCACHED
from tests.support.reading import keys
from tests.support.table_builder import TableBuilder

ONE_BY_ONE = {**UNCACHED, "delta.commit.parallelism": "1"}


def built(folder: Path, commits: int = 12) -> TableBuilder:
    """A checkpoint at version 0 and a tail, one file for each version; opening reads the `.crc` alone."""
    table = TableBuilder(folder).commit(["v0"]).checkpoint()
    for version in range(1, commits):
        table.commit([f"v{version}"], [f"v{version - 3}"] if version % 4 == 0 else [])
    return table.crc()


def cleaned(table: TableBuilder, checkpoint: int) -> None:
    """As Delta does it: the checkpoint's own commit stays."""
    table.checkpoint(version=checkpoint).clean_up(before=checkpoint)


@pytest.mark.parametrize(
    "where", [{"strategy": "reverse"}, {"strategy": "forward"}, {"order": "desc"}], ids=str
)
def test_a_scan_goes_on_from_the_newer_checkpoint_and_says_so(tmp_path: Path, where: dict[str, str]) -> None:
    table = built(tmp_path)
    scan = ld.open(tmp_path, storage_options=ONE_BY_ONE).scan(**where)
    cleaned(table, 7)
    found = keys(scan.files())
    assert len(found) == len(set(found))
    assert set(found) == table.live()
    report = scan.explain()
    assert report.fallbacks_by_kind == {"log_cleaned_up": 1}
    assert "vanished after it was listed; went on from checkpoint 7" in report.fallbacks[0]
    assert report.source == "checkpoint 7"
    assert "cleaned up under the scan" in report.source_reason


def test_a_checkpoint_newer_than_the_version_does_not_help(tmp_path: Path) -> None:
    table = built(tmp_path).crc(6)
    scan = ld.open(tmp_path, version=6, storage_options=ONE_BY_ONE).scan()
    cleaned(table, 9)
    with pytest.raises(CorruptLogError, match=r"commit \d vanished after it was listed") as gone:
        list(scan.files())
    assert "open the table again" in gone.value.fix


def test_without_the_fallback_it_is_an_error(tmp_path: Path) -> None:
    table = built(tmp_path)
    scan = ld.open(tmp_path, storage_options=ONE_BY_ONE).scan(enable_fallback=False)
    cleaned(table, 7)
    with pytest.raises(CorruptLogError, match="vanished after it was listed"):
        list(scan.files())


def test_a_checkpoint_of_another_table_does_not_serve(tmp_path: Path) -> None:
    table = built(tmp_path)
    scan = ld.open(tmp_path, storage_options=ONE_BY_ONE).scan()
    metadata = table.states[7].metadata
    assert metadata is not None
    table.states[7].metadata = metadata | {"id": "another"}
    cleaned(table, 7)
    with pytest.raises(CorruptLogError, match="vanished after it was listed"):
        list(scan.files())


def test_commits_that_were_written_anew_do_not_serve(tmp_path: Path) -> None:
    table = built(tmp_path)
    scan = ld.open(tmp_path, storage_options=ONE_BY_ONE).scan()
    cleaned(table, 7)
    table.append_to_commit(7, "\n")  # its own commit is all that is left to compare
    with pytest.raises(CorruptLogError, match="vanished after it was listed"):
        list(scan.files())


def test_a_checkpoint_that_is_taken_half_way_is_left_for_the_newer_one(tmp_path: Path) -> None:
    names = [f"{number:04}-{'x' * 60}" for number in range(300)]  # more than comes with the footer
    table = TableBuilder(tmp_path).commit(names).checkpoint(row_group_rows=20, table_state_at="end")
    table.commit(["new"], [names[5]]).commit([names[5], "newer"]).crc()
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan(checkpoint_row_groups_per_batch=1)
    files = scan.files()
    found = keys([next(files) for _ in range(30)])
    cleaned(table, 1)
    (table.log / f"{0:020}.checkpoint.parquet").unlink()
    found += keys(files)
    assert len(found) == len(set(found))
    assert set(found) == table.live()


def test_where_the_newest_version_is_gone_while_it_is_opened_the_newest_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"])
    known = ld.log.snapshot.find_segment

    def slow(*arguments: object, **more: object) -> object:
        found = known(*arguments, **more)
        if table.version == 2:  # after the listing
            cleaned(table.commit(["d"]).commit(["e"]), 4)
        return found

    monkeypatch.setattr("lazydelta.log.snapshot.find_segment", slow)
    opened = ld.open(tmp_path, storage_options=UNCACHED)
    assert opened.version == 4
    assert set(keys(opened.scan().files())) == table.live()
