"""Every reader on the ladder of generated tables: `python -m bench.run [--full]`.

Why processes: each reader has its own memory, threads and library versions. Rounds alternate the order of
readers, so that a machine that slows down slows all of them. Contract: a reader that fails, miscounts or
takes too long is shown as such. With `--full` the promises are judged at ten million files, and the exit
code tells whether they hold.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.pages import RESULTS, say, verdicts
from bench.promises import Budget, judge
from bench.readers import OURS, READERS, Reader, Result, run_once
from bench.report import headline, save, tables
from bench.summary import rows as summed_up
from bench.tables import CachedTable, bench_spec, cached_table, without_checksums

SMALL_LADDER = (100_000, 1_000_000)
FULL_LADDER = (1_000_000, 10_000_000)
# Peers take minutes on the largest table: they run once there, and less often than we do elsewhere.
_PEERS_ONCE_FROM = 5_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    ladder = options.files or (FULL_LADDER if options.full else SMALL_LADDER)
    wanted = [reader for reader in READERS if not options.reader or reader.name in options.reader]
    results: list[Result] = []
    for files in ladder:
        say(f"table of {files:,} files …")
        table = cached_table(bench_spec(files))
        results += run_table(table, wanted, rounds=options.rounds, timeout_s=options.timeout)
    rows = summed_up(results)
    budget = log_budget(cached_table(bench_spec(max(ladder))))
    checks = judge(rows, files=max(ladder), smaller=min(ladder), budget=budget)
    picture = save(RESULTS, "full" if options.full else "small", results, rows, checks)
    print(tables(rows), end="\n\n")
    print("\n".join(headline(rows, files) for files in ladder), end="\n\n")
    print(f"The promises, judged at {max(ladder):,} files:")
    print(verdicts(checks), end="\n\n")
    print(f"Saved: {picture} and, beside it, the same as Markdown and JSON.")
    return int(options.full and not all(check.passed for check in checks))


def run_table(
    table: CachedTable, readers: Sequence[Reader], *, rounds: int, timeout_s: float
) -> Iterator[Result]:
    """All readers on one table, round by round."""
    warm_up(table.path)
    for number in range(rounds):
        order = readers if number % 2 == 0 else readers[::-1]
        for reader in order:
            if number < _rounds_of(reader, table.spec.files, rounds):
                for query in reader.queries:
                    yield _measured(reader, query, table, number, timeout_s)
    if OURS in readers:
        bare = without_checksums(table)
        for number in range(rounds):
            yield _measured(OURS, "hundred", table, number, timeout_s, path=bare, name="no checksums")


def warm_up(table: Path) -> None:
    """Bring the log into the page cache, so that the first reader does not pay for all."""
    for path in sorted((table / "_delta_log").rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                while file.read(1 << 24):
                    pass


def log_budget(table: CachedTable) -> Budget:
    """What the tail, the checkpoint's footer and its protocol and metadata columns weigh."""
    (path,) = (table.path / "_delta_log").glob("*.checkpoint.parquet")
    about = pq.ParquetFile(path).metadata
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    state = [column for column in columns if column.path_in_schema.startswith(("protocol.", "metaData."))]
    return Budget(
        tail_bytes=table.expected.tail_bytes,
        # The hint and the eight bytes that follow a footer belong to finding it.
        footer_bytes=about.serialized_size + 8 + path.with_name("_last_checkpoint").stat().st_size,
        table_state_bytes=sum(column.total_compressed_size for column in state),
    )


def _measured(
    reader: Reader,
    query: str,
    table: CachedTable,
    number: int,
    timeout_s: float,
    *,
    path: Path | None = None,
    name: str = "ladder",
) -> Result:
    facts, failure = run_once(reader, path or table.path, query, timeout_s=timeout_s)
    failure = failure or _miscount(table, reader, query, facts)
    told = failure or " ".join(f"{key} {facts[key]:.3f}" for key in ("first_s", "all_s") if facts.get(key))
    say(f"  round {number + 1}  {reader.name:<12} {query:<10} {told}")
    return Result(
        reader=reader.name,
        kind=reader.kind,
        query=query,
        table=name,
        files=table.spec.files,
        round=number,
        facts=facts,
        failure=failure,
    )


def _miscount(table: CachedTable, reader: Reader, query: str, facts: dict[str, Any]) -> str | None:
    """Readers must agree with the generator, and so with each other."""
    exact = {"all": table.expected.live_files, "predicate": table.expected.low_files, "hundred": 100}
    exact |= {"thousand": 1_000, "today": 100}
    if reader.kind == "floor":
        exact = {"all": table.spec.files}
    counted = facts.get("files")
    if counted is None or query not in exact or counted == exact[query]:
        return None
    return f"counted {counted:,} files instead of {exact[query]:,}"


def _rounds_of(reader: Reader, files: int, rounds: int) -> int:
    if reader.kind in ("ours", "floor") or reader.name == "kernel-rust":
        return rounds
    return 1 if files >= _PEERS_ONCE_FROM else min(rounds, 2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--full", action="store_true", help="one and ten million files; judges the promises")
    parser.add_argument("--files", type=int, nargs=2, metavar=("SMALLER", "LARGER"), help="another ladder")
    parser.add_argument(
        "--rounds", type=int, default=5, help="for lazydelta and the floor; peers run less often"
    )
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one run of one reader")
    parser.add_argument(
        "--reader", action="append", choices=[r.name for r in READERS], help="only these readers"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
