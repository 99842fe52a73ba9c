"""Flight in a test's own process: what a real client gets is what the scan gives in process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import flight

import lazydelta as ld
from lazydelta import limits
from lazydelta.serve.batches import in_messages, message_bytes
from tests.support.row_tables import reading, readings_table
from tests.support.serving import RunningServer, planned, running_server


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(readings_table(tmp_path_factory.mktemp("served") / "t"))


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    broken = tmp_path_factory.mktemp("nothing")
    tables = {"readings": url, "gone": str(broken / "never")}
    with running_server(tmp_path_factory.mktemp("config"), tables) as running:
        yield running


def read(client: flight.FlightClient, info: flight.FlightInfo) -> pa.Table:
    return pa.concat_tables(client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints)


def acted(client: flight.FlightClient, name: str, **body: Any) -> list[bytes]:
    answers = client.do_action(flight.Action(name, json.dumps(body).encode()))
    return [answer.body.to_pybytes() for answer in answers]


@pytest.mark.parametrize("endpoints", [1, 3])
def test_rows_over_flight_are_the_rows(server: RunningServer, url: str, endpoints: int) -> None:
    with server.flight() as client:
        found = read(client, planned(client, table="readings", endpoints=endpoints))
    whole = ld.open(url).to_arrow()
    assert found.schema == whole.schema
    assert found.sort_by("id") == whole.sort_by("id")


@pytest.mark.parametrize("endpoints", [1, 4])
def test_files_over_flight_are_the_files(server: RunningServer, url: str, endpoints: int) -> None:
    with server.flight() as client:
        found = read(client, planned(client, table="readings", what="files", endpoints=endpoints))
    assert sorted(found["path"].to_pylist()) == sorted(file.path for file in ld.open(url).scan().files())


def test_endpoints_share_no_file_and_leave_none_out(server: RunningServer, url: str) -> None:
    with server.flight() as client:
        info = planned(client, table="readings", what="files", endpoints=5)
        parts = [client.do_get(one.ticket).read_all()["path"].to_pylist() for one in info.endpoints]
    assert len(parts) == 5
    assert sorted(path for part in parts for path in part) == sorted(
        file.path for file in ld.open(url).scan().files()
    )


@pytest.mark.parametrize(
    ("command", "scan"),
    [
        ({"predicate": "id < 40 and value > 3"}, {"predicate": "id < 40 and value > 3"}),
        ({"predicate": {"id": {"gt": 200}}}, {"predicate": "id > 200"}),
        ({"limit": 7}, {"limit": 7}),
        ({"order": "desc", "limit": 33}, {"order": "desc", "limit": 33}),
        ({"version": 3}, {}),
    ],
)
def test_a_command_means_what_the_scan_means(
    server: RunningServer, url: str, command: dict[str, Any], scan: dict[str, Any]
) -> None:
    with server.flight() as client:
        found = read(client, planned(client, table="readings", **command))
    predicate = scan.pop("predicate", None)
    expected = ld.open(url, version=command.get("version")).scan(predicate, **scan).batches().read_all()
    assert found == expected


def test_columns_are_chosen_and_ordered(server: RunningServer, url: str) -> None:
    with server.flight() as client:
        info = planned(client, table="readings", columns=["value", "id"])
        found = read(client, info)
    assert info.schema.names == found.schema.names == ["value", "id"]
    assert found == ld.open(url).scan().batches(["value", "id"]).read_all()


def test_a_table_is_named_by_a_path_too(server: RunningServer, url: str) -> None:
    with server.flight() as client:
        descriptor = flight.FlightDescriptor.for_path("readings")
        assert client.get_schema(descriptor).schema == ld.open(url).to_arrow().schema
        assert read(client, client.get_flight_info(descriptor)).num_rows == 240


def test_the_schema_is_told_without_reading(server: RunningServer) -> None:
    descriptor = flight.FlightDescriptor.for_command(
        json.dumps({"table": "readings", "what": "files", "columns": ["size", "path"]})
    )
    with server.flight() as client:
        schema = client.get_schema(descriptor).schema
    assert schema == pa.schema([("size", pa.int64()), ("path", pa.string())])


def test_tables_are_listed_even_where_one_cannot_be_opened(server: RunningServer) -> None:
    with server.flight() as client:
        flights = list(client.list_flights())
        commands = [json.loads(info.descriptor.command)["table"] for info in flights]
        some = [json.loads(info.descriptor.command)["table"] for info in client.list_flights(b"read")]
    assert commands == ["gone", "readings"]
    assert [len(info.endpoints) for info in flights] == [0, 1]
    assert some == ["readings"]


def test_the_version_is_pinned_when_it_is_planned(tmp_path: Path) -> None:
    url = str(readings_table(tmp_path / "t", hours=2))
    with running_server(tmp_path, {"readings": url}) as server, server.flight() as client:
        info = planned(client, table="readings")
        write_deltalake(url, pa.Table.from_pylist([reading(90)]), mode="append")
        assert json.loads(info.descriptor.command)["version"] == 1
        assert read(client, info).num_rows == 60
        assert read(client, planned(client, table="readings")).num_rows == 61


def test_actions_answer_as_the_table_does(server: RunningServer, url: str) -> None:
    table = ld.open(url)
    with server.flight() as client:
        (refreshed,) = acted(client, "refresh", table="readings")
        assert json.loads(refreshed) == {"version": table.version, "id": table.metadata.id}

        paths = [file.path for file in table.scan(limit=3).files()]
        told, rows = acted(client, "stats_for_files", table="readings", paths=paths, columns=["id"])
        assert json.loads(told) == {"version": table.version}
        found = pa.ipc.open_stream(rows).read_all()
        assert found == pa.Table.from_batches([table.get_stats_for_files(paths, ["id"])])

        (explained,) = acted(client, "explain", table="readings", predicate="id < 31", what="rows")
        report = json.loads(explained)
        assert report["rows"]["rows_emitted"] == 31
        assert report["table"] == "readings"
        assert url not in explained.decode()


def test_pages_go_through_all_rows(server: RunningServer, url: str) -> None:
    with server.flight() as client:
        pages, after = [], None
        while True:
            command = {"table": "readings", "order": "asc", "columns": ["id"]}
            told, rows = acted(client, "page", command=command, count=100, after=after)
            pages.append(pa.ipc.open_stream(rows).read_all())
            after = json.loads(told)["next_token"]
            if after is None:
                break
    assert [page.num_rows for page in pages] == [100, 100, 40]
    assert pa.concat_tables(pages) == ld.open(url).scan(order="asc").batches(["id"]).read_all()


def test_pages_of_files(server: RunningServer, url: str) -> None:
    with server.flight() as client:
        command = {"table": "readings", "what": "files"}
        (first,) = acted(client, "page", command=command, count=5)
        token = json.loads(first)["next_token"]
        (second,) = acted(client, "page", command=command, count=5, after=token)
    paths = [file["path"] for answer in (first, second) for file in json.loads(answer)["files"]]
    assert sorted(paths) == sorted(file.path for file in ld.open(url).scan().files())


def test_batches_fit_the_messages_of_every_client(tmp_path: Path) -> None:
    """Text that repeats is small in its file, and large on the wire; a row that is larger goes by itself."""
    most = limits.SERVE_LARGE_MESSAGE_BYTES
    texts = ["x" * 2000] * 20_000 + ["y" * (most + 1)]
    rows = pa.table({"id": range(len(texts)), "s": texts, "l": [[text[:10]] for text in texts]})
    write_deltalake(tmp_path / "wide", rows)
    with running_server(tmp_path, {"wide": str(tmp_path / "wide")}) as server, server.flight() as client:
        stream = client.do_get(planned(client, table="wide").endpoints[0].ticket)
        batches = [chunk.data for chunk in stream]
    assert pa.Table.from_batches(batches).sort_by("id") == rows
    sizes = {batch.num_rows == 1: batch.nbytes for batch in sorted(batches, key=lambda one: one.nbytes)}
    assert most / 4 < sizes[False] <= most < sizes[True]


@pytest.mark.parametrize("agent", ["", "grpc-go/1.76.0", "grpc-dotnet/2.7", "tonic/0.14"])
def test_clients_that_may_refuse_large_messages_get_none(agent: str) -> None:
    batch = pa.record_batch({"s": ["x" * 1000] * 20_000})
    assert message_bytes("grpc-c++/1.81.1 grpc-c/54.0.0 (linux; chttp2)") == limits.SERVE_LARGE_MESSAGE_BYTES
    parts = list(in_messages(batch, message_bytes(agent)))
    assert pa.Table.from_batches(parts) == pa.Table.from_batches([batch])
    sizes = []
    for part in parts:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as out:
            out.write_batch(part)
        sizes.append(len(sink.getvalue()))
    assert max(sizes) < 4 << 20, "what gRPC takes where a client says nothing"


@pytest.mark.parametrize(("limit", "rows_max"), [(None, 60_000), (50_000, limits.BATCH_ROWS)])
def test_batches_are_large_where_all_is_read(tmp_path: Path, limit: int | None, rows_max: int) -> None:
    rows = pa.table({"id": range(60_000)})
    write_deltalake(tmp_path / "t", rows)
    with running_server(tmp_path, {"t": str(tmp_path / "t")}) as server, server.flight() as client:
        stream = client.do_get(planned(client, table="t", limit=limit).endpoints[0].ticket)
        batches = [chunk.data for chunk in stream]
    assert pa.Table.from_batches(batches) == rows.slice(0, limit)
    assert max(batch.num_rows for batch in batches) == rows_max


@pytest.mark.parametrize("count", [3, 9000])
def test_filters_of_many_values_are_taken(server: RunningServer, count: int) -> None:
    values = ", ".join(map(str, range(count)))
    with server.flight() as client:
        by_sql = planned(client, table="readings", predicate=f"id in ({values})")
        by_json = planned(client, table="readings", predicate={"id": {"in": list(range(count))}})
        expected = min(count, 240)
        assert [read(client, info).num_rows for info in (by_sql, by_json)] == [expected, expected]
