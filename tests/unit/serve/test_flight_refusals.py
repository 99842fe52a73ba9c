"""What Flight refuses, and how: the status fits, the text helps, and nothing of the server leaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from lazydelta.serve.sign_in import token_digest
from tests.support.row_tables import readings_table
from tests.support.serving import RunningServer, bearer, planned, running_server

CLIENTS = f"""
[[clients]]
name = "ann"
token_sha256 = "{token_digest("ann's")}"
roles = ["analysts"]
[[clients]]
name = "ben"
token_sha256 = "{token_digest("ben's")}"
"""
ANN, BEN = bearer("ann's"), bearer("ben's")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refusals")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[RunningServer]:
    url = readings_table(folder, hours=2)
    damaged = folder / "damaged"
    (damaged / "_delta_log").mkdir(parents=True)
    (damaged / "_delta_log" / f"{0:020}.json").write_text("{no json", "utf-8")
    more = f"""
{CLIENTS}
[tables.secret]
url = {json.dumps(url)}
readers = ["analysts"]
[tables.of_ben]
url = {json.dumps(url)}
readers = ["ben"]
[tables.damaged]
url = {json.dumps(str(damaged))}
"""
    with running_server(folder, {"open": url}, more) as running:
        yield running


def refusal(ask: Callable[[], Any]) -> Exception:
    with pytest.raises((pa.ArrowException, flight.FlightError)) as caught:
        ask()
    return caught.value


def test_nobody_gets_in_without_a_token(server: RunningServer) -> None:
    with server.flight() as client:
        asks: list[Callable[[], Any]] = [
            lambda: planned(client, table="open"),
            lambda: planned(client, bearer("wrong"), table="open"),
            lambda: list(client.list_flights()),
            lambda: client.do_get(flight.Ticket(b"x")).read_all(),
            lambda: list(client.do_action(flight.Action("refresh", b'{"table": "open"}'))),
            lambda: list(client.list_actions()),
        ]
        for ask in asks:
            error = refusal(ask)
            assert isinstance(error, flight.FlightUnauthenticatedError)
            assert "Bearer" in str(error)
        # pyarrow's client does not know the status that this call ends with.
        with pytest.raises(OSError, match="Detail: Unauthenticated"):
            client.get_schema(flight.FlightDescriptor.for_path("open"))


@pytest.mark.parametrize(
    "header", [b"Basic YTpi", b"Bearer", b"Bearer  ", b"bearer " + b"x" * 5000, b"\xff\xfe"]
)
def test_headers_that_are_no_token_do_not_sign_in(server: RunningServer, header: bytes) -> None:
    options = flight.FlightCallOptions(headers=[(b"authorization", header)])
    with server.flight() as client, pytest.raises(flight.FlightError):
        planned(client, options, table="open")


def test_a_name_and_a_token_as_its_password_are_exchanged_for_the_token(server: RunningServer) -> None:
    with server.flight() as client:
        header = client.authenticate_basic_token(b"ann", b"ann's")
        assert header == (b"authorization", b"Bearer ann's")
        options = flight.FlightCallOptions(headers=[header])
        assert planned(client, options, table="secret").endpoints
        for name, password in ((b"ben", b"ann's"), (b"ann", b"wrong"), (b"", b""), (b"ann", b"")):
            with pytest.raises(flight.FlightUnauthenticatedError):
                client.authenticate_basic_token(name, password)


def test_roles_and_names_open_tables(server: RunningServer) -> None:
    def seen(options: flight.FlightCallOptions) -> list[str]:
        with server.flight() as client:
            infos = client.list_flights(options=options)
            return [json.loads(info.descriptor.command)["table"] for info in infos]

    assert seen(ANN) == ["damaged", "open", "secret"]
    assert seen(BEN) == ["damaged", "of_ben", "open"]


def test_a_forbidden_table_is_refused_in_the_words_of_a_missing_one(server: RunningServer) -> None:
    with server.flight() as client:
        forbidden = refusal(lambda: planned(client, BEN, table="secret"))
        missing = refusal(lambda: planned(client, BEN, table="nowhere"))
        for action in ("refresh", "explain"):
            body = json.dumps({"table": "secret"}).encode()
            acted = refusal(lambda: list(client.do_action(flight.Action(action, body), BEN)))  # noqa: B023
            assert isinstance(acted, pa.ArrowKeyError)
    assert isinstance(forbidden, pa.ArrowKeyError)
    assert str(forbidden).replace("secret", "nowhere") == str(missing)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (b"", "the command is wrong"),
        (b"{", "the command is wrong"),
        (b"[]", "the command is wrong"),
        (b"\xff\xfe", "the command is wrong"),
        (b"[" * 100_000, "the command is wrong"),
        (b'{"table": "open", "predicate": "id = 1' + b" or id = 1" * 5000 + b'"}', "more than 20,000 words"),
        (b'{"table": "open", "predicate": "id = ' + b"-" * 20_000 + b'"}', "more than 20,000 words"),
        (
            b'{"table": "open", "predicate": {"id": {"in": [1' + b", 1" * 20_000 + b"]}}}",
            "more than 20,000 words",
        ),
        (b'{"what": "rows"}', "table"),
        (b'{"table": "open", "whta": 1}', "whta"),
        (b'{"table": "open", "what": "cows"}', "cows"),
        (b'{"table": "open", "limit": -1}', "limit"),
        (b'{"table": "open", "limit": 1.5}', "limit"),
        (b'{"table": "open", "endpoints": 0}', "endpoints"),
        (b'{"table": "open", "endpoints": 65}', "endpoints"),
        (b'{"table": "open", "endpoints": 2, "limit": 5}', "endpoints"),
        (b'{"table": "open", "order": "sideways"}', "order"),
        (b'{"table": "open", "strategy": "guess"}', "strategy"),
        (b'{"table": "open", "columns": ["nope"]}', "nope"),
        (b'{"table": "open", "what": "files", "columns": ["nope"]}', "nope"),
        (b'{"table": "open", "predicate": "nope > 1"}', "nope"),
        (b'{"table": "open", "predicate": "id >"}', "id"),
        (b'{"table": "open", "predicate": {"id": {"beyond": 1}}}', "beyond"),
        (b'{"table": "open", "timestamp": "yesterday"}', "yesterday"),
        (b'{"table": "open", "version": 1, "timestamp": "2026-01-01"}', "version"),
    ],
)
def test_a_malformed_command_is_an_invalid_argument(server: RunningServer, command: bytes, told: str) -> None:
    with server.flight() as client:
        descriptor = flight.FlightDescriptor.for_command(command)
        errors = [
            refusal(lambda: client.get_flight_info(descriptor, ANN)),
            refusal(lambda: client.get_schema(descriptor, ANN)),
        ]
    for error in errors:
        assert isinstance(error, pa.ArrowInvalid), error
        assert told in str(error)


def test_a_version_that_is_not_there_is_not_found(server: RunningServer) -> None:
    with server.flight() as client:
        error = refusal(lambda: planned(client, ANN, table="open", version=99))
    assert isinstance(error, pa.ArrowKeyError)
    assert "99" in str(error)


@pytest.mark.parametrize("name", ["refresh", "stats_for_files", "explain", "page"])
@pytest.mark.parametrize("body", [b"", b"null", b"{}", b'{"table": 7}', b'{"table": "open", "more": 1}'])
def test_a_malformed_action_is_an_invalid_argument(server: RunningServer, name: str, body: bytes) -> None:
    with server.flight() as client:
        error = refusal(lambda: list(client.do_action(flight.Action(name, body), ANN)))
    assert isinstance(error, pa.ArrowInvalid)


def test_an_unknown_action_names_those_that_there_are(server: RunningServer) -> None:
    with server.flight() as client:
        error = refusal(lambda: list(client.do_action(flight.Action("drop_table", b""), ANN)))
        named = [action.type for action in client.list_actions(ANN)]
    assert "stats_for_files" in str(error)
    assert {"refresh", "stats_for_files", "explain", "page", "CancelFlightInfo"} <= set(named)


def test_an_oversized_request_is_refused(folder: Path, tmp_path: Path) -> None:
    more = "[limits]\nrequest_bytes = 1000\n"
    url = str(folder / "readings")
    with running_server(tmp_path, {"open": url}, more) as server, server.flight() as client:
        long = {"table": "open", "predicate": "id in (" + ", ".join(map(str, range(1000))) + ")"}
        asks: list[Callable[[], Any]] = [
            lambda: planned(client, **long),
            lambda: client.get_flight_info(flight.FlightDescriptor.for_path("x" * 2000)),
            lambda: list(client.do_action(flight.Action("explain", json.dumps(long).encode()))),
            lambda: client.do_get(flight.Ticket(b"x" * 100_000)).read_all(),
        ]
        for ask in asks:
            error = refusal(ask)
            assert isinstance(error, pa.ArrowInvalid)
            assert "limits.request_bytes" in str(error)
        assert planned(client, table="open").total_records == -1


def test_nothing_can_be_written(server: RunningServer) -> None:
    descriptor = flight.FlightDescriptor.for_command(b'{"table": "open"}')
    rows = pa.table({"id": [1]})
    with server.flight() as client:

        def put() -> None:
            writer, _ = client.do_put(descriptor, rows.schema, ANN)
            with writer:
                writer.write_table(rows)

        error = refusal(put)
        assert isinstance(error, pa.ArrowNotImplementedError)
        assert "read only" in str(error)


def test_a_damaged_table_is_told_without_its_address(server: RunningServer, folder: Path) -> None:
    with server.flight() as client:
        error = refusal(lambda: planned(client, ANN, table="damaged"))
    assert isinstance(error, flight.FlightServerError)
    assert "damaged" in str(error)
    assert str(folder) not in str(error)
    assert error.extra_info == b"CorruptLog"


def test_no_refusal_tells_of_the_server_s_files(server: RunningServer, folder: Path) -> None:
    with server.flight() as client:
        asks: list[Callable[[], Any]] = [
            lambda: planned(client, table="open"),
            lambda: planned(client, BEN, table="secret"),
            lambda: planned(client, ANN, table="open", columns=["nope"]),
            lambda: planned(client, ANN, table="open", predicate="nope = 1"),
            lambda: planned(client, ANN, table="open", version=99),
            lambda: planned(client, ANN, table="damaged"),
            lambda: client.do_get(flight.Ticket(b"x"), ANN).read_all(),
        ]
        for ask in asks:
            told = str(refusal(ask))
            assert str(folder) not in told
            assert "site-packages" not in told
            assert "flight/server.py" not in told
            assert "/src/" not in told


def test_a_bug_is_told_by_its_request_alone(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret thought")

    monkeypatch.setattr(server.process.served.scans, "plan", broken)
    options = flight.FlightCallOptions(
        headers=[(b"authorization", b"Bearer ann's"), (b"x-request-id", b"call-77")]
    )
    with server.flight() as client:
        error = refusal(lambda: planned(client, options, table="open"))
    assert isinstance(error, flight.FlightInternalError)
    assert "call-77" in str(error)
    assert "secret thought" not in str(error)
    assert "a secret thought" in caplog.text
