"""From ten thousand files to a billion: `python -m bench.scale.run`.

Why: what a query costs must follow what it asks for, not how large the table is. Contract: the tables are
simulated (`simulated.py`), the reader is the real one, in a process of its own for each query, behind a
store with latency. A round before the first makes the parts that the queries need. Figures are medians;
answers are counted. Besides, the sidecar of one more checkpoint is built upon the one that is there.
Promises: the last hour and the first files of a billion files take at most twice what they take of ten
million, in time, bytes and memory, and so does one more checkpoint; manifest and part list have less than a
megabyte. A run in which nothing was chosen otherwise writes `docs/scale-figures.md`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import msgspec

from bench.ladder_levels import L7
from bench.ladder_runs import Conduct, Run, run_level, started
from bench.ladder_tables import EVENT, HOUR, QUERIES, TAKE, Query
from bench.pages import DOCS, RESULTS, say
from bench.promises import Check
from bench.scale.model import derived_page
from bench.scale.next_checkpoint import CheckpointCost, checkpoint_cost, grown_spec, write_next_checkpoint
from bench.scale.report import SMALLER, Figures, judged, scale_page, scale_picture
from bench.scale.simulated import simulated_spec, written_table
from bench.tables import cache_folder

SIZES = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
DEEP = Query(name="deep", title="take 5,000", limit=5_000)
ASKED = (TAKE, DEEP, HOUR, EVENT, next(query for query in QUERIES if query.name == "day"))


class ScaleRuns(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    latency_ms: float
    figures: list[Figures]
    costs: list[CheckpointCost]
    checks: list[Check]


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = parser().parse_args(arguments)
    folder = cache_folder() / "scale"
    say(f"tables of {', '.join(f'{files:,}' for files in options.files)} files …")
    tables = [written_table(simulated_spec(files), folder) for files in options.files]
    grown = [written_table(grown_spec(files), folder, anew=True) for files in options.files]
    for table in grown:
        write_next_checkpoint(table)
    command = [sys.executable, "-m", "bench.scale.server", str(folder)]
    command += ["--latency-ms", str(options.latency_ms)]
    runs: dict[tuple[int, str], list[Run]] = {}
    with started(command) as place:
        for number in range(options.rounds + 1):
            conduct = Conduct(place=place, rounds=1, timeout_s=options.timeout, say=say)
            for table in tables if number % 2 == 0 else reversed(tables):
                for query in ASKED:
                    run = run_level(table, L7, query, conduct, number=number)
                    if number:
                        runs.setdefault((table.spec.files, query.name), []).append(run)
        costs = [checkpoint_cost(table, place) for table in grown]
    manifests = {table.spec.files: table.manifest_bytes for table in tables}
    figures = [
        Figures.of(files, query.title, runs[files, query.name], manifest_bytes=manifests[files])
        for files in manifests
        for query in ASKED
    ]
    checks = judged(figures, costs)
    found = ScaleRuns(latency_ms=options.latency_ms, figures=figures, costs=costs, checks=checks)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scale.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    page = scale_page(figures, costs, checks, latency_ms=options.latency_ms)
    page += "\n" + derived_page(figures, base=SMALLER)
    (options.out / "scale.md").write_text(page)
    print(page)
    picture = scale_picture(options.out / "scale.png", figures, costs)
    print(picture)
    if is_published(options):
        shutil.copyfile(picture, DOCS / "scale-figures.png")
        (DOCS / "scale-figures.md").write_text(page)
    return int(not all(check.passed for check in checks))


def is_published(options: argparse.Namespace) -> bool:
    """Whether the figures are those of the documentation: a trial with fewer rounds or sizes is not."""
    return options == parser().parse_args([])


def parser() -> argparse.ArgumentParser:
    known = argparse.ArgumentParser(
        prog="python -m bench.scale.run", description=(__doc__ or "").split("\n\n", 1)[0]
    )
    known.add_argument("--files", type=int, nargs="+", default=list(SIZES))
    known.add_argument("--rounds", type=int, default=5)
    known.add_argument("--latency-ms", type=float, default=30.0)
    known.add_argument("--timeout", type=float, default=300.0)
    known.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    return known


if __name__ == "__main__":
    sys.exit(main())
