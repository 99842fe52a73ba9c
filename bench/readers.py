"""The readers of the comparison: what each is asked, and one run of it in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Literal

import msgspec

from bench.environments import PEERS, java_command, python_of
from bench.watched import Outcome, memory_fence_kb, run_watched

Kind = Literal["ours", "peer", "kernel", "floor"]


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """One reader. `queries` are those it is run with; an eager reader's `hundred` is its `all`."""

    name: str
    kind: Kind
    queries: tuple[str, ...]
    script: str = ""
    environment: str | None = None
    is_eager: bool = False


OURS = Reader(
    name="lazydelta",
    kind="ours",
    script="lazydelta_reader.py",
    queries=("hundred", "thousand", "all", "predicate", "today"),
)
FLOOR = Reader(name="bare stream", kind="floor", script="bare_pyarrow.py", queries=("hundred", "all"))
READERS = (
    OURS,
    FLOOR,
    Reader(
        name="kernel-rust",
        kind="kernel",
        script="kernel_rust.py",
        environment="kernel-rust",
        queries=("hundred", "all", "predicate"),
    ),
    Reader(name="kernel-java", kind="kernel", queries=("hundred", "all", "predicate")),
    Reader(name="delta-rs", kind="peer", script="delta_rs.py", queries=("all", "predicate"), is_eager=True),
    Reader(
        name="duckdb",
        kind="peer",
        script="duckdb_delta.py",
        environment="duckdb",
        queries=("hundred", "all", "predicate"),
    ),
    Reader(name="polars", kind="peer", script="polars_delta.py", queries=("all", "predicate"), is_eager=True),
    Reader(
        name="daft",
        kind="peer",
        script="daft_delta.py",
        environment="daft",
        queries=("hundred", "all", "predicate"),
    ),
)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run: `facts` as the reader printed them, or `failure` in words."""

    reader: str
    kind: Kind
    query: str
    table: str
    files: int
    round: int
    facts: dict[str, Any] = {}
    failure: str | None = None


def command(reader: Reader, table: Path, query: str) -> list[str]:
    """The command line of one run; makes the reader's environment if need be."""
    if not reader.script:
        return [*java_command(), str(table), query]
    return [str(python_of(reader.environment)), str(PEERS / reader.script), str(table), query]


def run_once(
    reader: Reader, table: Path, query: str, *, timeout_s: float
) -> tuple[dict[str, Any], str | None]:
    """Facts and failure of one run; a reader that breaks or takes too long is told as such."""
    try:
        line = command(reader, table, query)
    except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
        return {}, f"could not be set up: {error}"
    # Warnings and progress of other projects are not ours to show.
    quiet = os.environ | {"PYTHONWARNINGS": "ignore", "DAFT_PROGRESS_BAR": "0"}
    done = run_watched(line, timeout_s=timeout_s, memory_max_kb=memory_fence_kb(), env=quiet)
    if done.stopped:
        return {}, done.stopped
    facts = printed_facts(done)
    if done.exit_code or facts is None:
        return {}, last_words(done)
    facts["process_s"] = done.elapsed_s
    if "cannot" in facts:
        return {}, f"cannot: {facts['cannot']}"
    return facts, None


def printed_facts(done: Outcome) -> dict[str, Any] | None:
    """The last line of JSON that a command printed."""
    printed = [text for text in done.stdout.splitlines() if text.startswith("{")]
    facts: dict[str, Any] | None = json.loads(printed[-1]) if printed else None
    return facts


def last_words(done: Outcome) -> str:
    """How a command ended, and what it said last."""
    text = [words for words in (done.stderr or done.stdout).splitlines() if words.strip()]
    ended = f"killed by signal {-done.exit_code}" if done.exit_code < 0 else f"exit code {done.exit_code}"
    return f"{ended}: {text[-1].strip()[:300]}" if text else ended
