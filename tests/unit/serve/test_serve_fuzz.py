"""Whatever bytes come in, over Flight or HTTP: a refusal in plain words, never a traceback or silence."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import flight

from lazydelta.serve.flight import actions as flight_actions
from lazydelta.serve.flight_sql import messages_pb2 as messages
from lazydelta.serve.flight_sql.room import FlightSqlRoom
from lazydelta.serve.sign_in import token_digest
from tests.support.hypothesis_profile import BUSY_AND_SHARED, examples
from tests.support.row_tables import eventually, readings_table
from tests.support.serving import RunningServer, bearer, planned, running_server
from tests.support.sharing import Sharing

QUICK = settings(max_examples=examples(40), deadline=None, suppress_health_check=BUSY_AND_SHARED)
SECONDS = 60.0
ANN = flight.FlightCallOptions(timeout=SECONDS, headers=[(b"authorization", b"Bearer ann-token")])
SQL_PREFIX = "type.googleapis.com/arrow.flight.protocol.sql."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[RunningServer]:
    clients = "".join(
        f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name + "-token")}"\n'
        for name in ("ann", "ben")
    )
    with running_server(folder, {"readings": readings_table(folder, hours=1)}, clients) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[flight.FlightClient]:
    with server.flight() as found:
        yield found


@pytest.fixture(scope="module")
def own(client: flight.FlightClient) -> bytes:
    """A ticket that the server wrote for Ann."""
    return bytes(planned(client, ANN, table="readings").endpoints[0].ticket.ticket)


def is_refused_or_fine(ask: Callable[[], Any], folder: Path) -> bool:
    try:
        ask()
    except flight.FlightInternalError as error:
        raise AssertionError(f"a bug: {error}") from error
    except flight.FlightTimedOutError as error:
        raise AssertionError("it hangs") from error
    except (flight.FlightError, pa.ArrowException, OSError) as error:
        text = str(error)
        assert '.py"' not in text, text
        assert str(folder) not in text, text
        assert "/src/" not in text and "site-packages" not in text, text
    return True


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
anything = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
columns = st.lists(st.sampled_from(["id", "value", "device", "path", "", "x", "_event_hour"]), max_size=4)
commands = st.fixed_dictionaries(
    {"table": st.sampled_from(["readings", "readings", "nope", "", "../x"])},
    optional={
        "what": st.sampled_from(["rows", "files", "cows"]),
        "predicate": st.text(max_size=20)
        | st.sampled_from(["id < 3", "id = 1e999", "nope = 1", "id < 'x'", "id < 1 and", "(" * 200])
        | anything,
        "columns": columns | anything,
        "limit": st.integers(-2, 5) | st.sampled_from([2**63 - 1, 2**63, 2**70]) | anything,
        "order": st.sampled_from(["asc", "desc", "up"]),
        "version": st.integers(-1, 3) | anything,
        "timestamp": st.text(max_size=12) | st.sampled_from(["2026-01-01", "0001-01-01T00:00:00+14:00"]),
        "strategy": st.sampled_from(["auto", "reverse", "forward", "x"]),
        "endpoints": st.integers(-1, 70) | anything,
        "more": anything,
    },
)


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


WORDS = "select * from readings where id = ? $1 limit 1 ; drop ( ) 'x' \" join values range(3) null"
sql_texts = st.lists(st.sampled_from(WORDS.split()), max_size=8).map(" ".join)
sql_messages = st.builds(
    lambda kind, value: (
        b"\n"
        + bytes([len(SQL_PREFIX) + len(kind)])
        + (SQL_PREFIX + kind).encode()
        + b"\x12"
        + bytes([len(value) % 128])
        + value
    ),
    st.sampled_from(sorted(name for name in messages.DESCRIPTOR.message_types_by_name)),
    st.binary(max_size=60) | sql_texts.map(lambda text: b"\n" + bytes([len(text) % 128]) + text.encode()),
)
bodies = st.binary(max_size=60) | commands.map(as_json) | anything.map(as_json) | sql_messages


@QUICK
@given(command=bodies)
@example(command=as_json({"table": "readings", "limit": 2**63 - 1}))
@example(command=as_json({"table": "readings", "endpoints": 64}))
@example(command=b"\xef\xbb\xbf{}")
def test_any_command_is_answered(client: flight.FlightClient, folder: Path, command: bytes) -> None:
    descriptor = flight.FlightDescriptor.for_command(command)

    def ask() -> None:
        info = client.get_flight_info(descriptor, ANN)
        client.do_get(info.endpoints[0].ticket, ANN).read_all()

    assert is_refused_or_fine(ask, folder)
    assert is_refused_or_fine(lambda: client.get_schema(descriptor, ANN), folder)


@QUICK
@given(path=st.lists(st.text(max_size=8) | st.just("readings"), max_size=3))
def test_any_path_is_answered(client: flight.FlightClient, folder: Path, path: list[str]) -> None:
    descriptor = flight.FlightDescriptor.for_path(*(part.encode("utf-8", "replace") for part in path))
    assert is_refused_or_fine(lambda: client.get_flight_info(descriptor, ANN), folder)


@QUICK
@given(ticket=st.binary(max_size=80) | sql_messages, place=st.integers(0, 400))
def test_no_ticket_but_the_server_s_own_is_read(
    client: flight.FlightClient, own: bytes, folder: Path, ticket: bytes, place: int
) -> None:
    assert is_refused_or_fine(lambda: client.do_get(flight.Ticket(ticket), ANN).read_all(), folder)
    altered = bytearray(own)
    altered[place % len(own)] ^= 1 + place % 255
    for forged in (own[: place % len(own)], bytes(altered), own + ticket if ticket else own + b"x"):
        with pytest.raises(pa.ArrowInvalid, match=r"the ticket cannot be used"):
            client.do_get(flight.Ticket(forged), ANN).read_all()
    with pytest.raises(pa.ArrowInvalid, match="it is another client's"):
        client.do_get(flight.Ticket(own), bearer("ben-token")).read_all()


ACTIONS = [*flight_actions.ACTIONS, *FlightSqlRoom.ACTIONS]
parts = st.fixed_dictionaries(
    {},
    optional={
        "table": st.just("readings") | anything,
        "paths": st.lists(st.text(max_size=8), max_size=3) | anything,
        "columns": columns | anything,
        "version": st.integers(-1, 2) | anything,
        "command": commands | anything,
        "count": st.integers(-1, 5) | st.just(2**62) | anything,
        "after": st.text(max_size=20) | anything,
    },
)


@QUICK
@given(name=st.sampled_from(ACTIONS) | st.text(max_size=12), body=bodies | parts.map(as_json))
def test_any_action_is_answered(client: flight.FlightClient, folder: Path, name: str, body: bytes) -> None:
    kind = name.encode("utf-8", "replace").decode()
    assert is_refused_or_fine(lambda: list(client.do_action(flight.Action(kind, body), ANN)), folder)


@QUICK
@given(command=bodies, rows=st.lists(st.integers(0, 9), max_size=2))
def test_nothing_can_be_put(
    client: flight.FlightClient, folder: Path, command: bytes, rows: list[int]
) -> None:
    table = pa.table({"a": pa.array(rows, pa.int64())})

    def ask() -> None:
        descriptor = flight.FlightDescriptor.for_command(command)
        writer, reader = client.do_put(descriptor, table.schema, ANN)
        with writer:
            writer.write_table(table)
            writer.done_writing()
            reader.read()

    assert is_refused_or_fine(ask, folder)


@QUICK
@given(
    criteria=st.binary(max_size=12),
    values=st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30), max_size=2),
)
def test_any_header_is_answered(
    client: flight.FlightClient, folder: Path, criteria: bytes, values: list[str]
) -> None:
    names = (b"authorization", b"x-request-id", b"traceparent", b"baggage")
    headers = [(name, value.encode()) for name in names for value in values]
    options = flight.FlightCallOptions(timeout=SECONDS, headers=headers)
    assert is_refused_or_fine(lambda: list(client.list_flights(criteria, options)), folder)


# --- HTTP, byte by byte ----------------------------------------------------------------

TABLE = "/delta-sharing/shares/lazydelta/schemas/main/tables/readings"
PATHS = f"""/ /healthz /metrics /readyz /files/x /files/x?se=1&sig=y {TABLE}/query {TABLE}/version * // /%00
{TABLE}/changes?startingVersion=0 /%ff/.. http://other/healthz /delta-sharing"""
targets = st.sampled_from(PATHS.encode().split()) | st.binary(max_size=30).map(lambda raw: b"/" + raw)
methods = st.sampled_from(
    [b"GET", b"POST", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"TRACE", b"get", b""]
) | st.binary(max_size=6)
header_names = st.sampled_from(
    [b"Host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"Upgrade", b"Expect", b"Range",
     b"Authorization", b"Content-Type", b"delta-sharing-capabilities", b"x-request-id", b"traceparent",
     b"If-None-Match", b"Content-Encoding", b"Cookie"]
) | st.binary(max_size=10)  # fmt: skip
header_values = st.sampled_from(
    [b"-1", b"5", b"99999999999999999999", b"chunked", b"gzip, chunked", b"websocket", b"upgrade",
     b"100-continue", b"bytes=0-", b"bytes=9-1", b"Bearer ann-token", b"Basic YTpi", b"close",
     b"keep-alive", b"a" * 20_000]
) | st.binary(max_size=40)  # fmt: skip


