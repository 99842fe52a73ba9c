"""Rows beside other readers: `python -m bench.rows [--full]`.

Four parts: the first rows of a huge table, GROUP BY over more data than memory holds, every row of files of
several sizes, and what prefetch hides behind latency.
Contract: with `--full` the log has ten million files and the data five gigabytes, the page goes to
`docs/rows-figures.md`, and the exit code tells whether the promises hold.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.pages import DOCS, RESULTS, say
from bench.rows_page import Results, save_rows
from bench.rows_runs import MEMORY_LIMIT, WORK_MS, Run, Scale, run_groups, run_limit, run_prefetch, run_scans
from bench.rows_tables import RowsSpec, rows_table
from bench.run import warm_up
from bench.tables import bench_spec, cached_table

PARTS = ("groups", "scan", "prefetch", "limit")
_MB = 1_000_000
# A segment of the table behind latency is one batch; its footer and its rows are two requests.
_WAITED = {
    "60 files": RowsSpec(files=60, file_bytes=220_000, devices=1_000),
    "15 files of 4 row groups": RowsSpec(files=15, file_bytes=880_000, devices=1_000, row_group_rows=8_000),
}
SMALL = Scale(
    log_files=1_000_000,
    grouped=RowsSpec(files=16, file_bytes=32 * _MB, devices=400_000),
    scanned={
        "200 files of 1 MB": RowsSpec(files=200, file_bytes=1 * _MB, devices=1_000),
        "12 files of 16 MB": RowsSpec(files=12, file_bytes=16 * _MB, devices=1_000),
        "2 files of 128 MB": RowsSpec(files=2, file_bytes=128 * _MB, devices=1_000),
        "2 files of 128 MB, one row group": RowsSpec(
            files=2, file_bytes=128 * _MB, devices=1_000, row_group_rows=0
        ),
    },
    waited=_WAITED,
    rounds=3,
    peer_rounds=2,
)
FULL = Scale(
    log_files=10_000_000,
    grouped=RowsSpec(files=40, file_bytes=128 * _MB, devices=4_000_000),
    scanned={
        "1,000 files of 1 MB": RowsSpec(files=1_000, file_bytes=1 * _MB, devices=1_000),
        "64 files of 16 MB": RowsSpec(files=64, file_bytes=16 * _MB, devices=1_000),
        "8 files of 128 MB": RowsSpec(files=8, file_bytes=128 * _MB, devices=1_000),
        "8 files of 128 MB, one row group": RowsSpec(
            files=8, file_bytes=128 * _MB, devices=1_000, row_group_rows=0
        ),
    },
    waited=_WAITED,
    rounds=3,
    peer_rounds=1,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    scale = FULL if options.full else SMALL
    if options.rounds:
        scale = msgspec.structs.replace(scale, rounds=options.rounds)
    runs = list(_all_runs(scale, options))
    table = rows_table(scale.grouped) if any(run.part == "groups" for run in runs) else None
    results = Results(
        log_files=scale.log_files,
        grouped_bytes=0 if table is None else table.data_bytes,
        grouped_rows=0 if table is None else table.rows,
        memory_limit=MEMORY_LIMIT,
        latency_ms=options.latency_ms,
        work_ms=WORK_MS,
        is_full=options.full,
        runs=runs,
    )
    return _tell(results, options.out, is_whole=not options.part)


def _all_runs(scale: Scale, options: argparse.Namespace) -> Iterator[Run]:
    parts = options.part or PARTS
    if "groups" in parts:
        say(f"GROUP BY: {scale.grouped.files} files of {scale.grouped.file_bytes:,} bytes …")
        yield from run_groups(scale, say)
    if "scan" in parts:
        yield from run_scans(scale, say)
    if "prefetch" in parts:
        yield from run_prefetch(scale, say, latency_ms=options.latency_ms)
    if "limit" in parts:  # last: some readers take most of the memory, and the page cache with it
        say(f"log of {scale.log_files:,} files …")
        log = cached_table(bench_spec(scale.log_files)).path
        warm_up(log)
        yield from run_limit(log, scale, say)


def _tell(results: Results, folder: Path, *, is_whole: bool) -> int:
    page = save_rows(folder, "rows-full" if results.is_full else "rows-small", results)
    print(page.read_text())
    if results.is_full and is_whole:
        picture = page.with_suffix(".png")
        shutil.copyfile(picture, DOCS / "rows-figures.png")
        (DOCS / "rows-figures.md").write_text(page.read_text().replace(picture.name, "rows-figures.png"))
    print(f"Saved: {page} and, beside it, the picture and JSON.")
    return int(results.is_full and not all(check.passed for check in results.checks))


def _parser() -> argparse.ArgumentParser:
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.rows", description=about)
    parser.add_argument("--full", action="store_true", help="ten million files, 5 GB; judges the promises")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")
    parser.add_argument("--rounds", type=int, help="how often each reader runs; peers run less often")
    parser.add_argument("--latency-ms", type=float, default=30.0, help="of every request to the store")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
