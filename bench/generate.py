"""Write a huge but valid Delta log: `python -m bench.generate OUT --files 1_000_000 …`.

Why: readers are compared on tables of ten million files, which nobody wants to ingest for a benchmark.
Contract: only the log is written (and with `--data` or `--data-newest` real files); the same options give
the same bytes; memory is bounded by one row group. Prints one JSON object: what a reader must find.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np

from bench.actions import ENGINE, add_lines, commit_bytes, line, txn_id
from bench.checkpoint import SPARK_PARTITIONS, write_checkpoint
from bench.checksum import checksum
from bench.data import write_data
from bench.files import Files
from bench.fixed_text import Ints
from bench.history import CommitPlan, History, live_count, plan
from bench.spec import TODAY, TODAY_US, Checkpoint, Order, Stats, TableSpec, check, metadata, protocol
from bench.totals import FileTotals


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader of the generated table must find."""

    version: int
    live_files: int
    live_bytes: int
    today: str
    today_files: int
    low_files: int
    log_bytes: int
    checkpoint_bytes: int
    tail_bytes: int


def generate(out: Path, spec: TableSpec) -> Expected:
    """Write the table `spec` into the folder `out`, replacing what is there."""
    check(spec)
    shutil.rmtree(out, ignore_errors=True)
    log = out / "_delta_log"
    log.mkdir(parents=True)
    history = plan(spec)
    totals = FileTotals()
    if spec.checkpoint == "none":
        _write_loading_commits(spec, log, totals)
    else:
        write_checkpoint(spec, log, file_order(spec), totals)
        write_commit_of_checkpoint(spec, log)
    write_tail(spec, log, history, totals)
    write_data(spec, out, history)
    return _expected(spec, log, history, totals)


def file_order(spec: TableSpec) -> Ints:
    """The order of files in the checkpoint: by age, at random, or as Spark leaves them.

    Spark distributes by the hash of the path and sorts each of its partitions by path, that is by date.
    """
    numbers = np.arange(spec.files)
    if spec.order == "ingest":
        return numbers
    rng = np.random.default_rng([spec.seed, 1])
    if spec.order == "shuffled":
        return rng.permutation(numbers)
    return np.argsort(rng.integers(SPARK_PARTITIONS, size=spec.files, dtype=np.int8), kind="stable")


def commit_time_ms(spec: TableSpec, version: int) -> int:
    """When a version was committed; the tail is of today, what went before of yesterday."""
    if version <= spec.base_version:
        return TODAY_US // 1000 - (spec.base_version - version + 1) * 1000
    step = spec.tail_minutes * 60_000 // (spec.tail_commits + 1)
    return TODAY_US // 1000 + (version - spec.base_version) * step


def _write_loading_commits(spec: TableSpec, log: Path, totals: FileTotals) -> None:
    """Without a checkpoint: version 0 makes the table, the next ones append."""
    start = [
        _info(spec, 0, "CREATE TABLE"),
        line("metaData", metadata(spec)),
        line("protocol", protocol(spec)),
    ]
    _put(log / f"{0:020d}.json", b"".join(start), commit_time_ms(spec, 0))
    order = file_order(spec)
    for version in range(1, spec.base_version + 1):
        numbers = order[(version - 1) * spec.adds_per_commit : version * spec.adds_per_commit]
        files = Files(spec, numbers)
        totals.count(files)
        generation = files.base_generation
        adds = [add_lines(Files(spec, numbers[generation == g]), g) for g in np.unique(generation).tolist()]
        _put_commit(spec, log, version, b"".join([_info(spec, version, "WRITE"), *adds]), totals)


def write_commit_of_checkpoint(spec: TableSpec, log: Path) -> None:
    """`C.json` lies beside the checkpoint that contains it."""
    version = spec.base_version
    numbers = np.arange(max(0, spec.files - spec.tail_adds), spec.files)
    plain = numbers[Files(spec, numbers).base_generation == 0]
    content = _info(spec, version, "WRITE") + add_lines(Files(spec, plain))
    _put(log / f"{version:020d}.json", content, commit_time_ms(spec, version))


def write_tail(spec: TableSpec, log: Path, history: History, totals: FileTotals) -> None:
    """The commits after the checkpoint, and checksums with their sums."""
    if spec.crc:
        _put_checksum(spec, log, spec.base_version, totals)
    for commit in history.commits:
        content = commit_bytes(spec, commit, timestamp_ms=commit_time_ms(spec, commit.version))
        _count(spec, commit, totals)
        _put_commit(spec, log, commit.version, content, totals)