def spoken(port: int, sent: bytes) -> bytes:
    """What the server says to these bytes, until it closes or has nothing more to say."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            found = b""
            while chunk := connection.recv(1 << 16):
                found += chunk
        except ConnectionError:  # it has hung up: that is an answer, too
            return b""
        return found


Pairs = list[tuple[bytes, bytes]]
SIGNED = (b"Authorization", b"Bearer ann-token")


@QUICK
@given(
    asked=st.tuples(methods, targets),
    headers=st.lists(st.tuples(header_names, header_values) | st.just(SIGNED), max_size=5),
    body=st.binary(max_size=80) | anything.map(as_json),
)
@example(asked=(b"POST", f"{TABLE}/query".encode()), headers=[SIGNED], body=b"{}")
@example(
    asked=(b"GET", b"/healthz"), headers=[(b"Upgrade", b"websocket"), (b"Connection", b"upgrade")], body=b""
)
def test_any_bytes_over_http_are_answered(
    server: RunningServer, folder: Path, asked: tuple[bytes, bytes], headers: Pairs, body: bytes
) -> None:
    fixed = [(b"Host", b"here"), (b"Connection", b"close"), (b"Content-Length", b"%d" % len(body))]
    lines = [b" ".join(asked) + b" HTTP/1.1", *(b": ".join(pair) for pair in [*fixed, *headers])]
    answer = spoken(server.ports.http or 0, b"\r\n".join(lines) + b"\r\n\r\n" + body)
    assert not answer or answer.startswith(b"HTTP/1.1 "), answer[:100]
    for status in [line.split()[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]:
        assert not status.startswith(b"5"), answer
    assert b"Traceback" not in answer
    assert str(folder).encode() not in answer


@QUICK
@given(sent=st.binary(max_size=200))
def test_what_is_no_http_is_answered(server: RunningServer, sent: bytes) -> None:
    answer = spoken(server.ports.http or 0, sent)
    assert not answer or answer.startswith(b"HTTP/1.1 4"), answer


def test_nothing_was_a_bug_and_the_server_is_well(server: RunningServer, client: flight.FlightClient) -> None:
    assert 'status="bug"' not in Sharing(server).ask("GET", "/metrics").body.decode()
    assert Sharing(server).ask("GET", "/readyz").status == 200
    info = planned(client, ANN, table="readings")
    assert client.do_get(info.endpoints[0].ticket, ANN).read_all().num_rows == 30
    assert eventually(lambda: not server.process.served.admission.running())
