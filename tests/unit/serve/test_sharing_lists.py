"""Shares, schemas and tables: pages, names case apart, and nothing that a client may not read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.row_tables import readings_table
from tests.support.serving import RunningServer, running_server
from tests.support.sharing import Answer, Sharing, table_path

TABLES = {  # name -> share, schema, readers
    "orders": ("Sales", "eu", ["ann"]),
    "items": ("Sales", "eu", ["ann", "finance"]),
    "orders_us": ("Sales", "us", ["finance"]),
    "staff": ("people", "main", ["hr"]),
    "open": ("people", "Main", None),
}
CLIENTS = {"ann": [], "bob": ["finance", "hr"], "eve": []}


def token(name: str) -> str:
    return f"token of {name}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = readings_table(tmp_path_factory.mktemp("served"), hours=1)
    clients = "".join(
        f'[[clients]]\nname = "{name}"\nroles = {json.dumps(roles)}\n'
        f'token_sha256 = "{hashlib.sha256(token(name).encode()).hexdigest()}"\n'
        for name, roles in CLIENTS.items()
    )
    tables = "".join(
        f'[tables.{name}]\nurl = {json.dumps(url)}\nshare = "{share}"\nschema = "{schema}"\n'
        + ("" if readers is None else f"readers = {json.dumps(readers)}\n")
        for name, (share, schema, readers) in TABLES.items()
    )
    with running_server(tmp_path_factory.mktemp("config"), {}, clients + tables) as running:
        yield running


def all_items(client: Sharing, path: str, max_results: int | None = None) -> list[dict[str, Any]]:
    """By pages, one after the other."""
    items: list[dict[str, Any]] = []
    asked: dict[str, Any] = {} if max_results is None else {"maxResults": max_results}
    while True:
        page = client.get(path, **asked)
        assert page.status == 200
        assert max_results is None or len(page.json["items"]) <= max_results
        items += page.json["items"]
        if "nextPageToken" not in page.json:
            return items
        asked["pageToken"] = page.json["nextPageToken"]


def refused(answer: Answer, status: int, code: str) -> str:
    assert (answer.status, answer.json["errorCode"]) == (status, code), answer.body
    assert set(answer.json) == {"errorCode", "message"}
    return str(answer.json["message"])


@pytest.mark.parametrize(
    "name, shares",
    [("ann", ["Sales", "people"]), ("bob", ["Sales", "people"]), ("eve", ["people"])],
)
def test_a_client_sees_the_shares_of_tables_that_it_may_read(
    server: RunningServer, name: str, shares: list[str]
) -> None:
    found = all_items(Sharing(server, token(name)), "/shares")
    assert [item["name"] for item in found] == shares
    assert len({item["id"] for item in found}) == len(shares)


@pytest.mark.parametrize("size", [None, 1, 2, 100])
def test_pages_together_are_the_whole_list(server: RunningServer, size: int | None) -> None:
    bob = Sharing(server, token("bob"))
    assert [item["name"] for item in all_items(bob, "/shares/Sales/schemas", size)] == ["eu", "us"]
    tables = all_items(bob, "/shares/Sales/all-tables", size)
    assert [(item["schema"], item["name"]) for item in tables] == [("eu", "items"), ("us", "orders_us")]
    assert tables[0] | {"id": "", "shareId": ""} == {
        "name": "items", "schema": "eu", "share": "Sales", "id": "", "shareId": "", "accessModes": ["url"],
    }  # fmt: skip


def test_names_are_found_case_apart(server: RunningServer) -> None:
    ann = Sharing(server, token("ann"))
    assert ann.get("/shares/sALES").json["share"]["name"] == "Sales"
    assert [item["name"] for item in all_items(ann, "/shares/SALES/schemas/EU/tables")] == ["items", "orders"]
    assert ann.get(f"{table_path('SALES.Eu.OrDERS')}/version").headers["delta-table-version"] == "0"


def test_what_a_client_may_not_read_is_not_found(server: RunningServer) -> None:
    eve = Sharing(server, token("eve"))
    for path in ("/shares/Sales", "/shares/Sales/schemas", "/shares/Sales/all-tables", "/shares/nowhere"):
        message = refused(eve.get(path), 404, "RESOURCE_DOES_NOT_EXIST")
        assert message == f"there is no share {path.split('/')[2]!r}; list what is shared"
    for table in ("Sales.eu.orders", "people.main.staff", "people.main.nothing"):
        hidden, absent = eve.query(table), eve.query("people.Main.absent")
        assert hidden.status == absent.status == 404
    assert "'staff'" in refused(
        Sharing(server, token("ann")).query("people.main.staff"), 404, "RESOURCE_DOES_NOT_EXIST"
    )


def test_without_a_right_token_nothing_is_told(server: RunningServer) -> None:
    for client in (Sharing(server), Sharing(server, "guess")):
        for answer in (client.get("/shares"), client.query("people.Main.open"), client.get("/shares/people")):
            refused(answer, 401, "UNAUTHENTICATED")
            assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_of_another_list_or_client_is_refused(server: RunningServer) -> None:
    ann, bob = Sharing(server, token("ann")), Sharing(server, token("bob"))
    page = ann.get("/shares", maxResults=1).json["nextPageToken"]
    assert ann.get("/shares", pageToken=page).json["items"][0]["name"] == "people"
    for client, path in ((bob, "/shares"), (ann, "/shares/Sales/all-tables")):
        assert "another question" in refused(client.get(path, pageToken=page), 400, "INVALID_PARAMETER_VALUE")
    for wrong in (page[:-1], page + "A", "x", "ä" * 40, page.swapcase(), "A" * 9000):
        refused(ann.get("/shares", pageToken=wrong), 400, "INVALID_PARAMETER_VALUE")


def test_a_page_of_nothing_says_that_there_is_more(server: RunningServer) -> None:
    ann = Sharing(server, token("ann"))
    page = ann.get("/shares", maxResults=0).json
    assert page["items"] == []
    assert len(ann.get("/shares", pageToken=page["nextPageToken"]).json["items"]) == 2
    for wrong in ("-1", "many", str(1 << 40)):
        assert "maxResults" in refused(ann.get("/shares", maxResults=wrong), 400, "INVALID_PARAMETER_VALUE")


def test_unknown_paths_and_methods_are_answered_in_the_protocols_shape(server: RunningServer) -> None:
    ann = Sharing(server, token("ann"))
    refused(ann.get("/nothing"), 404, "RESOURCE_DOES_NOT_EXIST")
    refused(ann.ask("DELETE", "/delta-sharing/shares"), 405, "METHOD_NOT_ALLOWED")
    assert (
        ann.ask("HEAD", f"/delta-sharing{table_path('Sales.eu.items')}").headers["delta-table-version"] == "0"
    )


def test_a_table_that_is_taken_away_is_not_found_from_then_on(tmp_path: Path) -> None:
    url = readings_table(tmp_path, hours=1)
    with running_server(tmp_path, {"one": url, "two": url}) as server:
        client = Sharing(server)
        link = client.query("two").files[0]["url"]
        assert client.ask("GET", link).status == 200
        text = server.path.read_text("utf-8")
        server.path.write_text(text[: text.index("[tables.two]")], "utf-8")
        assert server.process.reload()
        assert client.query("two").status == 404
        assert client.ask("GET", link).status == 404
        assert client.query("one").status == 200
