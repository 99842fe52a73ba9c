"""What the pages of benchmarks are made of: lines of tables, promises with their verdicts, where results go.

Why: every benchmark tells what it found, and keeps it, in the same words and places.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.promises import Check

RESULTS = Path(__file__).resolve().parent / "results"
DOCS = Path(__file__).resolve().parents[1] / "docs"


def table_line(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def table_head(columns: Sequence[str]) -> list[str]:
    """The lines above the rows of a Markdown table."""
    return [table_line(columns), table_line(["---"] * len(columns))]


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [*table_head(columns), *map(table_line, rows)]


def verdicts(checks: Sequence[Check]) -> str:
    """A promise, its verdict and the figure it was judged by, for a terminal."""
    return "\n".join(f"{'PASS' if c.passed else 'FAIL'}  {c.promise}\n      {c.measured}" for c in checks)


def promises_kept(checks: Sequence[Check]) -> list[str]:
    """The same as a chapter of a page of the documentation."""
    told = (f"- {'holds' if c.passed else 'FAILS'}: {c.promise}: {c.measured}" for c in checks)
    return ["## Promises", "", *told]


def say(text: str) -> None:
    """Tell whoever waits how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
