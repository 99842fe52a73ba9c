"""What a day costs at the store: `python -m bench.scale.bill --get 0.4 --put 5 --list 5`.

Why: stores bill requests, and each has its own prices and limits, so they are parameters and not facts.
Contract: pure arithmetic over the figures that `make scale` saved.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.pages import RESULTS, table_head, table_line
from bench.scale.next_checkpoint import CheckpointCost
from bench.scale.report import Figures

_PUTS = 2  # of a checkpoint's sidecar: the new part and the manifest
_LISTS = 3


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """Of a million requests of each kind; and how many gets a second one prefix answers."""

    get: float
    put: float
    list: float
    gets_a_second: float


class Saved(msgspec.Struct, frozen=True):
    """What `make scale` saved, as far as it is needed here."""

    figures: list[Figures]
    costs: list[CheckpointCost]


def query_price(query: Figures, prices: Prices) -> float:
    """Of one query: all of its requests but the listing are gets."""
    return ((query.requests - 1) * prices.get + prices.list) / 1e6


def checkpoint_price(cost: CheckpointCost, prices: Prices) -> float:
    """Of the sidecar of one checkpoint."""
    gets = cost.requests - _PUTS - _LISTS
    return (gets * prices.get + _LISTS * prices.list + _PUTS * prices.put) / 1e6


def queries_a_second(query: Figures, prices: Prices) -> float:
    """How many of these at once the store takes before it throttles."""
    return prices.gets_a_second / max(query.requests, 1)


def bill_page(saved: Saved, prices: Prices, *, queries: int, checkpoints: int) -> str:
    """A line for each query, and one for checkpoints, at every size."""
    columns = ("files", "what", f"a day of {queries:,} queries", "queries a second before it throttles")
    lines = table_head(columns)
    for one in saved.figures:
        money, most = queries * query_price(one, prices), queries_a_second(one, prices)
        lines.append(table_line([f"{one.files:,}", one.query, f"{money:,.2f}", f"{most:,.0f}"]))
    for cost in saved.costs:
        money = checkpoints * checkpoint_price(cost, prices)
        told = f"{checkpoints:,} checkpoints instead of queries"
        lines.append(table_line([f"{cost.files:,}", told, f"{money:,.2f}", ""]))
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    about = (__doc__ or "").split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.scale.bill", description=about)
    for name in ("get", "put", "list"):
        parser.add_argument(f"--{name}", type=float, required=True, help="price of a million of them")
    parser.add_argument("--gets-a-second", type=float, default=float("inf"), help="that one prefix answers")
    parser.add_argument("--queries", type=int, default=100_000, help="a day")
    parser.add_argument("--checkpoints", type=int, default=1_440, help="a day")
    parser.add_argument("--results", type=Path, default=RESULTS / "scale.json")
    given = parser.parse_args(arguments)
    if not given.results.exists():
        sys.exit(f"{given.results} is not there: run `make scale` first")
    saved = msgspec.json.decode(given.results.read_bytes(), type=Saved)
    prices = Prices(get=given.get, put=given.put, list=given.list, gets_a_second=given.gets_a_second)
    print(bill_page(saved, prices, queries=given.queries, checkpoints=given.checkpoints))


if __name__ == "__main__":
    main()
