"""Management commands, stored functions, and who sees what of both."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.check import findings
from lazydelta.serve.config import load_config
from lazydelta.serve.sign_in import token_digest
from tests.support.kusto import QUERY, SECONDS, error, post, rows
from tests.support.row_tables import all_readings, readings_table
from tests.support.serve_process import ROOT
from tests.support.serving import RunningServer, running_server

ANN, BEN, EVE = ({"authorization": f"Bearer {name}"} for name in ("ann", "ben", "eve"))
CLIENTS = "".join(
    f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name)}"\nroles = {json.dumps(roles)}\n'
    for name, roles in (("ann", ["analysts"]), ("ben", []), ("eve", ["operators"]))
)
FUNCTIONS = """
[functions.Recent]
body = "readings | where id >= 200"
comment = "the newest"

[functions.Since]
parameters = "(least:long)"
body = "readings | where id >= least * 1"

[functions.Sealed]
body = "secret | count"

[functions.Wrapped]
body = "Sealed()"
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("kusto")
    url = readings_table(folder)
    more = f'query_admins = ["operators"]\n{CLIENTS}'
    more += f'[tables.secret]\nurl = {json.dumps(url)}\nreaders = ["analysts"]\nschema = "vault"\n'
    more += f'[tables.readings]\nurl = {json.dumps(url)}\ncomment = "by the hour"\n{FUNCTIONS}'
    with running_server(folder, {}, more) as server:
        yield server


