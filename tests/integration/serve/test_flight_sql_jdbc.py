"""Flight SQL as Arrow's JDBC driver speaks it, in Java: every answer is the in-process one."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.serve.sign_in import token_digest
from tests.support.jdbc_driver import ask
from tests.support.row_tables import eventually, readings_table
from tests.support.serving import running_server

MOMENT = dt.datetime(2026, 2, 10, 1, 2, 3, 456000, dt.UTC)
MILLIS = int(MOMENT.timestamp() * 1000)
QUERIES = [
    "select * from readings order by id",
    "select count(*), sum(id), max(value) from lazydelta.main.readings",
    "select device, count(*) as n from main.readings group by device order by device nulls first",
    "select a.id from readings a join readings b on a.id = b.id + 1 where a.id < 9 order by 1",
    "select * from types order by i64",
    "select * from readings where false",
]
TYPES = pa.table(
    {
        "b": [True, None],
        "i32": pa.array([-7, None], pa.int32()),
        "i64": pa.array([1 << 60, None], pa.int64()),
        "f64": pa.array([2.5, None], pa.float64()),
        "s": ['grün "quoted"', None],
        "d": pa.array([dt.date(2026, 2, 10), None], pa.date32()),
        "ts": pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
        "dec": pa.array([Decimal("12345.678"), None], pa.decimal128(20, 3)),
    }
)


def spelled(value: Any) -> Any:
    """A value as the Java program writes it."""
    if isinstance(value, dt.datetime):
        return int(value.timestamp() * 1000)
    return str(value) if isinstance(value, dt.date | Decimal) else value


@pytest.mark.spark
def test_the_jdbc_driver_gets_what_the_process_gets(tmp_path: Path) -> None:
    types = str(tmp_path / "types")
    write_deltalake(types, TYPES)
    tables = {"readings": readings_table(tmp_path), "types": types}
    token = "ann"
    more = f'[[clients]]\nname = "ann"\ntoken_sha256 = "{token_digest(token)}"\n'
    more += f'[tables.secret]\nurl = {json.dumps(types)}\nreaders = ["ben"]\n'
    questions = [["query", query] for query in QUERIES] + [
        [
            "prepared",
            "select id from readings where id > ? and device = ? order by id limit 3",
            "l10|ssensor-1",
            "l100|ssensor-2",
        ],
        ["prepared", "select i64 from types where ts = ? and f64 < ?", f"t{MILLIS}|d3.5"],
        ["catalogs"],
        ["schemas"],
        ["tables", "%"],
        ["tables", "read%"],
        ["columns", "types"],
        ["table types"],
        ["primary keys", "readings"],
        ["imported keys", "readings"],
        ["product"],
        ["query", "select * from secret"],
        ["query", "select * from read_csv('/etc/passwd')"],
        ["query", "select nope from readings"],
        ["update", "delete from readings"],
        ["cancel", "select a.id from readings a, range(10000000) b"],
    ]
    with running_server(tmp_path, tables, more) as server:
        found = ask(f"127.0.0.1:{server.ports.flight}", questions, options={"token": token})
        assert eventually(lambda: not server.process.served.admission.running())
        assert str(tmp_path) not in json.dumps(found)

    opened = {name: ld.open(url) for name, url in tables.items()}
    for query, rows in zip(QUERIES, found, strict=False):
        expected = ld.sql(query.replace("lazydelta.main.", "").replace("main.", ""), **opened).fetchall()
        assert rows == [[spelled(value) for value in row] for row in expected], query
    rest = {"".join(question[:2]): answer for question, answer in zip(questions, found, strict=True)}
    assert found[len(QUERIES)] == [[[16], [21], [26]], [[102], [107], [112]]]
    assert found[len(QUERIES) + 1] == [[[1 << 60]]]
    assert rest["catalogs"] == [["lazydelta"]]
    assert rest["schemas"] == [["main", "lazydelta"]]
    assert [row[:4] for row in rest["tables%"]] == [
        ["lazydelta", "main", "readings", "TABLE"],
        ["lazydelta", "main", "types", "TABLE"],
    ]
    assert [row[2] for row in rest["tablesread%"]] == ["readings"]
    assert [row[3] for row in rest["columnstypes"]] == TYPES.schema.names
    assert rest["table types"] == [["TABLE"]]
    assert rest["primary keysreadings"] == rest["imported keysreadings"] == []
    assert rest["product"] == [["lazydelta", True, False, '"']]
    assert "there is no table 'secret'" in rest["queryselect * from secret"]["error"]
    assert "read_csv" in rest["queryselect * from read_csv('/etc/passwd')"]["error"]
    assert "nope" in rest["queryselect nope from readings"]["error"]
    assert "only SELECT is served" in rest["updatedelete from readings"]["error"]
    assert found[-1] == "cancelled"
