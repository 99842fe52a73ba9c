"""What clients and the log are told of addresses: nothing, and nothing that confirms a guess."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from lazydelta.errors import LazyDeltaError, StorageError
from lazydelta.serve.concealment import concealed, concealed_error
from lazydelta.serve.config import ServedTable
from lazydelta.serve.log_lines import JsonLines, conceal
from lazydelta.serve.sign_in import token_digest
from lazydelta.settings import Settings
from tests.support.row_tables import readings_table
from tests.support.serving import bearer, planned, running_server


def table(name: str, url: str) -> ServedTable:
    return ServedTable(
        name=name,
        url=url,
        settings=Settings(),
        readers=None,
        share="s",
        schema="m",
        comment="",
        file_links="server",
    )


PAY, OPEN, SPACED = (
    table("pay", "s3://lake/hr/pay"),
    table("open", "/data/open"),
    table("spaced", "/data/my own/t"),
)
TABLES = [PAY, OPEN, SPACED]


@pytest.mark.parametrize(
    ("where", "seen", "told"),
    [
        ("/data/open @ 3", [OPEN], "open @ 3"),
        ("file:///data/open/part-0.parquet", [OPEN], "open/part-0.parquet"),
        ("s3://lake/hr/pay", [OPEN], "…"),
        ("s3://lake/hr/pay", [PAY], "pay"),
        ("/data/openly/x", [OPEN], "…"),
        ("/data/my own/t @ 3", [], "… @ 3"),
        ("filter: s = '/data/open'", [OPEN], "filter: s = '…'"),
        ("filter: s = '/data'", [OPEN], "filter: s = '…'"),
        ("SQL", [OPEN], "SQL"),
    ],
)
def test_a_place_is_told_by_name_to_who_may_read_it(where: str, seen: list[ServedTable], told: str) -> None:
    found = concealed_error(LazyDeltaError("it broke", where, "mend a / b"), TABLES, seen)
    assert found == f"it broke\n  where: {told}\n  fix:   mend a / b"


@pytest.mark.parametrize(
    "text", ["/data/open", "/data/openly", "s3://lake/hr/pay", "s3://lake/hr/nope", "/x"]
)
def test_no_text_tells_whether_a_guess_is_right(text: str) -> None:
    assert concealed(f"there is no table {text!r}", TABLES) == "there is no table '…'"


def test_a_client_learns_nothing_by_asking_for_addresses(tmp_path: Path) -> None:
    clients = "".join(
        f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name)}"\n' for name in ("ann", "ben")
    )
    url = readings_table(tmp_path, hours=1)
    more = f'{clients}[tables.hidden]\nurl = "{tmp_path / "hidden"}"\nreaders = ["ann"]\n'
    with running_server(tmp_path, {"readings": url}, more) as server, server.flight() as client:
        guesses = [url, f"{url}s", str(tmp_path / "hidden"), str(tmp_path / "other"), f"file://{url}"]
        answers = set()
        for guess in guesses:
            told = []
            for asked in ({"table": guess}, {"table": "readings", "predicate": f"nope = '{guess}'"}):
                with pytest.raises(Exception, match=r".") as caught:
                    planned(client, bearer("ben"), **asked)
                told.append(str(caught.value))
            answers.add(tuple(told))
            body = json.dumps({"table": "readings", "predicate": f"device = '{guess}'"}).encode()
            (explained,) = client.do_action(flight.Action("explain", body), bearer("ben"))
            assert json.loads(explained.body.to_pybytes())["predicate"] == "device = '…'"
            assert json.loads(explained.body.to_pybytes())["table"] == "readings"
    assert len(answers) == 1, answers


def test_the_log_has_names_of_tables_and_no_address_of_a_store() -> None:
    conceal(TABLES)
    error = StorageError("http://10.0.0.1:9/lake?x does not answer", "s3://lake/hr/pay/_delta_log", "wait")
    record = logging.LogRecord("x", logging.WARNING, "", 0, "%s at /etc/serve.toml", (error,), None)
    line = json.loads(JsonLines().format(record))["message"]
    conceal([])
    assert "pay/_delta_log" in line and "/etc/serve.toml" in line
    assert "lake" not in line and "10.0.0.1" not in line


def test_statistics_do_not_tell_where_a_table_lies(tmp_path: Path) -> None:
    url = readings_table(tmp_path, hours=1)
    with running_server(tmp_path, {"readings": url}) as server, server.flight() as client:
        ticket = planned(client, table="readings", what="files").endpoints[0].ticket
        (path, *_) = client.do_get(ticket).read_all()["path"].to_pylist()
        asked = [path, f"{url}/{path}", f"file://{url}/{path}", f"/elsewhere/{path}"]
        body = json.dumps({"table": "readings", "paths": asked, "columns": ["id"]}).encode()
        _, rows = client.do_action(flight.Action("stats_for_files", body))
        found = pa.ipc.open_stream(rows.body).read_all()
    assert found["path"].to_pylist() == asked
    assert found["live"].to_pylist() == [True, False, False, False]
