"""Flight SQL message by message, as drivers may send them: well formed, altered, outdated, plainly wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import flight

import lazydelta as ld
from lazydelta.serve.flight_sql import messages_pb2 as messages
from lazydelta.serve.flight_sql.catalog_rows import (
    CATALOGS,
    FOREIGN_KEYS,
    PRIMARY_KEYS,
    SCHEMAS,
    TABLE_TYPES,
    TABLES,
    TABLES_WITH_COLUMNS,
)
from lazydelta.serve.flight_sql.envelope import enclosed, opened
from lazydelta.serve.flight_sql.sql_info import INFO
from lazydelta.serve.flight_sql.type_info import TYPES
from lazydelta.serve.sign_in import token_digest
from tests.support.hypothesis_profile import BUSY_AND_SHARED, examples
from tests.support.row_tables import readings_table
from tests.support.serving import RunningServer, bearer, running_server

ANN, BEN = bearer("ann"), bearer("ben")
CLIENTS = "".join(
    f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name)}"\n' for name in ("ann", "ben")
)
QUERY = "select id, device from readings where id < ? order by id"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("protocol"), hours=1)


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    more = f"{CLIENTS}[tables.of_ann]\nurl = {json.dumps(url)}\nreaders = ['ann']\nshare = 'lake'\n"
    more += "schema = 'raw'\n"
    with running_server(tmp_path_factory.mktemp("config"), {"readings": url}, more) as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Iterator[flight.FlightClient]:
    with server.flight() as found:
        yield found


def described(message: Any) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(enclosed(message))


def asked(client: flight.FlightClient, message: Any, options: Any = ANN) -> pa.Table:
    """The answer, once its schema was told alike by all three calls."""
    info = client.get_flight_info(described(message), options)
    found = client.do_get(info.endpoints[0].ticket, options).read_all()
    assert found.schema == info.schema == client.get_schema(described(message), options).schema
    return found


def acted(client: flight.FlightClient, name: str, message: Any, options: Any = ANN) -> list[Any]:
    answers = client.do_action(flight.Action(name, enclosed(message)), options)
    return [opened(answer.body.to_pybytes()) for answer in answers]


def prepared(client: flight.FlightClient, query: str, options: Any = ANN) -> Any:
    request = messages.ActionCreatePreparedStatementRequest(query=query)
    (found,) = acted(client, "CreatePreparedStatement", request, options)
    return found


def bound(client: flight.FlightClient, handle: bytes, rows: pa.Table, options: Any = ANN) -> bytes:
    """The handle that binding gives."""
    command = described(messages.CommandPreparedStatementQuery(prepared_statement_handle=handle))
    writer, reader = client.do_put(command, rows.schema, options)
    with writer:
        writer.write_table(rows)
        writer.done_writing()
        told = messages.DoPutPreparedStatementResult.FromString(reader.read().to_pybytes())
    return bytes(told.prepared_statement_handle)


@pytest.mark.parametrize(
    ("message", "schema", "rows"),
    [
        (messages.CommandGetCatalogs(), CATALOGS, 2),
        (messages.CommandGetDbSchemas(), SCHEMAS, 2),
        (messages.CommandGetDbSchemas(catalog="lake", db_schema_filter_pattern="r__"), SCHEMAS, 1),
        (messages.CommandGetTables(), TABLES, 2),
        (messages.CommandGetTables(include_schema=True), TABLES_WITH_COLUMNS, 2),
        (messages.CommandGetTables(table_name_filter_pattern=r"of\_ann"), TABLES, 1),
        (messages.CommandGetTables(table_name_filter_pattern=r"of\_an_"), TABLES, 1),
        (messages.CommandGetTables(catalog=""), TABLES, 0),
        (messages.CommandGetTableTypes(), TABLE_TYPES, 1),
        (messages.CommandGetPrimaryKeys(table="readings"), PRIMARY_KEYS, 0),
        (messages.CommandGetExportedKeys(table="readings"), FOREIGN_KEYS, 0),
        (messages.CommandGetImportedKeys(table="readings"), FOREIGN_KEYS, 0),
        (messages.CommandGetCrossReference(pk_table="a", fk_table="b"), FOREIGN_KEYS, 0),
        (messages.CommandGetSqlInfo(info=[0, 3, 8, 508]), INFO, 4),
        (messages.CommandGetSqlInfo(info=[99_999]), INFO, 0),
        (messages.CommandGetXdbcTypeInfo(), TYPES, 14),
        (messages.CommandGetXdbcTypeInfo(data_type=93), TYPES, 2),
        (messages.CommandGetXdbcTypeInfo(data_type=12345), TYPES, 0),
    ],
)
def test_the_catalog_answers_in_the_protocol_s_columns(
    client: flight.FlightClient, message: Any, schema: pa.Schema, rows: int
) -> None:
    found = asked(client, message)
    assert found.schema == schema
    assert found.num_rows == rows


def test_columns_of_tables_are_told_as_ipc(client: flight.FlightClient, url: str) -> None:
    found = asked(client, messages.CommandGetTables(include_schema=True))
    (first, _) = found["table_schema"].to_pylist()
    assert pa.ipc.read_schema(pa.py_buffer(first)) == ld.open(url).to_arrow().schema


def test_a_client_sees_its_own_catalog(client: flight.FlightClient) -> None:
    assert asked(client, messages.CommandGetCatalogs(), BEN).to_pylist() == [{"catalog_name": "lazydelta"}]
    assert asked(client, messages.CommandGetTables(), BEN)["table_name"].to_pylist() == ["readings"]


def test_facts_are_of_the_kinds_that_the_protocol_has(client: flight.FlightClient) -> None:
    facts = {
        row["info_name"]: row["value"] for row in asked(client, messages.CommandGetSqlInfo()).to_pylist()
    }
    assert facts[0] == "lazydelta"
    assert facts[3] is True
    assert facts[8] == 0
    assert isinstance(facts[508], list)
    assert len(facts) > 50


def test_a_statement_is_planned_and_run(client: flight.FlightClient) -> None:
    found = asked(client, messages.CommandStatementQuery(query="select count(*) as n from readings"))
    assert found.to_pylist() == [{"n": 30}]


def test_a_prepared_statement_goes_through_its_life(client: flight.FlightClient) -> None:
    made = prepared(client, QUERY)
    assert pa.ipc.read_schema(pa.py_buffer(made.dataset_schema)).names == ["id", "device"]
    assert pa.ipc.read_schema(pa.py_buffer(made.parameter_schema)) == pa.schema([("1", pa.int64())])
    handle = bound(client, made.prepared_statement_handle, pa.table({"x": [2]}))
    assert handle != made.prepared_statement_handle
    query = messages.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    assert asked(client, query)["id"].to_pylist() == [0, 1]
    # A client that keeps its first handle is served what it bound last.
    first = messages.CommandPreparedStatementQuery(prepared_statement_handle=made.prepared_statement_handle)
    assert asked(client, first)["id"].to_pylist() == [0, 1]
    bound(client, made.prepared_statement_handle, pa.table({"x": [1]}))
    assert asked(client, first)["id"].to_pylist() == [0]
    assert asked(client, query)["id"].to_pylist() == [0, 1]

    close = messages.ActionClosePreparedStatementRequest(
        prepared_statement_handle=made.prepared_statement_handle
    )
    assert acted(client, "ClosePreparedStatement", close) == []
    with pytest.raises(pa.ArrowInvalid, match="1 parameters, and 0 were bound"):
        client.get_flight_info(described(first), ANN)


@pytest.mark.parametrize(
    "rows",
    [pa.table({"x": pa.array([], pa.int64())}), pa.table({"x": [1, 2]}), pa.table({"x": ["y" * 2_000_000]})],
)
def test_other_than_one_row_of_parameters_is_refused(client: flight.FlightClient, rows: pa.Table) -> None:
    made = prepared(client, QUERY)
    with pytest.raises(pa.ArrowInvalid, match=r"one row|limits\.request_bytes"):
        bound(client, made.prepared_statement_handle, rows)


def test_parameters_of_another_kind_are_told(client: flight.FlightClient) -> None:
    made = prepared(client, QUERY)
    handle = bound(client, made.prepared_statement_handle, pa.table({"x": ["no number"]}))
    query = messages.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    with pytest.raises(pa.ArrowInvalid):
        asked(client, query)


@pytest.mark.parametrize(
    "value",
    [
        pa.array([1_001], pa.timestamp("ns")),
        pa.array([1_001], pa.time64("ns")),
        pa.array([1_001], pa.duration("ns")),
        pa.array([[1_001]], pa.list_(pa.timestamp("ns"))),
        pa.array([Decimal("1" * 50)], pa.decimal256(60, 0)),
        pa.array([{"x": Decimal(1)}], pa.struct([("x", pa.decimal256(60, 0))])),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        pa.array([[[("k", 1)]]], pa.list_(pa.map_(pa.string(), pa.int32()))),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([5_000_000], pa.date32()),
        pa.array([1 << 62], pa.timestamp("us")),
        pa.array([1 << 62], pa.duration("s")),
        pa.array([0], pa.timestamp("us", "No/Where")),
    ],
    ids=lambda value: str(value.type),
)
def test_a_parameter_that_would_become_another_value_is_refused(
    client: flight.FlightClient, value: pa.Array
) -> None:
    made = prepared(client, "select ? as x")
    handle = bound(client, made.prepared_statement_handle, pa.table([value], ["1"]))
    query = messages.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    with pytest.raises(pa.ArrowInvalid, match="parameter"):
        asked(client, query)


@pytest.mark.parametrize(
    "value",
    [
        pa.array([2_000], pa.timestamp("ns", "UTC")),
        pa.array([2_000], pa.time64("ns")),
        pa.array([None], pa.time64("ns")),
        pa.array([Decimal("1.25")], pa.decimal256(70, 2)),
        pa.array([Decimal("-" + "9" * 38)], pa.decimal128(38, 0)),
        pa.array([(1 << 64) - 1], pa.uint64()),
        pa.array([[1, None]]),
        pa.array([{"a": "ü", "b": float("inf")}]),
        pa.array(["x"]).dictionary_encode(),
        pa.array([b"\x00\xff"]),
    ],
    ids=lambda value: str(value.type),
)
def test_a_parameter_comes_back_as_it_went(client: flight.FlightClient, value: pa.Array) -> None:
    made = prepared(client, "select ? as x")
    handle = bound(client, made.prepared_statement_handle, pa.table([value], ["1"]))
    query = messages.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    assert asked(client, query)["x"].to_pylist() == value.to_pylist()


def test_handles_are_sealed_bound_to_their_client_and_to_their_purpose(client: flight.FlightClient) -> None:
    made = prepared(client, QUERY).prepared_statement_handle
    info = client.get_flight_info(described(messages.CommandStatementQuery(query="select 1")), ANN)
    ticket = info.endpoints[0].ticket
    statement = opened(ticket.ticket).statement_handle
    altered = bytearray(statement)
    altered[-3] ^= 1

    def run(handle: bytes) -> flight.Ticket:
        return flight.Ticket(enclosed(messages.TicketStatementQuery(statement_handle=handle)))

    for forged in (bytes(altered), made, b"", b"x" * 100):
        with pytest.raises(pa.ArrowInvalid, match="altered"):
            client.do_get(run(forged), ANN).read_all()
    with pytest.raises(pa.ArrowInvalid, match="another client's"):
        client.do_get(ticket, BEN).read_all()
    with pytest.raises(pa.ArrowInvalid, match="altered"):
        command = messages.CommandPreparedStatementQuery(prepared_statement_handle=statement)
        client.get_flight_info(described(command), ANN)
    assert client.do_get(ticket, ANN).read_all().num_rows == 1


def test_a_statement_s_handle_expires(url: str, tmp_path: Path) -> None:
    more = "ticket_seconds = 0.05\n"
    with running_server(tmp_path, {"readings": url}, more) as server, server.flight() as client:
        info = client.get_flight_info(described(messages.CommandStatementQuery(query="select 1")))
        time.sleep(0.1)
        with pytest.raises(pa.ArrowInvalid, match="it has expired"):
            client.do_get(info.endpoints[0].ticket).read_all()


@pytest.mark.parametrize("name", ["CancelFlightInfo", "CancelQuery"])
def test_a_statement_is_cancelled_by_another_call(client: flight.FlightClient, name: str) -> None:
    query = "select a.id from readings a, range(10000000) b"
    info = client.get_flight_info(described(messages.CommandStatementQuery(query=query)), ANN)

    def cancelled(options: Any) -> int:
        if name == "CancelQuery":
            (told,) = acted(client, name, messages.ActionCancelQueryRequest(info=info.serialize()), options)
            return int(told.result)
        body = messages.CancelFlightInfoRequest(info=info.serialize()).SerializeToString()
        (answer,) = client.do_action(flight.Action(name, body), options)
        return int(messages.CancelFlightInfoResult.FromString(answer.body.to_pybytes()).status)

    assert cancelled(ANN) == 3
    reader = client.do_get(info.endpoints[0].ticket, ANN)
    assert reader.read_chunk().data.num_rows
    assert cancelled(BEN) == 3
    assert cancelled(ANN) == 1
    with pytest.raises(flight.FlightServerError, match="its client cancelled it"):
        reader.read_all()


@pytest.mark.parametrize(
    "message",
    [
        messages.CommandStatementUpdate(query="delete from readings"),
        messages.CommandPreparedStatementUpdate(prepared_statement_handle=b"x"),
        messages.CommandStatementIngest(table="readings"),
        messages.CommandStatementSubstraitPlan(plan=b""),
    ],
)
def test_what_would_write_is_not_implemented(client: flight.FlightClient, message: Any) -> None:
    with pytest.raises(pa.ArrowNotImplementedError, match="read only"):
        client.get_flight_info(described(message), ANN)
    rows = pa.table({"id": [1]})
    with pytest.raises(pa.ArrowNotImplementedError, match="read only"):
        writer, _ = client.do_put(described(message), rows.schema, ANN)
        with writer:
            writer.write_table(rows)


@pytest.mark.parametrize(
    "name",
    ["BeginTransaction", "EndTransaction", "BeginSavepoint", "EndSavepoint", "CreatePreparedSubstraitPlan"],
)
def test_transactions_and_plans_are_not_implemented(client: flight.FlightClient, name: str) -> None:
    with pytest.raises(pa.ArrowNotImplementedError, match="is not served"):
        list(client.do_action(flight.Action(name, b""), ANN))


def test_a_statement_in_a_transaction_is_refused(client: flight.FlightClient) -> None:
    with pytest.raises(pa.ArrowNotImplementedError, match="a transaction is not served"):
        asked(client, messages.CommandStatementQuery(query="select 1", transaction_id=b"t"))


def test_an_oversized_statement_is_refused(client: flight.FlightClient) -> None:
    query = messages.CommandStatementQuery(query="select '" + "x" * 1_100_000 + "'")
    with pytest.raises(pa.ArrowInvalid, match=r"limits\.request_bytes"):
        client.get_flight_info(described(query), ANN)


COMMANDS = [
    messages.CommandGetTables(catalog="lake"),
    messages.CommandStatementQuery(query="select 1"),
    messages.TicketStatementQuery(statement_handle=b"x" * 50),
    messages.ActionCreatePreparedStatementRequest(query="select 1"),
    messages.ActionCancelQueryRequest(info=b"x"),
]
damaged = st.builds(
    lambda message, place, value: _damaged(enclosed(message), place, value),
    st.sampled_from(COMMANDS),
    st.integers(0, 200),
    st.binary(max_size=6),
)
ACTIONS = ["CreatePreparedStatement", "ClosePreparedStatement", "CancelQuery", "CancelFlightInfo", "page"]


def _damaged(raw: bytes, place: int, value: bytes) -> bytes:
    place %= len(raw)
    return raw[:place] + value + raw[place + 1 :]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=BUSY_AND_SHARED)
@given(st.one_of(st.binary(max_size=80), damaged), st.sampled_from(ACTIONS))
def test_no_bytes_make_the_server_fail(client: flight.FlightClient, raw: bytes, action: str) -> None:
    asks = [
        lambda: client.get_flight_info(flight.FlightDescriptor.for_command(raw), ANN),
        lambda: client.get_schema(flight.FlightDescriptor.for_command(raw), ANN),
        lambda: client.do_get(flight.Ticket(raw), ANN).read_all(),
        lambda: list(client.do_action(flight.Action(action, raw), ANN)),
    ]
    for ask in asks:
        # Told as what it is; anything else is a bug.
        with suppress(pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError):
            ask()
