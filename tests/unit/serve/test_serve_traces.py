"""Each request is one span below its caller's, and what it did stands below it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pyarrow as pa
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pyarrow import flight

from lazydelta.errors import InvalidRequestError
from lazydelta.serve import tracing
from lazydelta.serve.trace_export import export_as
from tests.support.row_tables import eventually, readings_table
from tests.support.serving import RunningServer, planned, running_server
from tests.support.sharing import Sharing

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    found = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("lazydelta"))
    monkeypatch.setattr(tracing, "is_recorded", lambda: True)
    yield found
    provider.shutdown()


@pytest.fixture
def server(tmp_path: Path, many_files: str) -> Iterator[RunningServer]:
    tables = {"readings": readings_table(tmp_path, hours=1), "many": many_files}
    with running_server(tmp_path, tables) as running:
        yield running


def called(traceparent: str = TRACEPARENT) -> flight.FlightCallOptions:
    headers = [(b"traceparent", traceparent.encode()), (b"x-request-id", b"mine")]
    return flight.FlightCallOptions(headers=headers)


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def one(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    assert eventually(lambda: bool(named(exporter, name))), [s.name for s in exporter.get_finished_spans()]
    (found,) = named(exporter, name)
    return found


def told(span: ReadableSpan) -> dict[str, Any]:
    return {key.removeprefix("lazydelta."): value for key, value in (span.attributes or {}).items()}


def test_a_scan_over_flight_is_told_from_the_call_to_its_reads(
    server: RunningServer, exporter: InMemorySpanExporter
) -> None:
    with server.flight() as client:
        info = planned(client, called(), table="readings", predicate="id < 7")
        client.do_get(info.endpoints[0].ticket, called()).read_all()
    plan, read = one(exporter, "flight GetFlightInfo"), one(exporter, "flight DoGet")
    scan = one(exporter, "scan")
    for span in (plan, read):
        assert span.parent is not None and f"{span.parent.span_id:016x}" == PARENT
        assert span.kind.name == "SERVER"
        assert told(span)["request_id"] == "mine"
    assert scan.parent is not None and scan.parent.span_id == read.context.span_id
    assert told(read)["rows"] == told(scan)["rows"] == 7
    assert told(read)["table"] == "readings" and told(read)["client"] == "anyone"
    assert told(scan)["files_emitted"] == 1 and told(scan)["bytes_read"] > 0
    traces = {span.context.trace_id for span in exporter.get_finished_spans()}
    assert {f"{trace:032x}" for trace in traces} == {TRACE}
    opened = one(exporter, "open")
    assert opened.parent is not None and opened.parent.span_id == plan.context.span_id


def test_a_request_of_http_is_one_span_too(server: RunningServer, exporter: InMemorySpanExporter) -> None:
    answer = Sharing(server).query("readings", {"traceparent": TRACEPARENT, "x-request-id": "mine"})
    assert answer.status == 200 and answer.headers["x-request-id"] == "mine"
    query = one(exporter, "sharing query")
    assert query.parent is not None and f"{query.parent.span_id:016x}" == PARENT
    assert told(query)["request_id"] == "mine" and told(query)["http_status"] == 200
    for below in (one(exporter, "open"), one(exporter, "scan")):
        assert below.parent is not None and below.parent.span_id == query.context.span_id
    assert told(one(exporter, "scan"))["rows"] == 1


def test_a_statement_of_sql_is_told_too(server: RunningServer, exporter: InMemorySpanExporter) -> None:
    address = f"grpc://127.0.0.1:{server.ports.flight}"
    with adbc.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("select count(*) from readings")
        assert cursor.fetchall() == [(30,)]
    scan = one(exporter, "scan")
    assert told(scan) == {"what": "SQL", "rows": 1}
    above = scan.parent
    assert above is not None
    assert eventually(  # which ends after the scan
        lambda: above.span_id in {span.context.span_id for span in named(exporter, "flight DoGet")}
    )


def test_what_goes_wrong_is_the_status_of_the_span(
    server: RunningServer, exporter: InMemorySpanExporter
) -> None:
    with server.flight() as client:
        with pytest.raises(pa.ArrowKeyError):
            planned(client, called("00-nonsense-01"), table="nowhere")
        refused = one(exporter, "flight GetFlightInfo")
        assert refused.status.status_code is StatusCode.ERROR
        assert refused.status.description == "TableNotFound"
        assert refused.parent is None, "what is no trace of the caller is left aside"
        reader = client.do_get(planned(client, table="many").endpoints[0].ticket)
        reader.read_chunk()
        reader.cancel()
        assert one(exporter, "flight DoGet").status.description == "cancelled"
    assert Sharing(server).get("/shares/nope").status == 404
    assert told(one(exporter, "sharing share"))["status"] == "TableNotFound"


def test_spans_tell_no_filter_and_no_address(
    server: RunningServer, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    with server.flight() as client:
        info = planned(client, table="readings", predicate="device = 'planted'")
        client.do_get(info.endpoints[0].ticket).read_all()
    Sharing(server).query("readings", predicateHints=["device = 'planted'"])
    assert one(exporter, "sharing query")
    text = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "planted" not in text
    assert str(tmp_path) not in text


def test_an_exporter_that_is_not_there_is_told() -> None:
    with pytest.raises(InvalidRequestError, match="spans are to go by 'nowhere'"):
        export_as({"OTEL_TRACES_EXPORTER": "nowhere"})
    export_as({})
    export_as({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
