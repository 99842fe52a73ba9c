"""The ladder from L0 to L8: `python -m bench.ladder [--full]`.

One table, the seeds' queries, every level; on the local disk and behind latency.
Contract: with `--full` the table has ten million files, the page goes to `docs/ladder.md`, and the exit code
tells whether the promises hold.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.ladder_budget import hour_budget
from bench.ladder_cells import cells
from bench.ladder_levels import L7, LEVELS
from bench.ladder_page import Results, save_ladder
from bench.ladder_promises import judge_ladder
from bench.ladder_runs import DISK, Conduct, Run, run_ladder, run_level, run_peers, run_probes, served
from bench.ladder_tables import (
    EVENT,
    HOUR,
    NARROW_WIDTH,
    QUERIES,
    WIDE_WIDTH,
    LadderTable,
    ladder_spec,
    ladder_table,
    width_spec,
)
from bench.pages import DOCS, RESULTS, say
from bench.run import warm_up
from bench.tables import cache_folder

_FILES, _FILES_FULL = 1_000_000, 10_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    files = options.files or (_FILES_FULL if options.full else _FILES)
    say(f"table of {files:,} files and its sidecar …")
    table = ladder_table(ladder_spec(files), rebuild=options.rebuild)
    wide_files = min(files, options.wide_files or files)
    pair: dict[str, LadderTable] = {}
    if not options.no_wide:
        for label, width in (("narrow", NARROW_WIDTH), ("wide", WIDE_WIDTH)):
            say(f"table of {wide_files:,} files, {3 * width} columns of statistics …")
            pair[label] = ladder_table(width_spec(wide_files, width), rebuild=options.rebuild)
    runs = list(_all_runs(table, pair, options))
    budget = hour_budget(table)
    results = Results(
        files=table.table.expected.live_files,
        row_groups=table.manifest.num_row_groups,
        sidecar_bytes=table.manifest.sidecar_size_bytes,
        checkpoint_bytes=table.table.expected.checkpoint_bytes,
        tail_commits=table.table.spec.tail_commits,
        wide_files=wide_files,
        latency_ms=options.latency_ms,
        answers=table.answers,
        budget=budget,
        runs=runs,
        checks=judge_ladder(cells(runs), budget),
    )
    return _tell(results, options.out, is_full=options.full)


def _all_runs(table: LadderTable, pair: dict[str, LadderTable], options: argparse.Namespace) -> Iterator[Run]:
    with served(cache_folder() / "bench", options.latency_ms) as store:
        for place in (DISK, store):
            if not options.place or place.name == options.place:
                conduct = Conduct(
                    place=place,
                    rounds=options.rounds,
                    timeout_s=options.timeout,
                    say=say,
                    queries=tuple(options.query or ()),
                )
                yield from _runs_at(table, pair, conduct, options)


def _runs_at(
    table: LadderTable, pair: dict[str, LadderTable], conduct: Conduct, options: argparse.Namespace
) -> Iterator[Run]:
    for one in (table, *pair.values()):
        warm_up(one.table.path)
    levels = [level for level in LEVELS if not options.level or level.name in options.level]
    yield from run_ladder(table, conduct, levels)
    yield from run_probes(table, conduct)
    for number in range(conduct.rounds):
        for label, one in pair.items():
            yield run_level(one, L7, HOUR, conduct, number=number, label=label)
    if conduct.place is DISK and not options.no_peers:
        yield from run_peers(table, conduct)


def _tell(results: Results, folder: Path, *, is_full: bool) -> int:
    page = save_ladder(folder, "ladder-full" if is_full else "ladder-small", results)
    print(page.read_text())
    if is_full:
        picture = page.with_suffix(".png")
        shutil.copyfile(picture, DOCS / "ladder.png")
        (DOCS / "ladder.md").write_text(page.read_text().replace(picture.name, "ladder.png"))
    print(f"Saved: {page} and, beside it, the picture and JSON.")
    return int(is_full and not all(check.passed for check in results.checks))


def _parser() -> argparse.ArgumentParser:
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.ladder", description=about)
    parser.add_argument("--full", action="store_true", help="ten million files; judges the promises")
    parser.add_argument("--files", type=int, help="another number of files")
    parser.add_argument("--wide-files", type=int, help="files of the wide pair; as many as the table's")
    parser.add_argument("--no-wide", action="store_true", help="without the wide pair")
    parser.add_argument("--no-peers", action="store_true", help="without readers beside L0")
    parser.add_argument("--rounds", type=int, default=5, help="at most; what is slow runs less often")
    parser.add_argument("--level", action="append", choices=[level.name for level in LEVELS])
    parser.add_argument("--query", action="append", choices=[query.name for query in (*QUERIES, EVENT)])
    parser.add_argument("--place", choices=("disk", "store"), help="only there")
    parser.add_argument("--latency-ms", type=float, default=30.0, help="of every request to the store")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one run")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--rebuild", action="store_true", help="build the sidecars anew")
    return parser


if __name__ == "__main__":
    sys.exit(main())