def _count(spec: TableSpec, commit: CommitPlan, totals: FileTotals) -> None:
    """Carry the sums over one commit."""
    removed = np.array([number for number, _ in commit.removes], dtype=np.int64)
    totals.files += len(commit.adds) - len(removed)
    totals.weigh(Files(spec, commit.adds), sign=1)
    totals.weigh(Files(spec, removed), sign=-1)
    gone = [generation for _, generation in commit.removes if generation]
    fresh = [after for _, before, after in commit.dv_updates if not before]
    totals.dv_count += len(fresh) - len(gone)
    totals.deleted_rows += len(commit.dv_updates) - sum(gone)


def _put_commit(spec: TableSpec, log: Path, version: int, content: bytes, totals: FileTotals) -> None:
    _put(log / f"{version:020d}.json", content, commit_time_ms(spec, version))
    if spec.crc:
        _put_checksum(spec, log, version, totals)


def _put_checksum(spec: TableSpec, log: Path, version: int, totals: FileTotals) -> None:
    _put(log / f"{version:020d}.crc", checksum(spec, version, totals), commit_time_ms(spec, version))


def _put(path: Path, content: bytes, time_ms: int) -> None:
    path.write_bytes(content)
    # Readers that travel in time go by the age of the file.
    os.utime(path, (time_ms / 1000, time_ms / 1000))


def _info(spec: TableSpec, version: int, operation: str) -> bytes:
    when = commit_time_ms(spec, version)
    shared = {"timestamp": when, "operation": operation, "operationParameters": {}, "isBlindAppend": True}
    return line("commitInfo", shared | {"engineInfo": ENGINE, "txnId": txn_id(spec, version)})


def _expected(spec: TableSpec, log: Path, history: History, totals: FileTotals) -> Expected:
    names = {path.name: path.stat().st_size for path in log.rglob("*") if path.is_file()}
    tail = [f"{version:020d}.json" for version in range(spec.base_version + 1, spec.version + 1)]
    assert totals.files == live_count(spec, history), "the sums and the plan tell the same story"
    return Expected(
        version=spec.version,
        live_files=totals.files,
        live_bytes=totals.size_bytes,
        today=TODAY,
        today_files=spec.tail_commits * spec.tail_adds - sum(n >= spec.files for n in history.removed),
        low_files=totals.low_files,
        log_bytes=sum(names.values()),
        checkpoint_bytes=sum(size for name, size in names.items() if ".checkpoint" in name),
        tail_bytes=sum(names[name] for name in tail),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.generate", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("out", type=Path, help="folder of the table; replaced if it exists")
    parser.add_argument("--files", type=int, default=1_000_000, help="files in the checkpoint")
    parser.add_argument("--order", choices=get_args(Order), default="ingest")
    parser.add_argument("--partitioned", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--unpartitioned", dest="partitioned", action="store_false")
    parser.add_argument("--event-hour", action="store_true", help="partition by _event_hour, too")
    parser.add_argument("--time-settings", action="store_true", help="tell how _event_hour was derived")
    parser.add_argument("--date-partition", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--stats", choices=get_args(Stats), default="json")
    parser.add_argument("--checkpoint", choices=get_args(Checkpoint), default="v1")
    parser.add_argument(
        "--checkpoint-parts", type=int, default=4, help="parts, or sidecars of a V2 checkpoint"
    )
    parser.add_argument(
        "--checkpoint-dv-every", type=int, default=1_000, help="files for one with a deletion vector"
    )
    parser.add_argument("--adds-per-commit", type=int, default=10_000, help="without a checkpoint")
    for name, default in (("commits", 50), ("adds", 200), ("removes", 40), ("dv-updates", 10), ("readds", 2)):
        parser.add_argument(f"--tail-{name}", type=int, default=default)
    parser.add_argument(
        "--tail-minutes", type=int, default=1_440, help="of today that the tail's events fill"
    )
    parser.add_argument(
        "--stats-width", type=int, default=3, help="columns with statistics; over 3: integers"
    )
    parser.add_argument("--crc", action=argparse.BooleanOptionalAction, default=True)
    data = parser.add_mutually_exclusive_group()
    data.add_argument("--data", dest="data", action="store_const", const="all", default="none")
    data.add_argument("--data-newest", dest="data", action="store_const", const="newest")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    given: dict[str, Any] = vars(_parser().parse_args(arguments))
    out = given.pop("out")
    try:
        expected = generate(out, TableSpec(**given))
    except ValueError as error:
        sys.exit(f"bench.generate: {error}")
    sys.stdout.buffer.write(msgspec.json.encode(expected) + b"\n")


if __name__ == "__main__":
    main()
