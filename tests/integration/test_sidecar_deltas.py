"""Delta files follow one another from the checkpoint on, bound to their commits, and mend themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lazydelta.errors import InvalidRequestError, StorageError
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep import deltas
from lazydelta.upkeep.deltas import write_delta_files
from tests.support import actions
from tests.support.actions import relative_dv
from tests.support.faulty_storage import fail_at, faulty
from tests.support.sidecar_twin import LAZY
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import SCHEMA, file_at, removed, storage_of, telemetry

CONFIG = SidecarConfig(delta_commits_min=3)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """A checkpoint at version 0, and nothing after it."""
    return telemetry(tmp_path).commit([file_at(0, "first")]).checkpoint()


def grown(table: TableBuilder, commits: int) -> TableBuilder:
    for _ in range(commits):
        number = table.version + 1
        table.commit([file_at(number, f"f{number}")], [removed(number - 1, f"f{number - 1}")])
    return table


def written(table: TableBuilder, **options: Any) -> list[str]:
    names = write_delta_files(storage_of(table), **{"config": CONFIG} | options)
    return [name.removeprefix(f"{LAZY}/") for name in names]


def delta(checkpoint: int, until: int) -> str:
    return f"v{checkpoint:020}_{until:020}.delta.parquet"


def facts_of(table: TableBuilder, name: str) -> dict[str, Any]:
    keys = pq.read_metadata(table.path / LAZY / name).metadata
    found: dict[str, Any] = json.loads(keys[b"lazydelta.delta"])
    return found


def rows_of(table: TableBuilder, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(table.path / LAZY / name).to_pylist()
    return rows


def test_few_commits_are_left_alone(table: TableBuilder) -> None:
    assert written(grown(table, 2)) == []
    assert written(grown(table, 1)) == [delta(0, 3)]
    assert written(table) == []


def test_files_begin_where_the_one_before_ended(table: TableBuilder) -> None:
    assert written(grown(table, 3)) == [delta(0, 3)]
    assert written(grown(table, 2)) == []
    assert written(grown(table, 2)) == [delta(0, 7)]
    spans = [(facts["after"], facts["until"]) for facts in [facts_of(table, name) for name in _names(table)]]
    assert spans == [(0, 3), (3, 7)]


def test_a_file_tells_every_action_that_decides_files_in_the_order_of_the_log(table: TableBuilder) -> None:
    evolved = actions.metadata(SCHEMA | {"extra": "long"}, partition_columns=("_event_hour",))
    table.commit([file_at(1, "a", deletion_vector=relative_dv(offset=4))], [removed(0, "first")])
    table.commit([file_at(2, "b")], metadata=evolved, protocol=table.protocol)
    table.commit([], ["x y.parquet"], extra_actions=[{"txn": {"appId": "app", "version": 1}}])
    [name] = written(table)
    rows = rows_of(table, name)
    assert [(row["version"], row["action"], row["path"]) for row in rows] == [
        (1, "remove", "_event_hour=0000000000/first.parquet"),
        (1, "add", "_event_hour=0000000001/a.parquet"),
        (2, "protocol", None),
        (2, "metaData", None),
        (2, "add", "_event_hour=0000000002/b.parquet"),
        (3, "remove", "x y.parquet"),
    ]
    assert (rows[1]["dv.storageType"], rows[1]["dv.offset"], rows[1]["min.value"]) == ("u", 4, 1.0)
    assert json.loads(rows[3]["metadata"])["schemaString"] == evolved["schemaString"]
    assert "min.extra" in rows[0]
    facts = facts_of(table, name)
    assert facts["other_actions"] == {"commitInfo": 3, "txn": 1}
    assert facts["commit"]["name"] == f"{3:020}.json"
    assert facts["commit"]["size_bytes"] == (table.log / f"{3:020}.json").stat().st_size


def test_after_the_next_checkpoint_files_begin_anew(table: TableBuilder) -> None:
    written(grown(table, 3))
    table.checkpoint()
    assert written(grown(table, 3)) == [delta(3, 6)]


@pytest.mark.parametrize("how", ["torn", "of another log", "with a gap"])
def test_a_file_that_is_no_use_is_written_anew_with_those_after_it(table: TableBuilder, how: str) -> None:
    written(grown(table, 3))
    written(grown(table, 3))
    first = table.path / LAZY / delta(0, 3)
    match how:
        case "torn":
            first.write_bytes(first.read_bytes()[:-5])
        case "of another log":
            table.append_to_commit(3, '{"commitInfo":{}}\n')
        case "with a gap":
            first.unlink()
    assert written(table) == [delta(0, 6)]
    assert _names(table) == [delta(0, 6)]
    assert [row["version"] for row in rows_of(table, delta(0, 6))] == sorted([*range(1, 7)] * 2)


def test_files_are_written_anew_where_that_is_asked_for(table: TableBuilder) -> None:
    written(grown(table, 3))
    first = table.path / LAZY / delta(0, 3)
    whole = first.read_bytes()
    first.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    assert written(table) == [], "damage of equal size inside a page is not seen"
    assert written(table, anew=True) == [delta(0, 3)]
    assert len(rows_of(table, delta(0, 3))) == 6


def test_a_version_that_files_reach_already_needs_none(table: TableBuilder) -> None:
    written(grown(table, 6))
    assert written(table, version=4) == []
    assert _names(table) == [delta(0, 6)]


def test_many_commits_are_split_by_their_size(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    grown(table, 6)
    size = (table.log / f"{3:020}.json").stat().st_size
    monkeypatch.setattr(deltas, "_COMMIT_BYTES_MAX", int(2.5 * size))
    assert written(table) == [delta(0, 2), delta(0, 4), delta(0, 6)]
    assert written(table) == []


def test_a_writer_that_comes_second_leaves_the_first_ones_file(table: TableBuilder) -> None:
    grown(table, 3)
    other = faulty(storage_of(table), lambda _: None)
    original = other.put_if_absent

    def overtaken(name: str, body: bytes) -> bool:
        assert write_delta_files(storage_of(table), config=CONFIG)
        return original(name, body)

    other.put_if_absent = overtaken  # type: ignore[method-assign]
    other.scoped = lambda *_, **__: other  # type: ignore[method-assign]
    assert write_delta_files(other, config=CONFIG) == []
    assert _names(table) == [delta(0, 3)]


def test_whichever_call_fails_no_torn_file_stays(table: TableBuilder) -> None:
    grown(table, 3)
    counting = faulty(storage_of(table), lambda _: None)
    write_delta_files(counting, config=CONFIG)
    (table.path / LAZY / delta(0, 3)).unlink()
    for number in range(1, len(counting.log.calls) + 1):
        try:
            write_delta_files(faulty(storage_of(table), fail_at(number)), config=CONFIG)
            (table.path / LAZY / delta(0, 3)).unlink()
        except StorageError:
            assert _names(table) == []
    assert written(table) == [delta(0, 3)]


def test_a_table_without_a_checkpoint_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    table = telemetry(tmp_path).commit([file_at(1, "a")])
    with pytest.raises(InvalidRequestError, match="no checkpoint") as caught:
        written(table)
    assert "checkpoint" in caught.value.fix


def _names(table: TableBuilder) -> list[str]:
    return sorted(path.name for path in (table.path / LAZY).glob("*.delta.parquet"))
