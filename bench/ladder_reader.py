"""One query at one level in a process of its own: `python -m bench.ladder_reader L6 URL …`.

Contract: prints one line of JSON, as the other readers do. The clock runs from before the table is opened;
the imports are before it. From L8 on, and with `--again`, the query is run twice and the second run is
measured; what the first one took is told as `cold_…`. With `--account` the server's own counts of the
measured run are told as well.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import time
import urllib.request
from typing import Any

import pyarrow as pa

import lazydelta as ld

# What lazydelta loads at first use is loaded before the clock, as with every other reader.
import lazydelta.predicate.sql
import lazydelta.storage.remote
from bench.ladder_levels import Level, level_named, open_at
from bench.peers.measure import Measurement

with contextlib.suppress(ImportError):
    import opentelemetry.metrics  # noqa: F401 - lazydelta looks for it when it counts

_UNDER_WAY_SECONDS = 0.2  # several requests' time
_REPORTED = (
    "requests",
    "bytes_read",
    "round_trips",
    "retries",
    "commits_read",
    "parts_read",
    "parts_total",
    "row_groups_read",
    "row_groups_skipped",
    "source",
    "strategy",
    "fallbacks",
)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    level, facts = level_named(options.level), {}
    if level.has_cache or options.again:
        facts = _cold(level, options)
        gc.collect()
    arrow_before = pa.total_allocated_bytes()
    server = _Server(options.account)
    run = Measurement(level.name, options.query)
    run.start()
    scan, count = _ask(level, options, run)
    # What is told below is read before the process ends, but after the clock has stopped.
    elapsed = run.elapsed()
    facts |= {"all_s": elapsed, "arrow_mb": (pa.default_memory_pool().max_memory() - arrow_before) / 1e6}
    facts |= {"server": server.account(), **_reads(scan), **_cache()}
    run.finish(files=count, **facts)


def _ask(level: Level, options: argparse.Namespace, run: Measurement | None) -> tuple[Any, int]:
    """Open, scan and pull; below the level that stops early everything is pulled, whatever the limit."""
    table = open_at(level, options.url, json.loads(options.storage_options))
    limit = options.limit if level.stops_early or options.tail_only else None
    scan = table.scan(where=options.where, limit=limit)
    count = 0
    for batch in scan.file_batches(columns=["path", "size"]):
        count += batch.num_rows
        if run is not None:
            run.saw(count)
    return scan, count if options.limit is None else min(count, options.limit)


def _cold(level: Level, options: argparse.Namespace) -> dict[str, Any]:
    """The first query of the process, which fills the cache."""
    began = time.perf_counter()
    scan, _ = _ask(level, options, None)
    elapsed = time.perf_counter() - began
    told = scan.explain()
    return {"cold_s": elapsed, "cold_requests": told.requests, "cold_bytes_read": told.bytes_read}


def _reads(scan: Any) -> dict[str, Any]:
    report = scan.explain()
    return {name: getattr(report, name) for name in _REPORTED}


def _cache() -> dict[str, Any]:
    """Bytes that the cache holds, where there is one."""
    cache = getattr(ld, "cache", None)
    return {} if cache is None else {"cache_bytes": cache.stats().bytes}


class _Server:
    """The account of the server that serves the table, begun anew; none for a local disk."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._ask("reset")

    def account(self) -> dict[str, Any] | None:
        """Requests, bytes and round trips since; what an early stop left under way has ended by then."""
        if self._url is not None:
            time.sleep(_UNDER_WAY_SECONDS)
        return self._ask("account")

    def _ask(self, word: str) -> dict[str, Any] | None:
        if self._url is None:
            return None
        with urllib.request.urlopen(f"{self._url}/-/{word}") as answer:
            told: dict[str, Any] = json.load(answer)
        return told


def _parser() -> argparse.ArgumentParser:
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.ladder_reader", description=about)
    parser.add_argument("level")
    parser.add_argument("url")
    parser.add_argument("--query", default="hour", help="its name, for the record")
    parser.add_argument("--where")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--tail-only", action="store_true", help="stop at the limit, whatever the level")
    parser.add_argument("--again", action="store_true", help="measure the second query of the process")
    parser.add_argument("--storage-options", default="{}")
    parser.add_argument("--account", help="the server's address")
    return parser


if __name__ == "__main__":
    main()
