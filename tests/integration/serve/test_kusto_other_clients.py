"""Kusto's own clients for Node and Java, unchanged: the seeds' queries, types, errors, sign-in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from lazydelta.serve.sign_in import token_digest
from tests.support.kusto import SEEDS
from tests.support.kusto_clients import ask_java, ask_node
from tests.support.kusto_tables import TELEMETRY, TYPES, check_seeds, telemetry_table
from tests.support.serving import RunningServer, running_server

TOKEN = "a-token-of-ann"
Ask = Callable[..., list[Any]]
CLIENTS = [ask_node, pytest.param(ask_java, marks=pytest.mark.spark)]


@pytest.fixture(scope="module")
def telemetry(tmp_path_factory: pytest.TempPathFactory) -> str:
    return telemetry_table(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def served(telemetry: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    write_deltalake(str(folder / "types"), TYPES)
    more = f'[[clients]]\nname = "ann"\ntoken_sha256 = "{token_digest(TOKEN)}"\n'
    more += f'[tables.hidden]\nurl = {json.dumps(telemetry)}\nreaders = ["ben"]\n'
    tables = {TELEMETRY: telemetry, "kinds": str(folder / "types")}
    with running_server(folder, tables, more) as server:
        yield server


@pytest.mark.parametrize("ask", CLIENTS)
def test_the_seeds_queries_and_more_run_unchanged(ask: Ask, served: RunningServer, telemetry: str) -> None:
    questions: list[list[Any]] = [["query", query] for query in SEEDS] + [
        ["query", "kinds"],
        ["mgmt", ".show tables | project TableName"],
        ["mgmt", ".show database main schema as json"],
        ["query", f"declare query_parameters(d:string);{TELEMETRY} | where device_id == d | count",
         {"Parameters": {"d": "sensor-7"}}],
        ["query", "nope | take 1"],
        ["query", "hidden | take 1"],
        ["mgmt", ".drop table kinds"],
        ["query", TELEMETRY, {"Options": {"truncationmaxrecords": 3}}],
    ]  # fmt: skip
    found = ask(served.http_url, questions, token=TOKEN)
    check_seeds(found[:3], telemetry)
    kinds, names, schema, count, unknown, hidden, refused, too_many = found[3:]
    assert [row[3] for row in kinds] == [1, 0.1, None]
    assert [row[6:8] for row in kinds] == [
        ['a"b\\c', {"x": 1, "y": ["a"]}],
        ["é\n😀", {"x": None, "y": []}],
        ["", None],
    ]
    assert names == [[TELEMETRY], ["kinds"]]
    assert list(json.loads(schema[0][0])["Databases"]["main"]["Tables"]) == [TELEMETRY, "kinds"]
    assert count == [[80]]
    assert "SEM0100" in unknown["error"] and "there is no table 'nope'" in unknown["error"]
    assert "there is no table 'hidden'" in hidden["error"]
    assert "read only" in refused["error"]
    assert "LimitsExceeded" in too_many["error"] or "E_QUERY_RESULT_SET_TOO_LARGE" in too_many["error"]
    assert str(Path(telemetry).parent) not in json.dumps(found)


@pytest.mark.parametrize(
    ("ask", "token"),
    [(ask_node, ""), (ask_node, "wrong"), pytest.param(ask_java, "wrong", marks=pytest.mark.spark)],
)
def test_who_does_not_sign_in_gets_nothing(ask: Ask, token: str, served: RunningServer) -> None:
    (found,) = ask(served.http_url, [["query", "print 1"]], token=token)
    assert "401" in json.dumps(found) or "Unauthorized" in json.dumps(found)


def test_nodes_version_1_gets_the_same_rows(served: RunningServer) -> None:
    first, second = ask_node(
        served.http_url, [[kind, "kinds | order by i asc"] for kind in ("query", "v1")], token=TOKEN
    )
    assert first == second and len(first) == 3


@pytest.mark.spark
def test_javas_typed_getters_and_streams(served: RunningServer) -> None:
    columns = "b, i, l, r, d, t, g = guid(74be27de-1e4e-49d9-b579-fe0b331d3642), s"
    text = f"kinds | project {columns} | order by i asc"
    typed, whole, parts = ask_java(
        served.http_url,
        [
            ["typed", text],
            ["stream", text],
            ["stream", text, {"Options": {"results_progressive_enabled": True}}],
        ],
        token=TOKEN,
    )
    by_number = {row["i"]: row for row in typed}
    assert by_number[-5] == {
        "b": True,
        "i": -5,
        "l": 2**53 + 1,
        "r": 1.0,
        "d": "1.10",
        "t": "1970-01-01T00:00",
        "g": "74be27de-1e4e-49d9-b579-fe0b331d3642",
        "s": 'a"b\\c',
    }
    assert by_number[2**31 - 1]["t"] == "2026-02-10T22:15:01.123456"
    assert [by_number[None][name] for name in ("b", "l", "r", "d", "t", "s")] == [None] * 5 + [""]
    (table,) = [frame for frame in whole if frame.get("TableKind") == "PrimaryResult"]
    fragments = [frame["Rows"] for frame in parts if frame["FrameType"] == "TableFragment"]
    assert [row for rows in fragments for row in rows] == table["Rows"]
