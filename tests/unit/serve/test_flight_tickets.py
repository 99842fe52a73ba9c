"""Tickets of Flight: whatever was altered, has expired or is another's reads nothing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import flight

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.command import Command
from lazydelta.serve.flight_sql import messages_pb2 as messages
from lazydelta.serve.flight_sql.envelope import enclosed
from lazydelta.serve.sign_in import token_digest
from lazydelta.serve.tickets import Ticket, TicketOffice
from tests.support.row_tables import readings_table
from tests.support.serving import RunningServer, bearer, planned, running_server

CLIENTS = "".join(
    f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name)}"\n' for name in ("ann", "ben")
)
OFFICE = TicketOffice(b"key", valid_seconds=60)
LONG_FROM_NOW = 2.0**32  # in seconds since 1970: a run of the tests may take hours between here and a test
TICKET = Ticket("ann", Command(table="readings", version=3), "some-id", 0, LONG_FROM_NOW)
WRITTEN = OFFICE.write(TICKET)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("tickets")
    with running_server(folder, {"readings": readings_table(folder, hours=1)}, CLIENTS) as running:
        yield running


def test_a_ticket_is_read_as_it_was_written() -> None:
    assert OFFICE.read(WRITTEN, client="ann") == TICKET


@given(st.integers(0, len(WRITTEN) - 1), st.integers(1, 255))
def test_a_ticket_with_any_other_byte_is_refused(place: int, change: int) -> None:
    altered = bytearray(WRITTEN)
    altered[place] ^= change
    with pytest.raises(InvalidRequestError, match="altered"):
        OFFICE.read(bytes(altered), client="ann")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_ticket_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="altered"):
        OFFICE.read(raw, client="ann")


def test_a_ticket_of_another_key_or_purpose_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="another server wrote it"):
        TicketOffice(b"other", valid_seconds=60).read(WRITTEN, client="ann")
    with pytest.raises(InvalidRequestError, match="altered"):
        OFFICE.opened(b"something else", WRITTEN, Ticket, client="ann")


def test_an_expired_ticket_is_refused(tmp_path: Path) -> None:
    url = readings_table(tmp_path, hours=1)
    more = "ticket_seconds = 0.05\n"
    with running_server(tmp_path, {"readings": url}, more) as server, server.flight() as client:
        before = time.time()
        info = planned(client, table="readings")
        expires_at = info.endpoints[0].expiration_time.as_py().timestamp()
        assert before - 1 < expires_at < time.time() + 1  # it is told in seconds
        time.sleep(0.1)
        with pytest.raises(pa.ArrowInvalid, match="it has expired"):
            client.do_get(info.endpoints[0].ticket).read_all()


def test_a_ticket_is_of_no_use_to_another_client(server: RunningServer) -> None:
    with server.flight() as client:
        ticket = planned(client, bearer("ann"), table="readings").endpoints[0].ticket
        assert client.do_get(ticket, bearer("ann")).read_all().num_rows == 30
        with pytest.raises(pa.ArrowInvalid, match="it is another client's"):
            client.do_get(ticket, bearer("ben")).read_all()
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.do_get(ticket).read_all()


def test_a_ticket_does_not_widen_what_it_was_written_for(server: RunningServer) -> None:
    with server.flight() as client:
        raw = planned(client, bearer("ann"), table="readings", limit=2).endpoints[0].ticket.ticket
        body = msgspec.msgpack.decode(raw[32:])
        body[1].pop("limit")
        forged = flight.Ticket(raw[:32] + msgspec.msgpack.encode(body))
        with pytest.raises(pa.ArrowInvalid, match="altered"):
            client.do_get(forged, bearer("ann")).read_all()


def sql_info(client: flight.FlightClient, query: str) -> flight.FlightInfo:
    message = enclosed(messages.CommandStatementQuery(query=query))
    return client.get_flight_info(flight.FlightDescriptor.for_command(message))


@pytest.mark.parametrize("is_kept_open", [True, False])
def test_a_ticket_is_of_no_use_for_a_table_that_has_taken_the_place_of_its_own(
    tmp_path: Path, is_kept_open: bool
) -> None:
    url = tmp_path / "table"
    write_deltalake(url, pa.table({"id": [1], "old": ["o"]}))
    with running_server(tmp_path, {"t": str(url)}) as server, server.flight() as client:
        infos = [planned(client, table="t"), sql_info(client, "select * from t")]
        assert [client.do_get(info.endpoints[0].ticket).read_all()["id"].to_pylist() for info in infos] == [
            [1]
        ] * 2
        shutil.rmtree(url)
        write_deltalake(url, pa.table({"id": [2], "new": [1.5]}))
        if is_kept_open:
            assert planned(client, table="t").schema.names == ["id", "new"]
        else:  # as another server with the same key
            server.process.served.catalog._opened.clear()
        for info in infos:
            with pytest.raises(pa.ArrowInvalid, match="it is of another table"):
                client.do_get(info.endpoints[0].ticket).read_all()


def test_a_ticket_is_of_no_use_once_its_name_has_another_address(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_deltalake(tmp_path / name, pa.table({name: [1]}))
    with running_server(tmp_path, {"t": str(tmp_path / "a")}) as server, server.flight() as client:
        infos = [planned(client, table="t"), sql_info(client, "select * from t")]
        text = server.path.read_text("utf-8").replace(str(tmp_path / "a"), str(tmp_path / "b"))
        server.path.write_text(text, "utf-8")
        assert server.process.reload()
        for info in infos:
            with pytest.raises(pa.ArrowInvalid, match="it is of another table"):
                client.do_get(info.endpoints[0].ticket).read_all()
        assert client.do_get(planned(client, table="t").endpoints[0].ticket).read_all().column_names == ["b"]


@pytest.mark.parametrize("raw", [b"", b"x", b"\x00" * 40, b"{}", b"\n\x05type."])
def test_what_is_no_ticket_is_told_so(server: RunningServer, raw: bytes) -> None:
    with server.flight() as client, pytest.raises(pa.ArrowInvalid, match="ticket"):
        client.do_get(flight.Ticket(raw), bearer("ann")).read_all()
