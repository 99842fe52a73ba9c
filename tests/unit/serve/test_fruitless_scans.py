"""Scans that find nothing to send for long: whoever ends them ends their reads, too."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyarrow import flight

from lazydelta import limits
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.flight_sql import messages_pb2 as messages
from lazydelta.serve.flight_sql.envelope import enclosed
from lazydelta.serve.sharing import PREFIX
from lazydelta.storage import LocalStorage
from tests.support import actions
from tests.support.row_tables import eventually
from tests.support.serving import RunningServer, planned, running_server
from tests.support.sharing import table_path
from tests.support.table_builder import TableBuilder

FILES = 400
PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}
STATS = json.dumps({"numRecords": 1, "minValues": {"value": 1.0}, "maxValues": {"value": 2.0}})
READS = FILES // limits.CHECKPOINT_ROW_GROUPS_PER_BATCH  # of a scan that goes to its end, at least
AMONG_ROWS = 8  # the read of the checkpoint by which a scan is past the footer
_STOPPING_SECONDS = 5.0
NOWHERE = "value < 0.5"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A checkpoint of many row groups, of which no filter is told before they are read."""
    table = TableBuilder(
        tmp_path_factory.mktemp("fruitless") / "t",
        schema={"value": "double"},
        partition_columns=(),
        protocol=PLAIN,
    )
    table.commit(adds=[actions.add(f"f{number}", stats=STATS) for number in range(FILES)])
    table.checkpoint(row_group_rows=1)
    with running_server(tmp_path_factory.mktemp("config"), {}, uncached(table.path)) as running:
        yield running


def uncached(url: str | Path, more: str = "") -> str:
    """Settings of a server that reads the table again for each scan."""
    return f'{more}[tables.t]\nurl = "{url}"\nstorage_options = {{ "delta.cache.bytes" = "0" }}\n'


def running(server: RunningServer) -> list[Admitted]:
    return server.process.served.admission.running()


@pytest.fixture
def in_the_middle(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], list[str]]:
    """Have something done while a scan reads the checkpoint; the reads of the checkpoint from now on."""
    seen: list[str] = []
    real = LocalStorage.get_ranges

    def arrange(act: Callable[[], Any]) -> list[str]:
        numbers = itertools.count(1)

        def read(storage: LocalStorage, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            if "checkpoint" in name:
                seen.append(name)
                if next(numbers) == AMONG_ROWS:
                    act()
            return real(storage, name, ranges)

        monkeypatch.setattr(LocalStorage, "get_ranges", read)
        return seen

    return arrange


def test_a_scan_that_goes_to_its_end_reads_every_row_group(
    server: RunningServer, in_the_middle: Callable[[Callable[[], Any]], list[str]]
) -> None:
    with server.flight() as client:
        info = planned(client, table="t", what="files", predicate=NOWHERE)
        reads = in_the_middle(lambda: None)
        assert client.do_get(info.endpoints[0].ticket).read_all().num_rows == 0
    assert len(reads) >= READS


@pytest.mark.parametrize("what", ["files", "rows"])
def test_a_scan_that_is_cancelled_before_its_first_batch_stops_its_reads(
    server: RunningServer, in_the_middle: Callable[[Callable[[], Any]], list[str]], what: str
) -> None:
    with server.flight() as client:
        info = planned(client, table="t", what=what, predicate=NOWHERE)
        reads = in_the_middle(
            lambda: [scan.stop("for the test", is_cancelled=True) for scan in running(server)]
        )
        with pytest.raises(flight.FlightServerError, match="for the test"):
            client.do_get(info.endpoints[0].ticket).read_all()
        assert eventually(lambda: not running(server))
    assert AMONG_ROWS <= len(reads) < READS / 2


def test_a_statement_that_is_cancelled_before_its_first_row_stops_its_reads(
    server: RunningServer, in_the_middle: Callable[[Callable[[], Any]], list[str]]
) -> None:
    query = messages.CommandStatementQuery(query=f"select count(*) from t where {NOWHERE}")

    def cancel() -> None:
        (scan,) = running(server)
        stopping = threading.Thread(target=scan.stop, args=["for the test"], kwargs={"is_cancelled": True})
        stopping.start()
        stopping.join(_STOPPING_SECONDS)  # DuckDB may not listen while its table is read

    with server.flight() as client:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(enclosed(query)))
        reads = in_the_middle(cancel)
        with pytest.raises(flight.FlightServerError, match="for the test"):
            client.do_get(info.endpoints[0].ticket).read_all()
        assert eventually(lambda: not running(server))
    assert AMONG_ROWS <= len(reads) < READS / 2


@pytest.mark.parametrize("more", [{}, {"maxFiles": 5}])
def test_a_client_of_sharing_that_goes_away_before_the_first_line_stops_its_reads(
    server: RunningServer, in_the_middle: Callable[[Callable[[], Any]], list[str]], more: dict[str, Any]
) -> None:
    body = json.dumps({"predicateHints": [NOWHERE], **more}).encode()
    head = f"POST {PREFIX}{table_path('t')}/query HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(("127.0.0.1", server.ports.http or 0)) as client:

        def leave() -> None:
            (scan,) = running(server)
            client.close()
            assert eventually(lambda: scan.is_stopped)

        reads = in_the_middle(leave)
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert eventually(lambda: len(reads) >= AMONG_ROWS and not running(server))
    assert AMONG_ROWS <= len(reads) < READS / 2


def test_a_page_keeps_to_the_time_of_a_scan(
    server: RunningServer, tmp_path: Path, in_the_middle: Callable[[Callable[[], Any]], list[str]]
) -> None:
    url = server.process.served.config.tables["t"].url
    with running_server(tmp_path, {}, uncached(url, "[limits]\nscan_seconds = 3\n")) as limited:
        in_the_middle(lambda: eventually(lambda: all(scan.is_stopped for scan in running(limited))))
        body = {"command": {"table": "t", "what": "files", "predicate": NOWHERE}, "count": 5}
        with (
            limited.flight() as client,
            pytest.raises(flight.FlightUnavailableError, match=r"limits\.scan_seconds"),
        ):
            list(client.do_action(flight.Action("page", json.dumps(body).encode())))
