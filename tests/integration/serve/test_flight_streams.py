"""Streams of Flight that do not go to their end: whatever ends them, the reads end."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pyarrow as pa
import pytest
from pyarrow import flight

import lazydelta as ld
from lazydelta.serve.flight_sql import messages_pb2 as messages
from tests.support.proxy import Fault, HttpProxy, always
from tests.support.row_tables import eventually
from tests.support.servers import TableServer
from tests.support.serving import RunningServer, planned, running_server, threads_named
from tests.support.slow_lake import (
    FILES,
    ROWS_A_FILE,
    becomes_quiet,
    files_read,
    served_from_afar,
)

ROWS = FILES * ROWS_A_FILE
COMMANDS: list[dict[str, Any]] = [{"what": "rows"}, {"what": "rows", "order": "desc"}]
STALLED = """
import json, sys, time
from pyarrow import flight
client = flight.connect(sys.argv[1])
info = client.get_flight_info(flight.FlightDescriptor.for_command(sys.argv[2]))
reader = client.do_get(info.endpoints[0].ticket)
print(reader.read_chunk().data.num_rows, flush=True)
time.sleep(600)
"""


def running(server: RunningServer) -> int:
    return len(server.process.served.admission.running())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cancelled_stream_stops_the_reads(
    served_afar: tuple[RunningServer, HttpProxy], command: dict[str, Any]
) -> None:
    server, proxy = served_afar
    proxy.reset()
    with server.flight() as client:
        reader = client.do_get(planned(client, table="many", **command).endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows
        assert running(server) == 1
        reader.cancel()
        assert becomes_quiet(proxy)
        asked = files_read(proxy)
    assert 0 < asked < FILES
    assert eventually(lambda: running(server) == 0)


def test_a_client_that_drops_its_reader_stops_the_reads(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, proxy = served_afar
    proxy.reset()
    with server.flight() as client:
        reader = client.do_get(planned(client, table="many").endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows
        del reader
        assert becomes_quiet(proxy)
    assert files_read(proxy) < FILES
    assert eventually(lambda: running(server) == 0)


def test_a_client_that_is_killed_stops_the_reads(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, proxy = served_afar
    proxy.reset()
    with stalled_client(server, {"table": "many"}) as process:
        assert running(server) == 1
        process.kill()
        process.wait()
        assert becomes_quiet(proxy)
    assert eventually(lambda: running(server) == 0)


def test_a_flight_is_cancelled_by_another_call(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, proxy = served_afar
    proxy.reset()
    with server.flight() as client:
        info = planned(client, table="many")
        reader = client.do_get(info.endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows
        request = messages.CancelFlightInfoRequest(info=info.serialize())
        action = flight.Action("CancelFlightInfo", request.SerializeToString())
        (answer,) = client.do_action(action)
        assert messages.CancelFlightInfoResult.FromString(answer.body.to_pybytes()).status == 1
        with pytest.raises(flight.FlightServerError, match="its client cancelled it") as caught:
            reader.read_all()
        assert caught.value.extra_info == b"Cancelled"
        assert becomes_quiet(proxy)
        (again,) = client.do_action(action)
        assert messages.CancelFlightInfoResult.FromString(again.body.to_pybytes()).status == 3


def test_a_stalled_client_costs_no_more_memory_and_holds_the_reads(
    served_afar: tuple[RunningServer, HttpProxy],
) -> None:
    server, proxy = served_afar
    proxy.reset()
    me = psutil.Process()
    with stalled_client(server, {"table": "many"}):
        assert becomes_quiet(proxy, for_seconds=1.0)
        before, asked = me.memory_info().rss, len(proxy.requests)
        time.sleep(1.0)
        assert me.memory_info().rss - before < 32 * 1024 * 1024  # of the table's 58
        assert len(proxy.requests) == asked
        assert files_read(proxy) < FILES
    assert eventually(lambda: running(server) == 0)


def test_a_slow_client_gets_everything(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, _ = served_afar
    rows = 0
    with server.flight() as client:
        reader = client.do_get(planned(client, table="many", columns=["id"]).endpoints[0].ticket)
        for chunk in reader:
            rows += chunk.data.num_rows
            time.sleep(0.01)
    assert rows == ROWS


def test_time_runs_out_while_nobody_reads(s3_server: TableServer, many_stored: str, tmp_path: Path) -> None:
    more = "[limits]\nscan_seconds = 5\nscans = 1\nwaiting_seconds = 60\n"
    with (
        served_from_afar(s3_server, many_stored, tmp_path, more) as (server, proxy),
        stalled_client(server, {"table": "many"}),
        server.flight() as client,
    ):
        assert running(server) == 1
        # The place of the one that is not read becomes free.
        found = client.do_get(planned(client, table="many", limit=10).endpoints[0].ticket).read_all()
        assert found.num_rows == 10
        assert becomes_quiet(proxy)
        reader = client.do_get(planned(client, table="many").endpoints[0].ticket)
        assert reader.read_chunk().data.num_rows
        assert eventually(lambda: running(server) == 0)
        with pytest.raises(flight.FlightUnavailableError, match=r"scan_seconds|timed out|deadline"):
            while True:
                reader.read_chunk()


def test_limits_say_which_they_are(many_files: str, tmp_path: Path) -> None:
    more = "[limits]\nscans = 2\nscans_per_client = 1\nwaiting_seconds = 0.2\n"
    with running_server(tmp_path, {"many": many_files}, more) as server, server.flight() as client:
        text = server.path.read_text("utf-8")
        with stalled_client(server, {"table": "many"}):
            for limits, told in (
                (text, "scans_per_client"),
                (text.replace("s = 2", "s = 1"), r"limits.scans\)"),
            ):
                server.path.write_text(limits, "utf-8")
                assert server.process.reload()
                with pytest.raises(flight.FlightUnavailableError, match=told) as caught:
                    client.do_get(planned(client, table="many").endpoints[0].ticket).read_all()
                assert caught.value.extra_info == b"LimitReached"
        assert eventually(lambda: running(server) == 0)
        server.path.write_text(text.replace("s = 2", "s = 2\nrows = 50000"), "utf-8")
        assert server.process.reload()
        with pytest.raises(flight.FlightUnavailableError, match=r"more than 50,000 rows \(limits.rows\)"):
            client.do_get(planned(client, table="many").endpoints[0].ticket).read_all()
        assert eventually(lambda: running(server) == 0)
        found = client.do_get(planned(client, table="many", limit=50_000).endpoints[0].ticket).read_all()
        assert found.num_rows == 50_000


def test_a_store_that_is_down_is_unavailable(
    s3_server: TableServer, many_files: str, many_stored: str, tmp_path: Path
) -> None:
    with (
        served_from_afar(s3_server, many_stored, tmp_path, latency_ms=0) as (server, proxy),
        server.flight() as client,
    ):
        info = planned(client, table="many")
        proxy.plan = always(Fault(kind="status", status=403))
        told = []
        for ask in (
            lambda: planned(client, table="many"),
            lambda: client.do_get(info.endpoints[0].ticket).read_all(),
        ):
            with pytest.raises(flight.FlightUnavailableError) as caught:
                ask()
            told.append(str(caught.value))
        assert not [text for text in told if "127.0.0.1" in text or "s3://" in text]
        proxy.reset()
        found = client.do_get(info.endpoints[0].ticket).read_all()
    assert found.sort_by("id") == ld.open(many_files).to_arrow().sort_by("id")


def test_scans_that_run_end_before_the_server_does(many_files: str, tmp_path: Path) -> None:
    before = set(threads_named("lazydelta-flight"))
    with running_server(tmp_path, {"many": many_files}) as server, server.flight() as client:
        reader = client.do_get(planned(client, table="many").endpoints[0].ticket)
        first = reader.read_chunk().data
        found: list[pa.RecordBatch] = [first]
        threading.Timer(0.3, lambda: found.extend(chunk.data for chunk in reader)).start()
        drain_in(server, 60)
        assert server.process.stop()
        assert eventually(lambda: sum(batch.num_rows for batch in found) == ROWS)
    assert eventually(lambda: before.issuperset(threads_named("lazydelta-flight")))


def test_the_server_goes_down_under_load_and_hangs_up_on_who_does_not_read(
    many_files: str, tmp_path: Path
) -> None:
    results: list[str] = []
    before = set(threads_named("lazydelta-flight"))

    def load(server: RunningServer) -> None:
        with server.flight() as client:
            try:
                while True:
                    client.do_get(planned(client, table="many", limit=5000).endpoints[0].ticket).read_all()
            except (flight.FlightError, pa.ArrowException, OSError) as error:
                results.append(type(error).__name__)

    with running_server(tmp_path, {"many": many_files}) as server, stalled_client(server, {"table": "many"}):
        threads = [threading.Thread(target=load, args=(server,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        drain_in(server, 0.5)
        assert not server.process.stop()
        for thread in threads:
            thread.join(60)
    assert results == ["FlightUnavailableError"] * 4
    assert eventually(lambda: before.issuperset(threads_named("lazydelta-flight")))


def test_a_reload_serves_other_tables_and_lets_what_runs_go_on(many_files: str, tmp_path: Path) -> None:
    with running_server(tmp_path, {"many": many_files}) as server, server.flight() as client:
        reader = client.do_get(planned(client, table="many").endpoints[0].ticket)
        first = reader.read_chunk().data.num_rows
        text = server.path.read_text("utf-8")
        server.path.write_text(text.replace("tables.many", "tables.renamed"), "utf-8")
        assert server.process.reload()
        with pytest.raises(pa.ArrowKeyError, match="there is no table 'many'"):
            planned(client, table="many")
        assert planned(client, table="renamed").schema.names == ["id", "noise"]
        assert first + sum(chunk.data.num_rows for chunk in reader) == ROWS

        server.path.write_text("[server]\nflight_port = 'none'", "utf-8")
        assert not server.process.reload()
        assert planned(client, table="renamed").schema.names == ["id", "noise"]


def drain_in(server: RunningServer, seconds: float) -> None:
    served = server.process.served
    part = msgspec.structs.replace(served.config.server, drain_seconds=seconds)
    served.config = msgspec.structs.replace(served.config, server=part)


class stalled_client:  # noqa: N801 - a block
    """Another process that reads one batch and then nothing."""

    def __init__(self, server: RunningServer, command: dict[str, Any]) -> None:
        address = f"grpc://127.0.0.1:{server.ports.flight}"
        self._command = [sys.executable, "-c", STALLED, address, json.dumps(command)]

    def __enter__(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert int(self._process.stdout.readline())
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
