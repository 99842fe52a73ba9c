"""What the C ABI costs beside Python: `python -m bench.capi --files 1000000`.

Why: a callback for each file must not be dearer than the loop that it replaces. Contract: Python iterates
over `scan.files()`, and over `scan.file_batches()` without an object for each file; C is called back by both
functions; on the same table, in turns, each in a process of its own. Time runs from `open` to the last file,
Python's start apart. The verdict: at most 2 microseconds a file over Python, whichever way Python iterates.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import pyarrow.compute as pc

import lazydelta as ld
from bench.bars import save_bars
from bench.tables import bench_spec, cached_table
from lazydelta.capi.build import build, compiler

_PASSES = ("python", "python_batches", "delta_scan_lazy", "delta_scan_files")
MICROSECONDS_MAX = 2.0  # a file, over Python
TIMER = Path(__file__).with_name("capi_timer.c")


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over all files."""

    name: str
    ns: int
    first_ns: int
    files: int
    bytes: int


def main() -> None:
    """Measure, show, judge."""
    parser = argparse.ArgumentParser(prog="python -m bench.capi", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--table", help="a table that is there already")
    parser.add_argument("--python-pass", metavar="TABLE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.python_pass:
        print(msgspec.json.encode([python_pass(given.python_pass), batch_pass(given.python_pass)]).decode())
        return
    table = given.table or str(cached_table(bench_spec(given.files)).path)
    passes = measure(table, given.rounds)
    problems = judged(passes)
    print(report(passes))
    each = {name: _microseconds(passes, name) for name in _PASSES}
    print(save_bars("capi", {"microseconds a file": each}))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


def measure(table: str, rounds: int) -> list[Timed]:
    """Every pass of every round; the order changes from round to round."""
    passes: list[Timed] = []
    with tempfile.TemporaryDirectory() as folder:
        timer = _timer(Path(folder))
        for number in range(rounds):
            kinds = [_by_python, lambda table: _by_c(timer, table)]
            for kind in kinds if number % 2 == 0 else reversed(kinds):
                passes += kind(table)
    return passes


def python_pass(table: str) -> Timed:
    """The loop that the callback replaces; the imports are warm."""
    next(ld.open(table).scan(limit=1).files())
    first_ns = files = size = 0
    begun = time.perf_counter_ns()
    for file in ld.open(table).scan().files():
        if not files:
            first_ns = time.perf_counter_ns() - begun
        files += 1
        size += file.size
    took = time.perf_counter_ns() - begun
    return Timed(name="python", ns=took, first_ns=first_ns, files=files, bytes=size)


def batch_pass(table: str) -> Timed:
    """The same files as Arrow: what C gets its files from."""
    first_ns = files = size = 0
    begun = time.perf_counter_ns()
    for batch in ld.open(table).scan().file_batches():
        first_ns = first_ns or time.perf_counter_ns() - begun
        files += batch.num_rows
        size += pc.sum(batch.column("size")).as_py()
    took = time.perf_counter_ns() - begun
    return Timed(name="python_batches", ns=took, first_ns=first_ns, files=files, bytes=size)


def judged(passes: list[Timed]) -> list[str]:
    """What is not as promised."""
    scans = [done for done in passes if done.name != "start"]
    problems = [] if len({(done.files, done.bytes) for done in scans}) == 1 else ["the answers differ"]
    python = min(_microseconds(passes, name) for name in ("python", "python_batches"))
    for name in ("delta_scan_lazy", "delta_scan_files"):
        over = _microseconds(passes, name) - python
        if over > MICROSECONDS_MAX:
            problems.append(f"{name}: {over:.2f} us a file over Python, {MICROSECONDS_MAX:g} are allowed")
    return problems


def report(passes: list[Timed]) -> str:
    """A table of medians, with their spread."""
    lines = ["| pass | us a file | over Python | first file, ms | spread |", "|---|---|---|---|---|"]
    python = _microseconds(passes, "python")
    for name in _PASSES:
        all_ns = [done.ns for done in passes if done.name == name]
        first = statistics.median(done.first_ns for done in passes if done.name == name) / 1e6
        each, spread = _microseconds(passes, name), (max(all_ns) - min(all_ns)) / statistics.median(all_ns)
        lines.append(f"| {name} | {each:.2f} | {each - python:+.2f} | {first:.0f} | {spread:.0%} |")
    files = next(done.files for done in passes if done.name == "python")
    start = statistics.median(done.ns for done in passes if done.name == "start") / 1e6
    return "\n".join([*lines, f"\n{files:,} files; the first call starts Python: {start:.0f} ms"])


def _microseconds(passes: list[Timed], name: str) -> float:
    return statistics.median(done.ns / done.files / 1000 for done in passes if done.name == name)


def _by_python(table: str) -> list[Timed]:
    command = [sys.executable, "-m", "bench.capi", "--python-pass", table]
    done = subprocess.run(command, capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=list[Timed])


def _by_c(timer: Path, table: str) -> list[Timed]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([timer, table], capture_output=True, check=True, text=True, env=environment)
    passes = []
    for line in done.stdout.splitlines():
        name, *numbers = line.split()
        took, first, files, size = map(int, numbers)
        passes.append(Timed(name=name, ns=took, first_ns=first, files=files, bytes=size))
    return passes


def _timer(folder: Path) -> Path:
    """The program in C, with a library of its own."""
    build(folder)
    program = folder / "capi_timer"
    flags = ["-O2", "-Wall", "-Werror", f"-I{folder}", str(TIMER), f"-L{folder}", f"-Wl,-rpath,{folder}"]
    subprocess.run([*compiler(), *flags, "-ldelta_lazy", "-o", str(program)], check=True)
    return program


if __name__ == "__main__":
    main()
