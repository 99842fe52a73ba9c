"""The `delta-sharing` package for Python reads what the scan reads in process, in both formats."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lazydelta as ld
from tests.support.row_tables import Row, all_readings, by_id, readings_table
from tests.support.serving import RunningServer, running_server
from tests.support.shared_tables import feed_table, mapped_rows, mapped_table, vector_feed_table
from tests.support.sharing_peer import PeerError, SharingPeer, sharing_peer
from tests.support.table_builder import TableBuilder

TOKEN = "a-token-of-the-test"
CLIENTS = f"""
[[clients]]
name = "reader"
token_sha256 = "{hashlib.sha256(TOKEN.encode()).hexdigest()}"
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("shared")
    return {
        "readings": readings_table(folder, checkpoint_at=4),
        "feed": feed_table(folder),
        "mapped": mapped_table(folder),
        "vector_feed": vector_feed_table(folder),
        "broken": broken_table(folder),
        "damaged": str(TableBuilder(folder / "damaged").commit(adds=["a"]).corrupt("*0.json").path),
    }


def broken_table(folder: Path) -> str:
    """Its newest commits are fine, an older one is not."""
    table = TableBuilder(folder / "broken", protocol={"minReaderVersion": 1, "minWriterVersion": 2})
    table.commit(adds=["old"])
    for part in range(3):
        table.commit(adds=[f"{part}-{number}" for number in range(1000)])
    return str(table.crc().corrupt(f"{1:020}.json", b'{"add": 5}\n').path)


def dated(table: str) -> dt.datetime:
    """The time of the first commit, now that they are ten seconds apart, and not a few milliseconds."""
    first = dt.datetime(2026, 2, 10, tzinfo=dt.UTC)
    for commit in sorted(Path(table, "_delta_log").glob("*.json")):
        at = (first + dt.timedelta(seconds=10 * int(commit.stem))).timestamp()
        os.utime(commit, (at, at))
    return first


@pytest.fixture(scope="module")
def server(tables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("config"), tables, CLIENTS) as running:
        yield running


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharingPeer]:
    with sharing_peer(tmp_path_factory.mktemp("peer")) as running:
        yield running


@pytest.fixture(scope="module")
def profile(peer: SharingPeer, server: RunningServer) -> str:
    return peer.profile(server, TOKEN)


def loaded(peer: SharingPeer, profile: str, table: str, options: str = "") -> list[Row]:
    found = peer.ask(
        f"rows(delta_sharing.load_as_pandas({f'{profile}#lazydelta.main.{table}'!r}, {options}))"
    )
    return by_id([{**row, **({"day": row["day"][:10]} if "day" in row else {})} for row in found])


def test_the_client_finds_what_is_shared(peer: SharingPeer, profile: str) -> None:
    assert peer.ask(f"[share.name for share in SharingClient({profile!r}).list_shares()]") == ["lazydelta"]
    found = peer.ask(f"[(t.share, t.schema, t.name) for t in SharingClient({profile!r}).list_all_tables()]")
    names = ("broken", "damaged", "feed", "mapped", "readings", "vector_feed")
    assert found == [["lazydelta", "main", name] for name in names]


def test_the_client_is_told_the_version(peer: SharingPeer, profile: str, tables: dict[str, str]) -> None:
    url = f"{profile}#lazydelta.main.readings"
    assert peer.ask(f"delta_sharing.get_table_version({url!r})") == ld.open(tables["readings"]).version
    second = dated(tables["readings"]) + dt.timedelta(seconds=20)
    asked = second.isoformat().replace("+00:00", "Z")
    assert peer.ask(f"delta_sharing.get_table_version({url!r}, starting_timestamp={asked!r})") == 2


@pytest.mark.parametrize("options", ["", "use_delta_format=True", "convert_in_batches=True"])
def test_the_client_reads_the_rows(peer: SharingPeer, profile: str, options: str) -> None:
    assert loaded(peer, profile, "readings", options) == all_readings()


def test_the_client_reads_deletion_vectors_and_mapped_columns(
    peer: SharingPeer, profile: str, tables: dict[str, str]
) -> None:
    in_process = [
        {**row, "day": f"{row['day']:%Y-%m-%d}"}
        for row in by_id(ld.open(tables["mapped"]).to_arrow().to_pylist())
    ]
    assert in_process == mapped_rows()
    assert loaded(peer, profile, "mapped") == mapped_rows()


@pytest.mark.parametrize("options", ["limit=35", "limit=35, use_delta_format=True"])
def test_a_limit_gives_that_many_rows(peer: SharingPeer, profile: str, options: str) -> None:
    found = loaded(peer, profile, "readings", options)
    assert len(found) == 35
    assert all(row in all_readings() for row in found)


def test_no_row_is_a_row_too_many(peer: SharingPeer, profile: str) -> None:
    assert loaded(peer, profile, "readings", "limit=0") == []
    assert loaded(peer, profile, "mapped", "limit=1") == mapped_rows()[:1]


def test_an_older_version_is_read(peer: SharingPeer, profile: str, tables: dict[str, str]) -> None:
    wanted = by_id(ld.open(tables["readings"], version=2).to_arrow().to_pylist())
    assert loaded(peer, profile, "readings", "version=2") == wanted
    assert loaded(peer, profile, "readings", "version=2, use_delta_format=True") == wanted
    with pytest.raises(PeerError, match=r"(?s)400.*version 99"):
        loaded(peer, profile, "readings", "version=99")


