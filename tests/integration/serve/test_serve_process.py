"""`lazydelta serve` as its users run it: a process, its ports, its log, its signals, its end."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pyarrow import flight

import lazydelta as ld
from lazydelta.serve.flight_sql import messages_pb2 as messages
from lazydelta.serve.flight_sql.envelope import enclosed
from tests.support.prometheus_text import parsed
from tests.support.row_tables import readings_table
from tests.support.serve_process import ServeProcess, config_text, serving
from tests.support.serving import planned
from tests.support.slow_lake import FILES, ROWS_A_FILE

ROWS = FILES * ROWS_A_FILE
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("readings"), hours=2)


@pytest.fixture
def server(tmp_path: Path, readings: str) -> Iterator[ServeProcess]:
    traced = {"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_SCHEDULE_DELAY": "100"}
    with serving(tmp_path, {"readings": readings}, "drain_seconds = 5\n", traced) as process:
        yield process


def sample(server: ServeProcess, name: str, **labels: str) -> float:
    families = parsed(server.get("/metrics")[2])
    key = (name, frozenset(labels.items()))
    return next(family.samples[key] for family in families.values() if key in family.samples)


def rows_of(client: flight.FlightClient, table: str) -> pa.Table:
    return client.do_get(planned(client, table=table).endpoints[0].ticket).read_all()


def _answers(server: ServeProcess, language: str, text: str) -> None:
    url = f"http://127.0.0.1:{server.ports['http']}/ui/api/query"
    answer = httpx.post(url, json={"language": language, "text": text}, timeout=60)
    assert answer.status_code == 200 and '"rows":1,' in answer.text, answer.text


def test_a_server_from_its_start_to_its_end(server: ServeProcess, readings: str, tmp_path: Path) -> None:
    """One process, since each takes seconds to start: health, numbers, ids, traces, reload, the end."""
    assert server.get("/healthz")[::2] == (200, "ok\n")
    assert server.get("/readyz")[::2] == (200, "ready\n")
    with server.flight() as client:
        traced = [(b"x-request-id", b"plan-7"), (b"traceparent", f"00-{TRACE}-{PARENT}-01".encode())]
        planned(client, flight.FlightCallOptions(headers=traced), table="readings")
        found = rows_of(client, "readings")
    assert found.sort_by("id") == ld.open(readings).to_arrow().sort_by("id")
    for language, text in (("sql", "select count(*) from readings"), ("kql", "readings | count")):
        _answers(server, language, text)
    _reloads(server, readings, tmp_path)
    status, headers, body = server.get("/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert parsed(body)
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    # Nothing but the log went to stderr, to the very end.
    assert server.calls["plan-7"]["table"] == "readings"
    assert server.calls["plan-7"]["trace"] == TRACE
    assert {"time", "level", "logger", "ms", "rows", "client", "status"} <= set(server.calls["plan-7"])
    assert server.says("told to end: draining") and server.says("ended")
    _spans("".join(server.stdout[1:]))


def _reloads(server: ServeProcess, readings: str, tmp_path: Path) -> None:
    """Added, removed and changed tables, by SIGHUP and by the file alone; a broken file changes nothing."""
    other = readings_table(tmp_path / "other", hours=1)
    with server.flight() as client:
        server.config.write_text(config_text({"readings": other, "added": readings}), "utf-8")
        server.signal(signal.SIGHUP)
        assert server.says("configuration taken: added, readings")
        assert rows_of(client, "added").num_rows == 60
        assert rows_of(client, "readings").num_rows == 30
        assert sample(server, "lazydelta_config_reloads_total", result="taken") == 1

        server.config.write_text(config_text({"readings": other}) + "[tables.broken]\n", "utf-8")
        assert server.says("the configuration is not taken: tables.broken.url: it is missing")
        assert server.eventually(
            lambda: sample(server, "lazydelta_config_reloads_total", result="refused") == 1
        )
        assert sample(server, "lazydelta_config_is_current") == 0
        assert rows_of(client, "added").num_rows == 60

        server.config.write_text(config_text({"readings": readings}, "host = '127.0.0.2'"), "utf-8")
        assert server.says("in force from the next start on: server.host")
        assert server.says("configuration taken: readings")  # that comes last
        assert sample(server, "lazydelta_config_is_current") == 1
        with pytest.raises(pa.ArrowKeyError, match="there is no table 'added'"):
            planned(client, table="added")
        assert rows_of(client, "readings").num_rows == 60


def _spans(text: str) -> None:
    """As OpenTelemetry's own exporter prints them."""
    decoder, spans = json.JSONDecoder(), []
    while text.strip():
        text = text.lstrip()
        span, end = decoder.raw_decode(text)
        spans.append(span)
        text = text[end:]
    plan = next(span for span in spans if span["name"] == "flight GetFlightInfo")
    assert (plan["context"]["trace_id"], plan["parent_id"]) == (f"0x{TRACE}", f"0x{PARENT}")
    assert plan["attributes"]["lazydelta.request_id"] == "plan-7"
    below = {span["name"] for span in spans if span["context"]["trace_id"] == f"0x{TRACE}"}
    assert {"flight GetFlightInfo", "open", "plan"} <= below


