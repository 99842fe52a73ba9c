"""The tests without a mutant: which pass, how long each takes, and which lines each runs.

The result is kept in a folder and built in pieces, so that an interrupted run can be resumed. A test that
fails is run again alone; one that fails twice is left out and reported.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
from coverage.numbits import numbits_to_nums

from tests.mutants.drawing import PACKAGES, Mutant
from tests.mutants.runs import End, Found, Order, Workspace

FOLDERS = ("tests/property", "tests/golden", "tests/rules", "tests/unit")
_PIECES = 24
_PIECE_SECONDS = 3600.0
_FAILING_MAX = 20
_ANY_LINE = 0


Piece = tuple[Path, list[str]]  # where its result is kept, and its files of tests


class BaselineError(Exception):
    """The tests do not pass without a mutant."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a mutant's tests are chosen by."""

    seconds: dict[str, float]  # of each test that passes
    lines: dict[str, int]  # how many lines of the packages each test runs
    by_line: dict[
        str, dict[int, set[str]]
    ]  # per file, of the mutants' lines; `_ANY_LINE` has those of all lines
    left_out: list[str]  # tests that fail without a mutant

    def tests_for(self, mutant: Mutant) -> list[str]:
        """The tests that may notice a mutant, the cheapest and most specific first."""
        lines = self.by_line.get(mutant.file, {})
        if mutant.is_module_wide:
            covering = lines.get(_ANY_LINE, set())
        else:
            first, last = mutant.statement
            covering = next((lines[line] for line in range(last, first - 1, -1) if line in lines), set())
        met: dict[str, int] = defaultdict(int)
        costs: dict[str, float] = {}
        for test in sorted(covering & self.seconds.keys(), key=lambda test: (self._cost(test), test)):
            function = test.partition("[")[0]
            met[function] += 1
            costs[test] = self._cost(test) * met[function]  # first one case of each test
        return sorted(costs, key=lambda test: (costs[test], test))

    def _cost(self, test: str) -> float:
        return (self.seconds[test] + 0.05) * self.lines.get(test, 1)


def pieces_of(tests: Path, folders: Sequence[str], kept: Path) -> list[Piece]:
    """The files of tests in equal pieces."""
    files = [
        path.relative_to(tests).as_posix()
        for name in folders
        for path in sorted((tests / name).rglob("test_*.py"))
    ]
    size = -(-len(files) // _PIECES) or 1
    return [
        (kept / f"piece-{start // size:02}", files[start : start + size])
        for start in range(0, len(files), size)
    ]


def is_measured(piece: Piece) -> bool:
    return piece[0].with_suffix(".json").exists()


def measure(workspace: Workspace, piece: Piece) -> None:
    """Run a piece with coverage, and keep what was found."""
    place, files = piece
    data = place.with_suffix(".coverage")
    data.unlink(missing_ok=True)
    include = [f"{workspace.copy}/lazydelta/{package}/*" for package in PACKAGES]
    order = Order(coverage=str(data), include=include)
    run = workspace.run(order, files, seconds=_PIECE_SECONDS, fail_fast=False)
    if run.end not in (End.PASSED, End.FAILED) or any(
        name.startswith("collection") for name in run.found.failed
    ):
        raise BaselineError(f"the tests cannot be run without a mutant ({run.end}):\n{run.output}")
    passed, failed = list(run.found.passed), {}
    for test, why in run.found.failed.items():
        again = workspace.run(Order(tests=[test]), [file_of(test)], seconds=_PIECE_SECONDS)
        if test in again.found.passed:
            passed.append(test)
        else:
            failed[test] = why
    found = Found(passed=passed, failed=failed, seconds=run.found.seconds, fixtures=run.found.fixtures)
    _write(place.with_suffix(".json"), msgspec.json.encode(found))


def load(pieces: Iterable[Path], mutants: Sequence[Mutant], say: Callable[[str], None]) -> Known:
    """Read what the pieces found, for the lines of these mutants."""
    seconds: dict[str, float] = {}
    lines: dict[str, int] = defaultdict(int)
    failed: dict[str, str] = {}
    by_line: dict[str, dict[int, set[str]]] = {mutant.file: defaultdict(set) for mutant in mutants}
    wanted: dict[str, set[int]] = defaultdict(set)
    for mutant in mutants:
        wanted[mutant.file].update(range(mutant.statement[0], mutant.statement[1] + 1))
    for piece in pieces:
        found = msgspec.json.decode(piece.with_suffix(".json").read_bytes(), type=Found)
        failed |= found.failed
        seconds |= {test: found.seconds[test] for test in found.passed}
        for path, context, numbits in _contexts(piece.with_suffix(".coverage")):
            numbers = set(numbits_to_nums(numbits))
            tests = _tests_of(context, found)
            for test in tests:
                lines[test] += len(numbers)
            file = path[path.rindex("/copy/") + len("/copy/") :]
            if file in by_line and numbers:
                for number in (_ANY_LINE, *(numbers & wanted[file])):
                    by_line[file][number].update(tests)
    for test, why in failed.items():
        say(f"fails without a mutant, left out: {test}: {why}")
    if len(failed) > _FAILING_MAX:
        raise BaselineError(f"{len(failed)} tests fail without a mutant")
    return Known(seconds=seconds, lines=lines, by_line=by_line, left_out=sorted(failed))


def file_of(test: str) -> str:
    return test.partition("::")[0]


def _tests_of(context: str, found: Found) -> list[str]:
    """The test of a context, or all those that use a shared fixture."""
    if not context.startswith("fixture|"):
        return [context] if context else []
    _, base, name = context.split("|")
    return [test for test, fixtures in found.fixtures.items() if name in fixtures and test.startswith(base)]


def _contexts(data: Path) -> Iterator[tuple[str, str, bytes]]:
    """File, context and the lines that were run, as coverage.py documents its tables."""
    if not data.exists():
        return
    query = """
        select path, context, numbits from line_bits
        join file on file.id = file_id join context on context.id = context_id
    """
    with closing(sqlite3.connect(data)) as connection:
        yield from connection.execute(query)


def _write(place: Path, body: bytes) -> None:
    """Whole or not at all."""
    unfinished = place.with_suffix(".unfinished")
    unfinished.write_bytes(body)
    unfinished.replace(place)