def named(server: RunningServer, text: str, headers: dict[str, str], **how: Any) -> list[dict[str, Any]]:
    """Rows by the names of their columns."""
    answer = post(server, text, headers=headers, **how)
    assert answer.status_code == 200, answer.text
    table = answer.json()["Tables"][0]
    names = [column["ColumnName"] for column in table["Columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["Rows"]]


@pytest.mark.parametrize("text", ["print 1", ".show tables", "readings | take 1"])
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": "Basic x"}])
def test_nobody_gets_anything_without_signing_in(
    served: RunningServer, text: str, headers: dict[str, str]
) -> None:
    answer = post(served, text, headers=headers)
    assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert error(answer)["code"] == "Unauthorized"


@pytest.mark.parametrize(
    "text",
    [
        "{0} | take 1",
        "external_table('{0}') | take 1",
        "table('{0}') | count",
        "database('vault').{0} | count",
        "database('vault').table('{0}') | count",
        ".show external table {0}",
        ".show table {0} cslschema",
    ],
)
def test_a_table_that_one_may_not_read_is_not_there(served: RunningServer, text: str) -> None:
    hidden = post(served, text.format("secret"), headers=BEN)
    absent = post(served, text.format("secre1"), headers=BEN)
    assert hidden.status_code == absent.status_code == 400
    assert error(hidden)["@message"] == error(absent)["@message"].replace("secre1", "secret")
    assert post(served, text.format("secret"), headers=ANN).status_code == 200


def test_no_list_names_what_one_may_not_read(served: RunningServer) -> None:
    commands = [".show tables", ".show external tables", ".show databases", ".show database schema"]
    commands += [".show schema as json", ".show database main schema as json", ".show functions"]
    for command in commands:
        seen = post(served, command, headers=BEN)
        assert seen.status_code == 200, seen.text
        assert not {"secret", "vault", "Sealed", "Wrapped"} & set(words(seen.text)), command
    assert "secret" in post(served, ".show tables", headers=ANN, db="").text
    for text in ("nope", "nope()", "database('nope').x", "union secre* | count", "Sealed()", "Wrapped()"):
        told = post(served, text, headers=BEN)
        assert told.status_code == 400 and "secret'" not in told.text.replace("'secret'", ""), text
        assert "vault" not in told.text, text


def words(text: str) -> list[str]:
    return text.replace('"', " ").replace("\\", " ").replace(",", " ").replace("'", " ").split()


def test_a_wildcard_reads_what_one_may_read(served: RunningServer) -> None:
    assert rows(served, "union * | count", headers=BEN) == [[len(all_readings())]]
    assert rows(served, "union * | count", headers=ANN) == [[2 * len(all_readings())]]


def test_tables_and_databases_are_listed(served: RunningServer) -> None:
    databases = named(served, ".show databases", ANN)
    assert [one["DatabaseName"] for one in databases] == ["main", "vault"]
    tables = named(served, ".show tables", ANN, db="")
    assert [(one["TableName"], one["DatabaseName"], one["DocString"]) for one in tables] == [
        ("readings", "main", "by the hour"),
        ("secret", "vault", ""),
    ]
    assert [one["TableName"] for one in named(served, ".SHOW  tables", ANN)] == ["readings"]
    external = named(served, ".show external tables", ANN)
    assert [(one["TableName"], one["TableType"], one["ConnectionStrings"]) for one in external] == [
        ("readings", "Delta", [])
    ]


def test_schemas_are_told_in_each_form(served: RunningServer) -> None:
    csl = "id:long,value:real,device:string,_event_hour:string"
    for text in (
        ".show external table readings schema as csl",
        ".show table ['readings'] cslschema",
        '.show table ["readings"] schema',
    ):
        (row,) = named(served, text, ANN)
        assert sorted(row["Schema"].split(",")) == sorted(csl.split(",")), text
    (row,) = named(served, ".show external table readings schema as json", ANN)
    kinds = {one["Name"]: one["CslType"] for one in json.loads(row["Schema"])["OrderedColumns"]}
    assert kinds == dict(part.split(":") for part in csl.split(","))
    for text in (".show database main schema as json", ".show database schema as json"):
        (row,) = named(served, text, ANN)
        tree = json.loads(row["DatabaseSchema"])["Databases"]["main"]
        assert list(tree["Tables"]) == list(tree["ExternalTables"]) == ["readings"]
        assert sorted(tree["Functions"]) == ["Recent", "Sealed", "Since", "Wrapped"]
    lines = named(served, ".show database schema", ANN)
    assert [(one["ColumnName"], one["ColumnType"]) for one in lines if one["ColumnName"] == "id"] == [
        ("id", "System.Int64")
    ]


@pytest.mark.parametrize(
    "command",
    [
        ".create table X (a:long)",
        ".drop table readings",
        ".set-or-append X <| readings",
        ".ingest inline into table X <| 1",
        ".alter table X (a:long)",
        ".delete table X records <| X",
        ".append X <| print 1",
        ".export to csv ('x') <| readings",
        ".clear table X data",
        ".purge table X",
        ".rename table a to b",
        ".attach database x",
        ".execute database script <| x",
    ],
)
def test_commands_that_write_are_refused_by_name(served: RunningServer, command: str) -> None:
    answer = post(served, command, headers=ANN)
    assert answer.status_code == 403
    found = error(answer)
    assert found["code"] == "Forbidden"
    assert f"the command {' '.join(command.split()[:2])}" in found["@message"]


@pytest.mark.parametrize(
    "command", [".", ". show", ".show", ".show nothing", ".cancel", ".cancel query", ".show tables x"]
)
def test_commands_that_are_not_known_are_told_which_are(served: RunningServer, command: str) -> None:
    answer = post(served, command, headers=ANN)
    assert answer.status_code == 400 and ".show tables" in error(answer)["@message"]


def test_a_command_may_go_on_as_a_query(served: RunningServer) -> None:
    assert rows(served, ".show tables | where TableName has 'readings' | project TableName", headers=ANN) == [
        ["readings"]
    ]
    assert rows(served, ".show databases | count", headers=BEN) == [[1]]
    found = rows(served, ".show queries | where State == 'Completed' | summarize count()", headers=ANN)
    assert found[0][0] > 0


def test_an_unknown_database_is_told_with_those_that_one_sees(served: RunningServer) -> None:
    answer = post(served, "print 1", headers=BEN, db="mian")
    found = error(answer)
    assert answer.status_code == 400 and found["code"] == "BadRequest_DatabaseNotExist"
    assert "did you mean main?" in found["@message"] and "vault" not in found["@message"]
    for name in ("MAIN", "", "NetDefaultDB"):
        assert rows(served, "print 1", headers=BEN, db=name) == [[1]]


def test_clients_see_their_own_queries_and_operators_all(served: RunningServer) -> None:
    rows(served, "print x = 'of ann'", headers=ANN)
    rows(served, "print x = 'of ben'", headers={**BEN, "x-ms-user": "ann"})
    seen = [{one["Principal"] for one in named(served, ".show queries", who)} for who in (ANN, BEN)]
    assert seen == [{"ann"}, {"ben"}]
    assert {"ann", "ben"} <= {one["Principal"] for one in named(served, ".show queries", EVE)}
    (last,) = [one for one in named(served, ".show queries", BEN) if "of ben" in one["Text"]]
    assert last["User"] == "ben", "a header proves nothing"
    assert (
        last["State"] == "Completed" and last["ResultSetStatistics"]["TablesStatistics"][0]["RowCount"] == 1
    )


def test_functions_are_called_as_views_and_with_arguments(served: RunningServer) -> None:
    ids = [row["id"] for row in all_readings()]
    assert sorted(rows(served, "Recent() | project id", headers=BEN)) == [[one] for one in ids if one >= 200]
    assert rows(served, "Since(230) | count", headers=BEN) == [[10]]
    assert rows(served, "Wrapped()", headers=ANN) == rows(served, "Sealed()", headers=ANN) == [[240]]
    (found,) = named(served, ".show function Since", BEN)
    assert found["Parameters"] == "(least:long)" and "readings" in found["Body"]
    assert post(served, ".show function Sealed", headers=BEN).status_code == 400


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ('body = ""', "functions.F.body: it is empty"),
        ("", "functions.F.body: it is missing"),
        ('body = "readings | wher x"', "functions.F.body: a stored function cannot be read"),
        ("body = \"external_table('nope')\"", "functions.F.body: there is no"),
        ('body = "readings"\nparameters = "x:long"', "functions.F.parameters: they are in no brackets"),
        ('body = "readings"\nbdy = 1', "functions.F.bdy: there is no such key"),
    ],
)
def test_a_function_that_is_wrong_is_told_by_its_key(tmp_path: Path, part: str, told: str) -> None:
    config = tmp_path / "serve.toml"
    config.write_text(
        f'[server]\nhttp_port = 0\n[tables.readings]\nurl = "x"\n[functions.F]\n{part}\n', "utf-8"
    )
    with pytest.raises(InvalidRequestError) as caught:
        load_config(str(config), environment={})
    assert told in caught.value.what


