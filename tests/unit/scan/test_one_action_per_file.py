"""A commit that adds and removes one file contradicts itself: readers disagree on it, so it is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.actions import add, inline_dv, remove
from tests.support.cached import CACHED, UNCACHED
from tests.support.reading import keys
from tests.support.sidecar_damage import storage_of
from tests.support.table_builder import TableBuilder

SCANS: list[dict[str, Any]] = [
    {"strategy": "reverse"},
    {"strategy": "forward"},
    {"order": "asc"},
    {"limit": 100},
    {"strict": True},
]
TWICE = [
    [{"remove": remove("x")}, {"add": add("x", size=2)}],
    [{"add": add("x", size=2)}, {"remove": remove("x")}],
    [{"remove": remove("x", deletion_vector=inline_dv())}, {"add": add("x", deletion_vector=inline_dv())}],
    [{"add": add("x%20y")}, {"remove": remove("file://{root}/x%20y")}],
]


def built(folder: Path, actions: list[dict[str, Any]]) -> TableBuilder:
    """The commit in question is version 3 of 5."""
    table = TableBuilder(folder).commit(["x", "a"]).checkpoint().commit(["b"]).commit(["c"])
    placed = [
        {kind: body | {"path": body["path"].replace("{root}", str(folder))} for kind, body in action.items()}
        for action in actions
    ]
    table.commit(extra_actions=placed)
    return table.commit(["d"]).commit(["e"])


@pytest.mark.parametrize("options", [CACHED, UNCACHED], ids=["cached", "uncached"])
@pytest.mark.parametrize("scan", SCANS, ids=str)
@pytest.mark.parametrize("actions", TWICE, ids=["remove add", "add remove", "vectors", "spellings"])
def test_a_file_that_one_commit_adds_and_removes_is_an_error_that_names_it(
    tmp_path: Path, actions: list[dict[str, Any]], scan: dict[str, Any], options: dict[str, str]
) -> None:
    built(tmp_path, actions)
    with pytest.raises(CorruptLogError, match="commit 3 adds and removes one file: x") as error:
        list(ld.open(tmp_path, storage_options=options).scan(**scan).files())
    assert "read version 2" in error.value.fix
    assert len(list(ld.open(tmp_path, version=2).scan(**scan).files())) == 4


@pytest.mark.parametrize("scan", SCANS, ids=str)
def test_files_that_differ_in_their_vector_are_two_and_later_commits_may_say_otherwise(
    tmp_path: Path, scan: dict[str, Any]
) -> None:
    table = TableBuilder(tmp_path).commit(["x", "y"]).checkpoint()
    table.commit([add("x", deletion_vector=inline_dv())], [remove("x")])
    table.commit(removes=[remove("x", deletion_vector=inline_dv()), remove("y")])
    table.commit(["x", "y"]).commit(removes=["y"])
    assert set(keys(ld.open(tmp_path).scan(**scan).files())) == table.live() == {("x", None)}


def test_what_a_checkpoint_has_settled_or_a_limit_leaves_out_is_not_judged(tmp_path: Path) -> None:
    table = built(tmp_path, TWICE[0])
    assert len(list(ld.open(tmp_path).scan(limit=1, commit_read_parallelism=1).files())) == 1
    table.checkpoint(version=4)
    assert len(list(ld.open(tmp_path).scan().files())) == 6


def test_delta_files_are_judged_as_their_commits_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazydelta.limits.SIDECAR_DELTA_COMMITS", 3)
    built(tmp_path, TWICE[0])
    write_delta_files(storage_of(tmp_path), config=SidecarConfig(delta_commits_min=1))
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan(commit_read_parallelism=1)
    with pytest.raises(CorruptLogError, match="commit 3 adds and removes one file: x"):
        list(scan.files())
    assert scan.explain().delta_files == 1
