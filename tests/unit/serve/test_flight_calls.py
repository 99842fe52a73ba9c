"""What the server notes of Flight's calls: one line and one count for each, by its own id, and no secret."""

from __future__ import annotations

import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from lazydelta.serve.sign_in import token_digest
from tests.support.row_tables import eventually, readings_table
from tests.support.serving import planned, running_server


def test_every_call_is_noted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    more = f'[[clients]]\nname = "ann"\ntoken_sha256 = "{token_digest("very-secret")}"\n'

    def named(request_id: str, token: str = "very-secret") -> flight.FlightCallOptions:
        headers = [(b"authorization", f"Bearer {token}".encode()), (b"x-request-id", request_id.encode())]
        return flight.FlightCallOptions(headers=headers)

    with caplog.at_level(logging.INFO, "lazydelta.access"):
        url = readings_table(tmp_path, hours=1)
        with running_server(tmp_path, {"readings": url}, more) as server, server.flight() as client:
            info = planned(client, named("plan-1"), table="readings", predicate="id < 7")
            client.do_get(info.endpoints[0].ticket, named("read-1")).read_all()
            list(client.do_action(flight.Action("refresh", b'{"table": "readings"}'), named("act-1")))
            with pytest.raises(pa.ArrowKeyError):
                planned(client, named("plan-2"), table="nope")
            with pytest.raises(flight.FlightUnauthenticatedError):
                planned(client, named("plan-3", "wrong"), table="readings")
            with pytest.raises(pa.ArrowInvalid):
                client.do_get(flight.Ticket(b"x"), named("read-2")).read_all()
            planned(client, named("not sane"), table="readings")
            assert eventually(lambda: len(caplog.records) >= 7)
            exposed = server.process.served.metrics.exposition(server.process.served.admission)
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    noted = {line["id"]: line for line in lines}
    assert len(lines) == len(noted) == 7
    told = {id_: (line["method"], line["status"], line["table"], line["rows"]) for id_, line in noted.items()}
    unnamed = told.pop(next(id_ for id_ in told if "-" not in id_))
    assert unnamed == ("GetFlightInfo", "ok", "readings", 0)
    assert told == {
        "plan-1": ("GetFlightInfo", "ok", "readings", 0),
        "read-1": ("DoGet", "ok", "readings", 7),
        "act-1": ("refresh", "ok", "readings", 0),
        "plan-2": ("GetFlightInfo", "TableNotFound", "", 0),
        "plan-3": ("GetFlightInfo", "Unauthenticated", "", 0),
        "read-2": ("DoGet", "InvalidRequest", "", 0),
    }
    assert "very-secret" not in caplog.text
    assert "id < 7" not in caplog.text
    assert 'lazydelta_calls_total{protocol="flight",method="DoGet",status="ok"} 1' in exposed
    assert 'lazydelta_rows_total{protocol="flight",table="readings"} 7' in exposed


def test_actions_name_their_table_and_a_stream_counts_its_planning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_server(tmp_path, {"readings": readings_table(tmp_path, hours=1)}) as server:
        client = server.flight()
        ticket = planned(client, table="readings").endpoints[0].ticket
        scans = server.process.served.scans
        plan = scans.plan

        def slow(*arguments: Any, **named: Any) -> Any:
            time.sleep(0.3)
            return plan(*arguments, **named)

        monkeypatch.setattr(scans, "plan", slow)
        bodies: dict[str, dict[str, Any]] = {
            "refresh": {"table": "readings"},
            "page": {"command": {"table": "readings"}, "count": 3},
            "explain": {"table": "readings"},
            "stats_for_files": {"table": "readings", "paths": [], "columns": ["id"]},
        }
        with caplog.at_level(logging.INFO, "lazydelta.access"):
            for name, body in bodies.items():
                list(client.do_action(flight.Action(name, json.dumps(body).encode())))
                with pytest.raises(pa.ArrowKeyError):
                    other = json.dumps(body).replace("readings", "other")
                    list(client.do_action(flight.Action(name, other.encode())))
            client.do_get(ticket).read_all()
            assert eventually(lambda: len(caplog.records) >= 9)
        client.close()
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [line["table"] for line in lines] == ["readings", ""] * 4 + ["readings"]
    assert lines[-1]["ms"] >= 300


def test_a_call_whose_client_has_gone_is_noted_as_cancelled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_server(tmp_path, {"readings": readings_table(tmp_path, hours=1)}) as server:
        scans = server.process.served.scans
        plan, has_gone = scans.plan, threading.Event()

        def slow(*arguments: Any, **named: Any) -> Any:
            assert has_gone.wait(60)
            time.sleep(3)  # until the server has heard of it
            return plan(*arguments, **named)

        with caplog.at_level(logging.INFO, "lazydelta.access"), server.flight() as client:
            planned(client, table="readings")  # connects, whatever time that takes
            assert eventually(lambda: len(caplog.records) == 1)
            caplog.clear()
            monkeypatch.setattr(scans, "plan", slow)
            with pytest.raises(flight.FlightTimedOutError):
                planned(client, flight.FlightCallOptions(timeout=5.0), table="readings")
            has_gone.set()
            assert eventually(lambda: len(caplog.records) >= 1)
    assert json.loads(caplog.records[0].getMessage())["status"] == "cancelled"