def test_the_check_tries_functions_on_their_tables(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    config = tmp_path / "serve.toml"
    config.write_text(
        f"[server]\nhttp_port = 0\n[tables.readings]\nurl = {json.dumps(url)}\n"
        '[functions.Good]\nbody = "readings | where id > 5"\n'
        '[functions.Bad]\nbody = "readings | where nope > 5"\n',
        "utf-8",
    )
    found = {getattr(one, "function", None): one.error for one in findings(str(config), environment={})}
    assert found[None] is None and found["Good"] is None
    assert "nope" in (found["Bad"] or "")
    command = [sys.executable, "-m", "lazydelta", "serve", "--config", str(config), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1 and '"function":"Bad"' in done.stdout


def test_calls_are_counted_and_logged_as_those_of_the_other_protocols(served: RunningServer) -> None:
    rows(served, "readings | take 3", headers=ANN)
    told = httpx.get(served.http_url + "/metrics", timeout=SECONDS).text
    assert 'lazydelta_calls_total{protocol="kusto",method="query",status="ok"}' in told
    assert 'lazydelta_calls_total{protocol="kusto",method="mgmt",status="ok"}' in told
    assert 'lazydelta_rows_total{protocol="kusto",table="KQL"}' in told
    httpx.post(served.http_url + QUERY, content=b"x", headers=ANN, timeout=SECONDS)
    told = httpx.get(served.http_url + "/metrics", timeout=SECONDS).text
    assert 'lazydelta_calls_total{protocol="kusto",method="query",status="InvalidRequest"}' in told
