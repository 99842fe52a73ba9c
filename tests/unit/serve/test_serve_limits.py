"""Limits of the server and of one client: the error says which, and what is held comes back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import flight

from lazydelta.errors import StorageError
from lazydelta.memory_budget import PROCESS_MEMORY, MemoryKind
from lazydelta.memory_share import MemoryShare
from lazydelta.serve.client_memory import ClientMemory
from lazydelta.serve.config_parts import ClientLimits
from lazydelta.serve.flight_sql import messages_pb2 as messages
from lazydelta.serve.flight_sql.envelope import enclosed
from lazydelta.serve.sign_in import Client, token_digest
from tests.support.row_tables import eventually
from tests.support.serving import RunningServer, bearer, planned, running_server
from tests.support.settling import settled
from tests.support.slow_lake import FILES, ROWS_A_FILE

ANN, BEN, CAT, DAN = (bearer(f"{name}-token") for name in ("ann", "ben", "cat", "dan"))
MIB = 1 << 20


@pytest.fixture
def server(many_files: str, tmp_path: Path) -> Iterator[RunningServer]:
    clients = "".join(
        f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name + "-token")}"\nlimits = {own}\n'
        for name, own in (
            ("ann", "{rows = 9000, memory_bytes = 16_000_000}"),
            ("ben", "{}"),
            ("cat", "{scans = 1}"),
            ("dan", "{scan_seconds = 3.0}"),
        )
    )
    more = f"[limits]\nscans = 3\nwaiting_seconds = 0.1\nmemory_bytes_per_client = 64_000_000\n{clients}"
    with running_server(tmp_path, {"many": many_files}, more) as running:
        yield running


def begun(client: flight.FlightClient, options: flight.FlightCallOptions) -> flight.FlightStreamReader:
    reader = client.do_get(planned(client, options, table="many").endpoints[0].ticket, options)
    assert reader.read_chunk().data.num_rows
    return reader


def test_a_client_s_own_limit_counts_for_it_alone(server: RunningServer) -> None:
    with server.flight() as client:
        first = begun(client, BEN)
        with pytest.raises(
            flight.FlightUnavailableError, match=r"more than 9,000 rows \(limits\.rows\)"
        ) as caught:
            begun(client, ANN).read_all()
        assert caught.value.extra_info == b"LimitReached"
        info = planned(client, CAT, table="many")
        held = begun(client, CAT)
        with pytest.raises(flight.FlightUnavailableError, match=r"cat runs 1 scans at once already"):
            client.do_get(info.endpoints[0].ticket, CAT).read_all()
        assert eventually(lambda: len(server.process.served.admission.running()) == 2)
        third = begun(client, BEN)
        with pytest.raises(
            flight.FlightUnavailableError, match=r"3 scans run at once already \(limits\.scans\)"
        ):
            begun(client, BEN)
        assert sum(chunk.data.num_rows for chunk in first) > FILES * ROWS_A_FILE // 2
        del held, third


def test_the_time_of_a_client_s_scan_runs_out(server: RunningServer) -> None:
    with server.flight() as client:
        reader = begun(client, DAN)
        running = server.process.served.admission.running
        assert eventually(lambda: not running())
        with pytest.raises(
            flight.FlightUnavailableError, match=r"longer than 3 s \(limits\.scan_seconds\)"
        ) as caught:
            while True:
                reader.read_chunk()
        assert caught.value.extra_info == b"LimitReached"


def test_the_memory_of_a_client_is_counted_and_given_back(server: RunningServer) -> None:
    memory, ben = server.process.served.memory, Client("ben")
    with server.flight() as client:
        reader = begun(client, BEN)
        assert memory.held_bytes(ben) > 0
        assert memory.held_bytes(Client("ann")) == 0
        reader.cancel()
        assert eventually(lambda: memory.held_bytes(ben) == 0)


def test_memory_of_one_client_is_short_while_another_has_room() -> None:
    clients = ClientMemory(8 * MIB)
    ann, ben = Client("ann"), Client("ben", limits=ClientLimits(memory_bytes=0))
    before = settled(lambda: PROCESS_MEMORY.use().held_bytes)  # scans of other tests may be ending
    with clients.of(ann):
        first, second = MemoryShare(), MemoryShare()
    with clients.of(ben):
        free = MemoryShare()
    assert first.take(2 * MIB, MemoryKind.ROWS) == 2 * MIB
    assert first.take(4 * MIB, MemoryKind.ROWS) == 2 * MIB, "a quarter at once, as of the process"
    assert first.take(2 * MIB, MemoryKind.ROWS) == 2 * MIB
    assert PROCESS_MEMORY.use().held_bytes - before == clients.held_bytes(ann) == 6 * MIB
    assert not first.try_take(1 * MIB), "nothing is read ahead"
    assert free.take(4 * MIB, MemoryKind.ROWS) == 4 * MIB, "without a limit of its own"
    second.wait_until(time.monotonic() + 0.1, timeout_seconds=0.1, where="a test")
    with pytest.raises(StorageError, match="passed while it waited for memory"):
        second.take(2 * MIB, MemoryKind.ROWS)
    second.wait_until(time.monotonic() + 60, timeout_seconds=60, where="a test")
    granted: list[int] = []
    waiting = threading.Thread(target=lambda: granted.append(second.take(2 * MIB, MemoryKind.ROWS)))
    waiting.start()
    time.sleep(0.1)
    assert granted == []
    first.give(2 * MIB, MemoryKind.ROWS)
    waiting.join(60)
    assert granted == [2 * MIB]
    for share in (first, second, free):
        share.close()
    assert clients.held_bytes(ann) == 0
    assert PROCESS_MEMORY.use().held_bytes == before


def test_requests_that_are_too_large_are_refused_by_the_name_of_the_limit(server: RunningServer) -> None:
    command = json.dumps({"table": "many", "predicate": "x" * (2 * MIB)})
    with server.flight() as client, pytest.raises(Exception, match=r"limits\.request_bytes"):
        client.get_flight_info(flight.FlightDescriptor.for_command(command), ANN)


def sql(client: flight.FlightClient, query: str) -> int:
    message = enclosed(messages.CommandStatementQuery(query=query))
    info = client.get_flight_info(flight.FlightDescriptor.for_command(message))
    return client.do_get(info.endpoints[0].ticket).read_all().num_rows


def test_a_statement_that_needs_more_memory_is_told_the_limit_of_the_server(
    many_files: str, tmp_path: Path
) -> None:
    more = f"[limits]\nmemory_bytes = {8 * 20 * MIB}\n"
    with running_server(tmp_path, {"many": many_files}, more) as server, server.flight() as client:
        with pytest.raises(flight.FlightUnavailableError, match=r"\(limits\.memory_bytes\)") as caught:
            sql(client, "select list(range) from range(10000000)")
        assert caught.value.extra_info == b"LimitReached"
        assert "memory_limit" not in str(caught.value) and "SET" not in str(caught.value)


def test_memory_that_is_too_little_for_any_statement_is_told(many_files: str, tmp_path: Path) -> None:
    more = "[limits]\nmemory_bytes = 1_000_000\n"
    with running_server(tmp_path, {"many": many_files}, more) as server, server.flight() as client:
        with pytest.raises(flight.FlightUnavailableError, match=r"needs 16,777,216 at the least \(limits\.m"):
            sql(client, "select 1")
        assert "too small for statements" in "".join(server.process.served.config.warnings)
