"""Kusto's protocol beside duckdb-kql's own server and beside scans in process: `python -m bench.serve_kusto`.

Why: rows as JSON may cost a server its speed, and KQL its first row. Contract: servers and readers are
processes of their own; each warms up before it is timed, and they take turns; figures are medians. Every row
is counted. duckdb-kql serves the same rows from a table in its memory. A full run writes
`docs/kusto-figures.md`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lazydelta as ld
from bench.kusto_tables import ROWS, SeedsTable, row_table, seeds_table
from bench.pages import DOCS, verdicts
from bench.serve_kusto_page import Figures, judge, page, picture, table_text
from bench.serving import forget_peak, http_server, running, status_mb
from bench.tables import cache_folder

_QUICK_SECONDS, _QUICK_TIMES = 1.0, 7  # what is quick is asked more often
_MARK, _PEERS_MARK = b"],[", b"], ["
_WHOLE = {"notruncation": True}
NAME = "kusto-figures"


def main() -> int:
    """Measure, print, draw, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--full", action="store_true", help="ten million files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--picture", type=Path, default=cache_folder() / "bench" / "kusto.png")
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    parser.add_argument("--peer", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        print(json.dumps(_local(**json.loads(given.reader))))
        return 0
    if given.peer:
        _serve_peer(given.peer)
        return 0
    files = 10_000_000 if given.full else given.files
    rows, parquet = row_table()
    seeds = seeds_table(files)
    tables = {"rows": rows, "more": row_table(3)[0], "TelemetryDelta": seeds.path}
    with http_server(tables) as (ours, port), _peer(parquet) as (peer, other):
        figures = _million(ours, port, peer, other, given.rounds) | _first_frames(port, seeds, given.rounds)
    figures["files"] = files
    checks = judge(figures)
    print(f"{table_text(figures)}\n\n{verdicts(checks)}\npicture: {picture(given.picture, figures)}")
    if given.full:
        drawn = picture(DOCS / f"{NAME}.png", figures)
        (DOCS / f"{NAME}.md").write_text(page(figures, checks, drawn.name))
    return int(not all(check.passed for check in checks))


def _million(ours: int, port: int, peer: int, other: int, rounds: int) -> Figures:
    """A million rows from both servers, in turns, and the memory of ours by the number of rows."""
    runs: dict[str, list[float]] = {"ours": [], "ours, packed": [], "duckdb-kql": []}
    ways: dict[str, Callable[[], tuple[float, int]]] = {
        "ours": lambda: _asked(port, "rows", _WHOLE),
        "ours, packed": lambda: _asked(port, "rows", _WHOLE, is_packed=True),
        "duckdb-kql": lambda: _asked(other, "rows", {}, mark=_PEERS_MARK),
    }
    for ask in ways.values():
        ask()
    forget_peak(peer)
    before = status_mb(peer, "VmRSS")
    for turn in range(rounds):
        for name in list(ways) if turn % 2 else reversed(list(ways)):
            seconds, count = ways[name]()
            # The completion of ours has two lines, which the mark stands between, too.
            assert count == ROWS - 1 + name.startswith("ours"), (name, count)
            runs[name].append(seconds)
    found = {f"{name}: s": statistics.median(seconds) for name, seconds in runs.items()}
    found["duckdb-kql: growth, MB"] = status_mb(peer, "VmHWM") - before
    growth = {}
    for table in ("rows", "more", "rows", "more"):  # the first pair warms up
        forget_peak(ours)
        held = status_mb(ours, "VmRSS")
        _asked(port, table, _WHOLE)
        growth[table] = status_mb(ours, "VmHWM") - held
    found["ours: growth at a million, MB"] = growth["rows"]
    found["ours: growth at three million, MB"] = growth["more"]
    found["speed by duckdb-kql"] = found["duckdb-kql: s"] / found["ours: s"]
    found["speed by duckdb-kql, packed"] = found["duckdb-kql: s"] / found["ours, packed: s"]
    return found


def _first_frames(port: int, seeds: SeedsTable, rounds: int) -> Figures:
    """The seeds' three queries: the first bytes of the answer, beside the scan that gives the same rows."""
    found: Figures = {}
    for number, (text, scan) in enumerate(_pairs(seeds), start=1):
        _first(port, text)
        served, local = [], []
        many = rounds if _first(port, text) > _QUICK_SECONDS else rounds * _QUICK_TIMES
        for turn in range(many):
            for is_served in (True, False) if turn % 2 else (False, True):
                if is_served:
                    served.append(_first(port, text))
                else:
                    local.append(_reader(url=str(seeds.path), **scan))
        found[f"query {number}: first frame, ms"] = 1000 * statistics.median(served)
        found[f"query {number}: scan in process, ms"] = 1000 * statistics.median(local)
        found[f"query {number}: first frame by scan"] = statistics.median(served) / statistics.median(local)
    return found


def _pairs(seeds: SeedsTable) -> list[tuple[str, dict[str, Any]]]:
    """Each query, and the scan that gives its rows; the time column of this table is `event_time`."""
    since, until, device = seeds.since, seeds.until, seeds.device
    table = "external_table('TelemetryDelta')"
    return [
        (
            f"{table}\n| where _event_hour >= '{since}'\n| where device_id == '{device}'\n| take 100",
            {"where": f"_event_hour >= '{since}' and device_id = '{device}'", "limit": 100},
        ),
        (f"{table}\n| take 100", {"where": None, "limit": 100}),
        (
            f"{table}\n| where _event_hour between ('{since}' .. '{until}')\n"
            "| summarize avg(value) by bin(event_time, 1h), device_id",
            {
                "where": f"_event_hour >= '{since}' and _event_hour <= '{until}'",
                "columns": ["value", "event_time", "device_id"],
            },
        ),
    ]


# --- readers ------------------------------------------------------------------------------------------------


def _local(
    *, url: str, where: str | None, limit: int | None = None, columns: list[str] | None = None
) -> float:
    """Seconds until all rows of a scan are there, opening included; the first run warms up."""
    for _ in range(2):
        began = time.perf_counter()
        rows = sum(batch.num_rows for batch in ld.open(url).scan(where, limit=limit).batches(columns))
        seconds = time.perf_counter() - began
    assert rows
    return seconds


def _asked(
    port: int, text: str, options: dict[str, Any], *, is_packed: bool = False, mark: bytes = _MARK
) -> tuple[float, int]:
    """Seconds for the whole answer, and how often `mark`, which stands between rows, is in it."""
    began, count, last = time.perf_counter(), 0, b""
    with _answer(port, text, options, is_packed=is_packed) as answer:
        unpack = zlib.decompressobj(31) if is_packed else None
        while piece := answer.read(1 << 20):
            held = last + (piece if unpack is None else unpack.decompress(piece))
            count += held.count(mark)
            last = held[1 - len(mark) :]  # a mark may be cut in two
    return time.perf_counter() - began, count


def _first(port: int, text: str) -> float:
    """Seconds until the first bytes of the answer, which come with its first rows."""
    began = time.perf_counter()
    with _answer(port, text, _WHOLE) as answer:
        assert answer.read(1)
        seconds = time.perf_counter() - began
        assert b'"HasErrors":false' in answer.read()
    return seconds


@contextmanager
def _answer(
    port: int, text: str, options: dict[str, Any], *, is_packed: bool = False
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = json.dumps({"db": "default", "csl": text, "properties": {"Options": options, "Parameters": {}}})
    headers = {"content-type": "application/json", "accept-encoding": "gzip" if is_packed else "identity"}
    connection.request("POST", "/v2/rest/query", body, headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    try:
        yield answer
    finally:
        connection.close()


def _reader(**how: Any) -> float:
    command = [sys.executable, "-m", "bench.serve_kusto", "--reader", json.dumps(how)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


# --- the stage ----------------------------------------------------------------------------------------------


@contextmanager
def _peer(files: list[Path]) -> Iterator[tuple[int, int]]:
    """duckdb-kql's server, with the rows in its memory."""
    command = [sys.executable, "-m", "bench.serve_kusto", "--peer", *map(str, files)]
    with running(command) as (process, line):
        yield process, int(line)


def _serve_peer(files: list[str]) -> None:
    from duckdb_kql.server import build_server

    server = build_server(port=0, quiet=True)
    named = ", ".join(f"'{file}'" for file in files)
    server._con.execute("set TimeZone = 'UTC'")
    server._con.execute(f"create table rows as select * from read_parquet([{named}])")
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
