"""Changes: feeds and streams by versions and times, what is refused, and pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import actions
from tests.support.serving import RunningServer, running_server
from tests.support.shared_tables import feed_table
from tests.support.sharing import Answer, Sharing, as_delta, table_path
from tests.support.table_builder import TableBuilder

PLAIN = {"minReaderVersion": 1, "minWriterVersion": 4}
FEED = {"delta.enableChangeDataFeed": "true"}
WITH_END = {"delta-sharing-capabilities": "responseformat=parquet;includeendstreamaction=true"}
KINDS = {"add", "remove", "cdf"}


def cdc(name: str) -> dict[str, Any]:
    body = {"path": f"_change_data/{name}", "partitionValues": {"date": "2026-02-08"}, "size": 7}
    return {"cdc": {**body, "dataChange": False}}


def whole_remove(path: str) -> dict[str, Any]:
    return actions.remove(path) | {"partitionValues": {"date": "2026-02-08"}, "size": 1000}


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tables")
    fed = TableBuilder(folder / "fed", protocol=PLAIN, configuration=FEED)
    fed.commit(adds=["a", "b"])
    fed.commit(adds=["c"], removes=[whole_remove("a")], extra_actions=[cdc("x"), cdc("y")])
    fed.commit(adds=[actions.add("compacted", data_change=False)])
    fed.commit(removes=[whole_remove("b")])
    changed = json.loads(json.dumps(fed.metadata))
    changed["description"] = "another"
    fed.commit(adds=["d"], metadata=changed)
    renamed = TableBuilder(folder / "renamed", protocol=PLAIN, configuration=FEED).commit(adds=["a"])
    renamed.commit(metadata=renamed.metadata).commit(adds=["b"])
    late = TableBuilder(folder / "late", protocol=PLAIN).commit(adds=["a"])
    late.commit(adds=["b"], metadata=fed.metadata)
    late.commit(adds=["c"])
    cleaned = TableBuilder(folder / "cleaned", protocol=PLAIN, configuration=FEED)
    for name in "abcde":
        cleaned.commit(adds=[name])
    cleaned.checkpoint(version=3).clean_up(before=3)
    cut = TableBuilder(folder / "cut", protocol=PLAIN, configuration=FEED)
    for name in "abcde":
        cut.commit(adds=[name])
    cut.checkpoint(version=3).clean_up(before=2)  # commit 2 is there, version 2 is not
    vectors = TableBuilder(folder / "vectors", configuration=FEED).commit(adds=["a"])
    vectors.commit(adds=[actions.add("a", deletion_vector=actions.inline_dv())], removes=[whole_remove("a")])
    poor = TableBuilder(folder / "poor", protocol=PLAIN, configuration=FEED).commit(adds=["a"])
    poor.commit(removes=[{"path": "a", "dataChange": True, "deletionTimestamp": 1}])
    mapped = TableBuilder(folder / "mapped", protocol={"minReaderVersion": 2, "minWriterVersion": 5})
    mapped.commit(adds=["a"])
    named = json.loads(json.dumps(mapped.metadata))
    named["configuration"] = {"delta.columnMapping.mode": "name"}
    mapped.commit(adds=["b"], metadata=named).commit(adds=["c"], metadata=mapped.metadata)
    built = {
        "fed": fed,
        "mapped": mapped,
        "late": late,
        "cleaned": cleaned,
        "cut": cut,
        "vectors": vectors,
        "poor": poor,
        "renamed": renamed,
    }
    return {name: str(table.path) for name, table in built.items()} | {"real": feed_table(folder)}


@pytest.fixture(scope="module")
def server(urls: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("config"), urls) as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Sharing:
    return Sharing(server)


def changes(client: Sharing, table: str, headers: dict[str, str] | None = None, **asked: Any) -> Answer:
    return client.get(f"{table_path(table)}/changes", headers, **asked)


def told(answer: Answer) -> list[tuple[int, str]]:
    """Version and kind of every change."""
    assert answer.status == 200, answer.body
    found = [(kind, body) for line in answer.lines for kind, body in line.items() if kind in KINDS]
    return [(body["version"], kind) for kind, body in found]


def message(answer: Answer) -> str:
    assert answer.status == 400, (answer.status, answer.body)
    return str(answer.json["message"])


def test_a_commit_with_change_files_tells_its_changes_by_them_alone(client: Sharing) -> None:
    answer = changes(client, "fed", startingVersion=0)
    assert told(answer) == [(0, "add"), (0, "add"), (1, "cdf"), (1, "cdf"), (3, "remove"), (4, "add")]
    assert answer.headers["delta-table-version"] == "0"
    assert [set(line) for line in answer.lines[:2]] == [{"protocol"}, {"metaData"}]
    removed = next(line["remove"] for line in answer.lines if "remove" in line)
    assert removed["timestamp"] == actions.FIRST_COMMIT_MS + 3 * actions.COMMIT_STEP_MS
    assert (removed["size"], removed["partitionValues"]) == (1000, {"date": "2026-02-08"})


@pytest.mark.parametrize(
    "asked, versions",
    [
        ({"startingVersion": 1, "endingVersion": 3}, {1, 3}),
        ({"startingVersion": 3}, {3, 4}),
        ({"startingVersion": 2, "endingVersion": 2}, set()),
        ({"startingVersion": 4, "endingVersion": 400}, {4}),
        ({"startingTimestamp": "2026-02-02T02:42:30Z"}, {3, 4}),
        ({"startingTimestamp": "2020-01-01T00:00:00Z", "endingTimestamp": "2026-02-02T02:41:00Z"}, {0, 1}),
        ({"startingVersion": 4, "endingTimestamp": "2030-01-01T00:00:00Z"}, {4}),
    ],
)
def test_a_range_has_both_its_ends(client: Sharing, asked: dict[str, Any], versions: set[int]) -> None:
    assert {version for version, _ in told(changes(client, "fed", **asked))} == versions


def test_metadata_of_later_versions_comes_where_it_is_asked_for(client: Sharing) -> None:
    plain = changes(client, "fed", startingVersion=0)
    assert [line["metaData"]["version"] for line in plain.lines if "metaData" in line] == [4]
    whole = changes(client, "fed", startingVersion=0, includeHistoricalMetadata="True")
    assert [line["metaData"]["version"] for line in whole.lines if "metaData" in line] == [0, 4]


def test_a_commit_without_files_ends_nothing(client: Sharing) -> None:
    assert told(changes(client, "renamed", startingVersion=0)) == [(0, "add"), (2, "add")]


def test_in_the_delta_format_actions_are_whole(client: Sharing) -> None:
    answer = changes(client, "fed", as_delta(end=True), startingVersion=1, includeHistoricalProtocol="true")
    assert answer.lines[0]["protocol"]["version"] == 1
    assert answer.lines[1]["metaData"]["version"] == 1
    kinds = [(file["version"], *file["deltaSingleAction"]) for file in answer.files]
    assert kinds == [(1, "cdc"), (1, "cdc"), (3, "remove"), (4, "add")]
    remove = answer.files[2]["deltaSingleAction"]["remove"]
    assert remove["dataChange"] is True and remove["path"].startswith("http://")
    assert answer.end is not None and "minUrlExpirationTimestamp" in answer.end


def test_a_stream_takes_adds_and_removes_whatever_the_feed(client: Sharing) -> None:
    answer = client.query("fed", startingVersion=0)
    assert told(answer) == [(0, "add"), (0, "add"), (1, "remove"), (1, "add"), (3, "remove"), (4, "add")]
    assert [line["metaData"]["version"] for line in answer.lines if "metaData" in line] == [0, 4]
    assert told(client.query("late", startingVersion=0)) == [(0, "add"), (1, "add"), (2, "add")]
    assert told(client.query("fed", startingVersion=1, endingVersion=1)) == [(1, "remove"), (1, "add")]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("table", ["fed", "real"])
def test_pages_together_are_all_changes_once(client: Sharing, table: str, size: int) -> None:
    whole = changes(client, table, startingVersion=0)
    found: list[dict[str, Any]] = []
    token: dict[str, Any] = {}
    for _ in range(40):
        page = changes(client, table, startingVersion=0, maxFiles=size, **token)
        assert len(told(page)) <= size
        found += [line for line in page.lines if set(line) & KINDS]
        if page.end is None or "nextPageToken" not in page.end:
            break
        token = {"pageToken": page.end["nextPageToken"]}
    ids = [[(kind, body["id"], body["version"]) for kind, body in line.items()] for line in found]
    wanted = [line for line in whole.lines if set(line) & KINDS]
    assert ids == [[(kind, body["id"], body["version"]) for kind, body in line.items()] for line in wanted]
    if token:
        assert "another question" in message(
            changes(client, table, startingVersion=1, maxFiles=size, **token)
        )


def test_a_table_without_a_feed_says_so(client: Sharing) -> None:
    assert "no change data feed at version 0" in message(changes(client, "late", startingVersion=0))
    assert told(changes(client, "late", startingVersion=1)) == [(1, "add"), (2, "add")]


def test_ranges_that_are_not_there_are_refused(client: Sharing) -> None:
    assert "no version 5 yet" in message(changes(client, "fed", startingVersion=5))
    assert "behind its end" in message(changes(client, "fed", startingVersion=3, endingVersion=2))
    for table in ("cleaned", "cut"):
        assert "begin at version 3" in message(changes(client, table, startingVersion=1))
        assert told(changes(client, table, startingVersion=3)) == [(3, "add"), (4, "add")]
    assert "version 3 or newer" in message(changes(client, "cut", startingVersion=2))
    assert "no start" in message(changes(client, "fed"))
    assert "both given" in message(
        changes(client, "fed", startingVersion=1, startingTimestamp="2026-02-02T02:42:30Z")
    )
    assert "before the first" in message(
        changes(client, "fed", startingVersion=0, endingTimestamp="2020-01-01T00:00:00Z")
    )
    assert "after the last" in message(changes(client, "fed", startingTimestamp="2030-01-01T00:00:00Z"))
    for wrong in ("-1", "one", "1.5", "99999999999999999999"):
        message(changes(client, "fed", startingVersion=wrong))


def test_deletion_vectors_are_refused_in_the_parquet_format(client: Sharing) -> None:
    assert "deletionvectors" in message(changes(client, "vectors", startingVersion=0))
    answer = changes(client, "vectors", as_delta("deletionvectors", "v2checkpoint"), startingVersion=1)
    added = next(file for file in answer.files if "add" in file["deltaSingleAction"])
    assert added["deltaSingleAction"]["add"]["deletionVector"]["storageType"] == "i"


def test_column_mapping_between_the_ends_is_refused_in_the_parquet_format(client: Sharing) -> None:
    """Files of that time have other names of columns than the metadata that a client is given."""
    answer = client.query("mapped", WITH_END, startingVersion=0)
    assert answer.end is not None
    assert "from version 1 on" in answer.end["errorMessage"]
    assert {body["version"] for line in answer.lines for kind, body in line.items() if kind == "add"} <= {0}
    assert client.query("mapped", startingVersion=2).status == 200
    assert client.query("mapped", as_delta("columnmapping"), startingVersion=0).status == 200


def test_a_remove_that_lacks_what_its_rows_need_is_an_error(client: Sharing) -> None:
    answer = changes(client, "poor", startingVersion=1)
    assert answer.status == 422
    assert "no partition values" in answer.json["message"]
