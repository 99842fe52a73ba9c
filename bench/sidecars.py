"""What sidecars cost: `python -m bench.sidecars [--full]`.

Builds by the local feeder and by Spark beside the checkpoint that Delta on Spark writes, then incremental
builds over a table that grows. Contract: each build runs in a process of its own. Without `--full` the tables
are small, and the shape of the sidecar is scaled with them; with it the exit code tells whether the promises
hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.growing import GrowingSpec
from bench.pages import RESULTS, say, verdicts
from bench.promises import Check
from bench.sidecar_promises import judge_builds, judge_growth
from bench.sidecar_report import save_sidecars, sidecar_tables
from bench.sidecar_runs import Build, SizeRun, Step, run_growth, run_sizes, sizes_spec
from bench.tables import cache_folder, cached_table


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How large everything is."""

    sizes: tuple[tuple[int, str], ...]  # files and statistics; Delta's default first
    growing: GrowingSpec
    full_every: int
    row_group_rows: int  # 0: the default of sidecars
    rounds: int


SMALL = Plan(
    sizes=((100_000, "both"),),
    # A twentieth of the full run in everything, the sidecar's row groups included.
    growing=GrowingSpec(files=50_000, checkpoints=20, adds_per_commit=50, optimized_hours=5),
    full_every=2,
    row_group_rows=500,
    rounds=2,
)
FULL = Plan(
    sizes=((1_000_000, "both"), (1_000_000, "json")),
    growing=GrowingSpec(files=1_000_000, checkpoints=100),
    full_every=5,
    row_group_rows=0,
    rounds=3,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    plan = FULL if options.full else SMALL
    sizes: list[SizeRun] = []
    checks: list[Check] = []
    first: Build | None = None
    steps: list[Step] = []
    scratch_root = cache_folder() / "bench"
    scratch_root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch_root) as name:
        if options.only != "growth":
            sizes = [_sizes(plan, files, stats, Path(name)) for files, stats in plan.sizes]
            checks += judge_builds(sizes)
        if options.only != "builds":
            first, steps, differences = _growth(plan, Path(name))
            checks += judge_growth(steps, differences)
    label = "sidecar-full" if options.full else "sidecar-small"
    label += f"-{options.only}" if options.only else ""
    saved = save_sidecars(RESULTS, label, sizes=sizes, first=first, steps=steps, checks=checks)
    print(sidecar_tables(sizes, first, steps), end="\n\n")
    print(f"The promises, which are made for the full run:\n{verdicts(checks)}", end="\n\n")
    print(f"Saved: {saved} and what lies beside it.")
    return int(options.full and not all(check.passed for check in checks))


def _sizes(plan: Plan, files: int, stats: str, scratch: Path) -> SizeRun:
    say(f"table of {files:,} files, statistics: {stats} …")
    table = cached_table(sizes_spec(files, stats))
    return run_sizes(table, scratch, rounds=plan.rounds, with_spark=True, say=say)


def _growth(plan: Plan, scratch: Path) -> tuple[Build, list[Step], int]:
    say(f"a table that grows: {plan.growing.files:,} files and {plan.growing.checkpoints} checkpoints …")
    return run_growth(
        plan.growing, scratch, full_every=plan.full_every, row_group_rows=plan.row_group_rows, say=say
    )


def _parser() -> argparse.ArgumentParser:
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.sidecars", description=about)
    parser.add_argument("--full", action="store_true", help="a million files and a hundred checkpoints")
    parser.add_argument("--only", choices=("builds", "growth"), help="one half")
    return parser


if __name__ == "__main__":
    sys.exit(main())
