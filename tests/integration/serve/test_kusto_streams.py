"""Answers of Kusto's that do not go to their end: whatever ends them, the reads end; memory stays flat."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support.kusto import QUERY, frames, post, primary, rows
from tests.support.proxy import HttpProxy
from tests.support.row_tables import eventually
from tests.support.serve_process import serving
from tests.support.servers import TableServer
from tests.support.serving import RunningServer
from tests.support.slow_lake import (
    FILES,
    ROWS_A_FILE,
    becomes_quiet,
    files_read,
    served_from_afar,
)

ALL = {"db": "main", "csl": "set notruncation;\nmany"}


@contextmanager
def begun(server: RunningServer, headers: dict[str, str] | None = None) -> Iterator[Any]:
    """An answer of which the first rows were read."""
    plain = {"accept-encoding": "identity", **(headers or {})}
    with httpx.stream("POST", server.http_url + QUERY, json=ALL, headers=plain, timeout=60) as answer:
        chunks, seen = answer.iter_bytes(), 0
        while seen < 20_000:
            seen += len(next(chunks))
        yield chunks


def running(server: RunningServer) -> int:
    return len(server.process.served.admission.running())


def test_a_client_that_goes_stops_the_reads(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, proxy = served_afar
    proxy.reset()
    with begun(server):
        assert running(server) == 1
    assert becomes_quiet(proxy)
    assert 0 < files_read(proxy) < FILES
    assert eventually(lambda: running(server) == 0)


def test_a_query_that_is_cancelled_tells_it_in_the_body(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, proxy = served_afar
    proxy.reset()
    with begun(server, {"x-ms-client-request-id": "to-be-cancelled"}) as chunks:
        assert rows(server, ".cancel query 'to-be-cancelled' with (reason='enough')")[0][0] is True
        rest = b"".join(chunks)
    assert becomes_quiet(proxy)
    assert files_read(proxy) < FILES
    last = json.loads(b"[" + rest.rpartition(b"\n,")[2].strip())[0]
    assert last["FrameType"] == "DataSetCompletion" and last["HasErrors"] and last["Cancelled"]
    assert "enough" in last["OneApiErrors"][0]["error"]["@message"]
    assert eventually(lambda: running(server) == 0)


def test_take_reads_a_few_files(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, proxy = served_afar
    proxy.reset()
    assert len(rows(server, "many | take 10")) == 10
    assert files_read(proxy) <= 6


def test_rows_beyond_the_limit_are_not_read(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, proxy = served_afar
    proxy.reset()
    found = primary(post(server, "many", options={"truncationmaxrecords": 1000}))["Rows"]
    assert len(found) == 1001 and "OneApiErrors" in found[-1]
    assert becomes_quiet(proxy) and files_read(proxy) < FILES / 2


def test_a_stalled_client_costs_no_more_memory_and_holds_the_reads(
    served_afar: tuple[RunningServer, HttpProxy],
) -> None:
    server, proxy = served_afar
    proxy.reset()
    me = psutil.Process()
    with begun(server):
        assert becomes_quiet(proxy, for_seconds=1.0)
        before, asked = me.memory_info().rss, len(proxy.requests)
        time.sleep(1.0)
        assert me.memory_info().rss - before < 32 * 1024 * 1024  # of the table's 58
        assert len(proxy.requests) == asked and files_read(proxy) < FILES
    assert eventually(lambda: running(server) == 0)


def test_a_server_that_goes_down_tells_it_in_the_body(
    s3_server: TableServer, many_stored: str, tmp_path: Path
) -> None:
    with (
        served_from_afar(s3_server, many_stored, tmp_path, latency_ms=200.0) as (server, _),
        begun(server) as chunks,
    ):
        assert not server.process.served.admission.drain(0.1)
        rest = b"".join(chunks)
    last = json.loads(b"[" + rest.rpartition(b"\n,")[2].strip())[0]
    assert last["HasErrors"] and "goes down" in last["OneApiErrors"][0]["error"]["@message"]


def test_the_servers_memory_does_not_grow_with_the_answer(many_files: str, tmp_path: Path) -> None:
    with serving(tmp_path, {"many": many_files}) as process:
        url = f"http://127.0.0.1:{process.ports['http']}"
        server = psutil.Process(process._process.pid)

        def peak(text: str) -> tuple[int, float]:
            most, count = 0.0, 0
            body = {"db": "main", "csl": f"set notruncation;\n{text}"}
            headers = {"accept-encoding": "identity"}
            with httpx.stream("POST", url + QUERY, json=body, headers=headers, timeout=120) as answer:
                for chunk in answer.iter_bytes():
                    count += chunk.count(b"],[")
                    most = max(most, server.memory_info().rss / 2**20)
            return count, most

        for _ in range(2):
            peak("many | take 300000")
        small = peak("many | take 300000")
        large = peak("many")
        assert large[0] > ROWS_A_FILE * FILES * 0.95 and small[0] > 290_000
        assert large[1] - small[1] < 48, (small, large)


def test_frames_of_a_long_answer_are_whole(served_afar: tuple[RunningServer, HttpProxy]) -> None:
    server, _ = served_afar
    answer = post(server, "many | take 200000 | project id")
    assert len(primary(answer)["Rows"]) == 200_000
    assert len({row[0] for row in primary(answer)["Rows"]}) == 200_000
    assert frames(answer)[-1]["HasErrors"] is False
