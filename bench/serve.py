"""Flight beside the same scans in process: `python -m bench.serve`.

Why: a server may cost a copy of the data, not the laziness. Contract: the server, the clients and the reader
in process are processes of their own; each reader warms up once before it is timed, and readers take turns.
Figures are ratios of medians. Every count is checked. The verdict: files of a million-file scan at 0.8 of the
rate in process and rows at 0.7, the first batch within 3 times, memory flat while a client does not read, a
hundred clients with a limit of 100 at 0.8 of what four reach, none failing, and p99 within 2 × 100 / cores
times the median of one alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import flight

import lazydelta as ld
from bench.bars import save_bars
from bench.serving import status_mb
from bench.tables import bench_spec, cache_folder, cached_table

ROW_FILES, ROWS_A_FILE = 20, 500_000
LIMIT = 100
STALLED_SECONDS = 6.0


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        print(json.dumps(_READERS[json.loads(given.reader)["kind"]](**json.loads(given.reader))))
        return
    files, rows = cached_table(bench_spec(given.files)), _row_table()
    urls = {"files": str(files.path), "rows": str(rows)}
    with _server(urls) as (address, process):
        figures = {
            **_beside(address, urls["files"], "files", given.rounds),
            **_beside(address, urls["rows"], "rows", given.rounds),
            **_stalled(address, process),
            **_load(address),
        }
    _judge(figures)


def _beside(address: str, url: str, what: str, rounds: int) -> dict[str, float]:
    """The rate and the first batch, over Flight by in process."""
    local, served = [], []
    for turn in range(rounds):
        readers = [
            (local, {"kind": "local", "url": url, "what": what}),
            (served, {"kind": "flight", "address": address, "table": what, "what": what}),
        ]
        for found, how in readers if turn % 2 else reversed(readers):
            found.append(_reader(**how))
    assert len({run["count"] for run in (*local, *served)}) == 1, (local, served)
    rate = _median(local, "all_s") / _median(served, "all_s")
    first = _median(served, "first_s") / _median(local, "first_s")
    return {
        f"{what}: rate over Flight by in process": rate,
        f"{what}: first batch over Flight by in process": first,
        f"{what}: seconds in process": _median(local, "all_s"),
        f"{what}: first in process, ms": 1000 * _median(local, "first_s"),
        f"{what}: first over Flight, ms": 1000 * _median(served, "first_s"),
    }


def _stalled(address: str, process: int) -> dict[str, float]:
    """How much the server grows while a client does not read."""
    told = json.dumps({"kind": "stalled", "address": address})
    command = [sys.executable, "-m", "bench.serve", "--reader", told]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline()
        time.sleep(STALLED_SECONDS / 3)
        before = status_mb(process, "VmRSS")
        time.sleep(STALLED_SECONDS)
        after = status_mb(process, "VmRSS")
        client.kill()
    return {"growth with a stalled client, MB": after - before}


def _load(address: str) -> dict[str, float]:
    """One, four and a hundred clients at once."""
    alone = _reader(kind="load", address=address, clients=1, each=40)
    four = _reader(kind="load", address=address, clients=4, each=50)
    hundred = _reader(kind="load", address=address, clients=100, each=6)
    p99 = statistics.quantiles(hundred["seconds"], n=100)[98]
    return {
        "failed of 100 clients": float(hundred["failed"]),
        "throughput of 100 clients by 4": hundred["rate"] / four["rate"],
        "p99 of 100 clients by the median of one": p99 / statistics.median(alone["seconds"]),
        "one client alone, ms": 1000 * statistics.median(alone["seconds"]),
        "answers a second, 4 clients": four["rate"],
        "answers a second, 100 clients": hundred["rate"],
    }


def _judge(figures: dict[str, float]) -> None:
    cores = os.cpu_count() or 1
    wanted: dict[str, Callable[[float], bool]] = {
        "files: rate over Flight by in process": lambda value: value >= 0.8,
        "files: first batch over Flight by in process": lambda value: value <= 3,
        "rows: rate over Flight by in process": lambda value: value >= 0.7,
        "growth with a stalled client, MB": lambda value: value < 16,
        "failed of 100 clients": lambda value: value == 0,
        "throughput of 100 clients by 4": lambda value: value >= 0.8,
        "p99 of 100 clients by the median of one": lambda value: value <= 2 * 100 / cores,
    }
    for name, value in figures.items():
        verdict = "" if name not in wanted else "  kept" if wanted[name](value) else "  BROKEN"
        print(f"{name:<45}{value:>12.2f}{verdict}")
    print(save_bars("serve", _by_kind(figures)))
    if not all(is_kept(figures[name]) for name, is_kept in wanted.items()):
        sys.exit(1)


def _by_kind(figures: dict[str, float]) -> dict[str, dict[str, float]]:
    """Ratios, and what has a unit apart from them."""
    ratios = {name: value for name, value in figures.items() if " by " in name}
    return {"ratios": ratios, "figures": {name: figures[name] for name in figures.keys() - ratios.keys()}}


# --- readers, each in a process of its own ------------------------------------------------------------------


def _local(*, url: str, what: str, **_: str) -> dict[str, float]:
    def batches() -> Iterator[pa.RecordBatch]:
        scan = ld.open(url).scan()
        return iter(scan.file_batches() if what == "files" else scan.batches())

    return _timed(batches)


def _flight(*, address: str, table: str, what: str, **_: str) -> dict[str, float]:
    with flight.connect(address) as client:

        def batches() -> Iterator[pa.RecordBatch]:
            for chunk in client.do_get(_ticket(client, table=table, what=what)):
                yield chunk.data

        return _timed(batches)


def _stalled_reader(*, address: str, **_: str) -> dict[str, float]:
    with flight.connect(address) as client:
        reader = client.do_get(_ticket(client, table="rows"))
        print(reader.read_chunk().data.num_rows, flush=True)
        time.sleep(600)
    return {}


def _loaded(*, address: str, clients: int, each: int, **_: str) -> dict[str, Any]:
    seconds: list[float] = []
    failures: list[str] = []
    start = threading.Barrier(clients + 1)

    def run() -> None:
        with flight.connect(address) as client:
            _hundred(client)
            start.wait()
            for _ in range(each):
                began = time.monotonic()
                try:
                    _hundred(client)
                except Exception as error:  # noqa: BLE001 - counted
                    failures.append(repr(error))
                seconds.append(time.monotonic() - began)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.monotonic()
    for thread in threads:
        thread.join()
    rate = clients * each / (time.monotonic() - began)
    return {"seconds": seconds, "failed": len(failures), "rate": rate, "told": failures[:3]}


def _hundred(client: flight.FlightClient) -> None:
    found = client.do_get(_ticket(client, table="files", what="files", limit=LIMIT)).read_all()
    assert found.num_rows == LIMIT


_READERS: dict[str, Callable[..., dict[str, Any]]] = {
    "local": _local,
    "flight": _flight,
    "stalled": _stalled_reader,
    "load": _loaded,
}


def _timed(batches: Callable[[], Iterator[pa.RecordBatch]]) -> dict[str, float]:
    for _ in range(2):  # the first warms up
        began, first, count = time.monotonic(), 0.0, 0
        for batch in batches():
            first = first or time.monotonic() - began
            count += batch.num_rows
        whole = time.monotonic() - began
    return {"first_s": first, "all_s": whole, "count": count}


def _ticket(client: flight.FlightClient, **command: Any) -> flight.Ticket:
    descriptor = flight.FlightDescriptor.for_command(json.dumps(command))
    return client.get_flight_info(descriptor).endpoints[0].ticket


# --- the stage ----------------------------------------------------------------------------------------------


def _reader(**how: Any) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.serve", "--reader", json.dumps(how)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def _server(urls: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Its address and its process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "serve.toml"
        tables = "".join(f"[tables.{name}]\nurl = {json.dumps(url)}\n" for name, url in urls.items())
        path.write_text(f"[server]\nflight_port = 0\ndrain_seconds = 1\n{tables}", "utf-8")
        command = [sys.executable, "-m", "lazydelta", "serve", "--config", str(path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            port = json.loads(process.stdout.readline())["flight"]
            try:
                yield f"grpc://127.0.0.1:{port}", process.pid
            finally:
                process.terminate()


def _row_table() -> Path:
    """Ten million rows of four columns, made once."""
    from deltalake import write_deltalake

    path = cache_folder() / "bench" / f"serve-rows-{ROW_FILES}x{ROWS_A_FILE}"
    made = path / "_delta_log" / f"{ROW_FILES - 1:020}.json"
    for number in range(0 if made.exists() else ROW_FILES):
        dice = np.random.default_rng(number)
        first = number * ROWS_A_FILE
        rows = pa.table(
            {
                "id": np.arange(first, first + ROWS_A_FILE),
                "value": dice.random(ROWS_A_FILE),
                "code": dice.integers(0, 1000, ROWS_A_FILE),
                "device": pa.array([f"device-{code:03}" for code in dice.integers(0, 500, ROWS_A_FILE)]),
            }
        )
        write_deltalake(str(path), rows, mode="append")
    return path


def _median(runs: list[dict[str, Any]], name: str) -> float:
    return statistics.median(run[name] for run in runs)


if __name__ == "__main__":
    main()