def test_a_server_under_load_drains_then_stops_what_is_left(many_files: str, tmp_path: Path) -> None:
    more = "unready_seconds = 6\ndrain_seconds = 10\n"  # a busy machine needs them
    with serving(tmp_path, {"many": many_files}, more) as server, server.flight() as client:
        slow = client.do_get(planned(client, table="many").endpoints[0].ticket)
        assert slow.read_chunk().data.num_rows
        fine = client.do_get(planned(client, table="many").endpoints[0].ticket)
        found = [fine.read_chunk().data.num_rows]
        server.signal(signal.SIGTERM)
        assert server.eventually(lambda: server.get("/readyz")[0] == 503)
        assert planned(client, table="many").endpoints, "it is not ready, and still takes requests"
        assert server.get("/healthz")[0] == 200
        reading = threading.Thread(target=lambda: found.extend(chunk.data.num_rows for chunk in fine))
        reading.start()
        with pytest.raises(flight.FlightUnavailableError, match="the server goes down"):
            while True:
                planned(client, table="many")
                time.sleep(0.1)
        reading.join(60)
        assert sum(found) == ROWS, "what ends in time comes whole"
        assert server.ended() == 1
        with pytest.raises((flight.FlightError, pa.ArrowException)):
            slow.read_all()


def test_a_second_signal_ends_at_once(many_files: str, tmp_path: Path) -> None:
    with (
        serving(tmp_path, {"many": many_files}, "drain_seconds = 600\n") as server,
        server.flight() as client,
    ):
        reader = client.do_get(planned(client, table="many").endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows
        server.signal(signal.SIGINT)
        assert server.eventually(lambda: server.get("/readyz")[0] == 503)
        time.sleep(0.5)
        assert server.get("/readyz")[0] == 503, "Ctrl-C lets it drain as SIGTERM does"
        server.signal(signal.SIGTERM)
        assert server.ended() == 128 + signal.SIGTERM


def test_ports_that_are_taken_are_told(tmp_path: Path, readings: str) -> None:
    config = tmp_path / "serve.toml"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for key in ("flight_port", "http_port"):
            config.write_text(f"[server]\n{key} = {port}\n", "utf-8")
            process = ServeProcess(config, {})
            assert process.ended() == 2
            told = "".join(process.stderr)
            assert (
                f"server.{key}: 127.0.0.1 port {port} cannot be listened at: Address already in use" in told
            )
            assert str(config) in told
            assert "Traceback" not in told
            assert process.stdout == []


def test_work_that_cannot_be_interrupted_does_not_hold_up_the_end(readings: str, tmp_path: Path) -> None:
    """DuckDB works out constants while it plans, and does not listen meanwhile."""
    query = f"select levenshtein('{'ab' * 150_000}', '{'ba' * 150_000}')"  # minutes
    descriptor = flight.FlightDescriptor.for_command(enclosed(messages.CommandStatementQuery(query=query)))
    more = "drain_seconds = 0.5\n[limits]\nscan_seconds = 0.5\n"
    with serving(tmp_path, {"readings": readings}, more) as server, server.flight() as client:

        def ask() -> None:
            with suppress(pa.ArrowException, flight.FlightError):
                client.get_flight_info(descriptor)

        asking = threading.Thread(target=ask)
        asking.start()
        assert server.eventually(lambda: sample(server, "lazydelta_scans_running") == 1)
        time.sleep(1.5)
        assert sample(server, "lazydelta_scans_running") == 1, "its time is over, and it still works"
        server.signal(signal.SIGTERM)
        assert server.ended() == 1
        asking.join(60)
        assert not asking.is_alive()
