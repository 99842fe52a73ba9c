"""L0, delta-rs: the table is loaded once, then every query lists: `python -m bench.ladder_eager URL QUERIES`.

Contract: QUERIES is JSON, a predicate or null by name. Prints one line of JSON with facts by query. The time
of a query is that of loading plus its own, as if it were the only one; memory is the peak so far, so queries
come in the order in which they grow.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import urllib.request
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from bench.peers.measure import status_kb


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    queries: dict[str, str | None] = json.loads(options.queries)
    if options.account:
        _server(options.account, "reset")
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    base_kb, cpu, began = status_kb("VmRSS"), time.process_time(), time.perf_counter()
    table = DeltaTable(options.url, storage_options=json.loads(options.storage_options) or None)
    load_s = time.perf_counter() - began
    facts: dict[str, dict[str, Any]] = {}
    for name, where in queries.items():
        asked = time.perf_counter()
        count = len(table.file_uris(file_pruning_predicate=where))
        all_s = load_s + time.perf_counter() - asked
        facts[name] = {
            "files": count,
            "first_s": all_s,
            "all_s": all_s,
            "peak_mb": (status_kb("VmHWM") - base_kb) / 1024,
            "cpu_s": time.process_time() - cpu,
            "server": _server(options.account, "account") if options.account else None,
        }
    print(json.dumps({"load_s": load_s, "queries": facts}), flush=True)


def _server(url: str, word: str) -> Any:  # Any: JSON
    with urllib.request.urlopen(f"{url}/-/{word}") as answer:
        return json.load(answer)


def _parser() -> argparse.ArgumentParser:
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.ladder_eager", description=about)
    parser.add_argument("url")
    parser.add_argument("queries")
    parser.add_argument("--storage-options", default="{}")
    parser.add_argument("--account", help="the server's address")
    return parser


if __name__ == "__main__":
    main()