def test_hints_drop_files_and_no_row_that_matches(peer: SharingPeer, profile: str) -> None:
    url = f"{profile}#lazydelta.main.readings"
    found = peer.ask(f"""rows(hinted({url!r}, ["_event_hour = '2026021003'", "value > 5"]))""")
    wanted = [row for row in all_readings() if row["_event_hour"] == "2026021003"]
    assert by_id(found) == wanted
    hint = {
        "op": "lessThan",
        "children": [
            {"op": "column", "name": "_event_hour", "valueType": "string"},
            {"op": "literal", "value": "2026021002", "valueType": "string"},
        ],
    }
    found = loaded(peer, profile, "readings", f"jsonPredicateHints={json.dumps(hint)!r}")
    assert found == [row for row in all_readings() if row["_event_hour"] < "2026021002"]


CHANGES = [
    (0, 0, "insert"), (0, 1, "insert"), (0, 2, "insert"), (0, 3, "insert"),
    (1, 4, "insert"), (1, 5, "insert"), (1, 6, "insert"), (1, 7, "insert"),
    (2, 5, "update_postimage"), (2, 5, "update_preimage"),
    (3, 1, "delete"), (3, 6, "delete"),
    (4, 8, "insert"), (4, 9, "insert"),
]  # fmt: skip


@pytest.mark.parametrize("form", ["", ", use_delta_format=True"])
@pytest.mark.parametrize("first, last", [(0, 4), (2, 3), (4, 4)])
def test_the_client_reads_changes(peer: SharingPeer, profile: str, form: str, first: int, last: int) -> None:
    url = f"{profile}#lazydelta.main.feed"
    asked = f"starting_version={first}, ending_version={last}{form}"
    found = peer.ask(f"rows(delta_sharing.load_table_changes_as_pandas({url!r}, {asked}))")
    told = sorted((row["_commit_version"], row["id"], row["_change_type"]) for row in found)
    assert told == [change for change in CHANGES if first <= change[0] <= last]
    updated = [row["value"] for row in found if row["_change_type"] == "update_postimage"]
    assert updated == ([105.0] if first <= 2 <= last else [])


def test_the_client_tells_changes_by_deletion_vectors(peer: SharingPeer, profile: str) -> None:
    url = f"{profile}#lazydelta.main.vector_feed"
    asked = f"delta_sharing.load_table_changes_as_pandas({url!r}, starting_version=0, use_delta_format=True)"
    found = sorted(
        (row["_commit_version"], row["id"], row["_change_type"]) for row in peer.ask(f"rows({asked})")
    )
    assert found == [*((0, id_, "insert") for id_ in range(10)), (1, 2, "delete"), (1, 7, "delete")]
    assert [row["id"] for row in loaded(peer, profile, "vector_feed")] == [0, 1, 3, 4, 5, 6, 8, 9]


@pytest.mark.parametrize("options", ["", "use_delta_format=True"])
def test_an_answer_that_breaks_off_is_an_error_and_not_fewer_rows(
    peer: SharingPeer, profile: str, options: str
) -> None:
    with pytest.raises(PeerError, match=r"ended prematurely|broken|IncompleteRead|500"):
        loaded(peer, profile, "broken", options)


def test_a_damaged_table_is_told_at_once_and_not_asked_for_again(peer: SharingPeer, profile: str) -> None:
    began = time.monotonic()
    with pytest.raises(PeerError, match=r"(?s)422.*TABLE_IS_DAMAGED"):
        loaded(peer, profile, "damaged")
    assert time.monotonic() - began < 60  # it tries for minutes what is 429 or 5xx


def test_changes_from_a_time_on(peer: SharingPeer, profile: str, tables: dict[str, str]) -> None:
    moment = dated(tables["feed"]) + dt.timedelta(seconds=25)  # between the second and the third
    asked = f"starting_timestamp={moment.isoformat().replace('+00:00', 'Z')!r}"
    url = f"{profile}#lazydelta.main.feed"
    found = peer.ask(f"rows(delta_sharing.load_table_changes_as_pandas({url!r}, {asked}))")
    assert {row["_commit_version"] for row in found} == {3, 4}


def test_the_client_says_why_there_are_no_changes(peer: SharingPeer, profile: str) -> None:
    url = f"{profile}#lazydelta.main.readings"
    with pytest.raises(PeerError, match=r"(?s)400.*no change\s.*data feed at version 0"):
        peer.ask(f"delta_sharing.load_table_changes_as_pandas({url!r}, starting_version=0)")


def test_a_wrong_token_and_an_unknown_table_are_told_apart(
    peer: SharingPeer, server: RunningServer, profile: str
) -> None:
    wrong = peer.profile(server, "another-token")
    with pytest.raises(PeerError, match="401"):
        loaded(peer, wrong, "readings")
    with pytest.raises(PeerError, match=r"(?s)404.*there is no table 'secret'"):
        loaded(peer, profile, "secret")


def test_the_profile_is_a_file_of_four_lines(profile: str) -> None:
    assert set(json.loads(Path(profile).read_text("utf-8"))) == {
        "shareCredentialsVersion",
        "endpoint",
        "bearerToken",
    }
