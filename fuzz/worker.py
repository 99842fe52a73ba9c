"""A watched process that runs inputs: `python -m fuzz.worker JOBS`, started by `fuzz.watch`.

Contract: before an input is run, its number stands in the shared page, so that whoever watches knows which
one ended the process or never ends. What escapes is written down at once. Memory is bounded by the system;
an input that makes the process grow is an escape, too.
"""

from __future__ import annotations

import logging
import mmap
import resource
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path
from random import Random

import msgspec

from fuzz.line_coverage import LineCoverage
from fuzz.target import Target
from fuzz.targets import target_named
from lazydelta.errors import LazyDeltaError

SLOT = struct.Struct("<qqqqq")  # of a job: the next input, refused, answered, escaped, microseconds
GROWTH_BYTES_MAX = 192 << 20  # of the process by one input
ADDRESS_BYTES_MAX = 4 << 30  # over what the process has when it begins


class Job(msgspec.Struct, frozen=True):
    """Some inputs of one target."""

    target: str
    first: int
    count: int


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is started with."""

    seed: int
    jobs: list[Job]
    seeds: str  # folder
    failures: str  # folder
    page: str  # file
    lines: str = ""  # folder for the lines that were run, a file for each target; empty: nobody asks
    seconds_max: float = 0.0  # of the processor, for a job; 0: as long as it takes


def input_of(target: Target, seed: int, index: int) -> bytes:
    """The input of that number."""
    return target.make(Random(f"{target.name} {seed} {index}"))


def outcome(target: Target, body: bytes) -> str:
    """`refused`, `answered`, or the traceback of what escaped."""
    try:
        target.run(body)
    except LazyDeltaError as refusal:
        str(refusal).encode("utf-8", "replace")
        return "refused"
    except BaseException:  # noqa: BLE001 - whatever it is, it escaped
        return traceback.format_exc()
    return "answered"


def save_failure(folder: Path, name: str, body: bytes, told: str) -> None:
    """The input, what it did, and how to see it again."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.bin").write_bytes(body)
    again = f"python -m fuzz --replay {folder / name}.bin"
    (folder / f"{name}.txt").write_text(f"{again}\n\n{told}\n", "utf-8", "backslashreplace")


def _main(orders: Orders) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with Path(orders.page).open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        for number, job in enumerate(orders.jobs):
            target = target_named(job.target)
            target.prepare(Path(orders.seeds))
            if number == 0:
                _bound_memory()
            with LineCoverage(target.modules if orders.lines else ()) as lines:
                _run(target, job, orders, page, number * SLOT.size)
            if orders.lines:
                lines.save(Path(orders.lines) / f"{job.target}.json")


def _run(target: Target, job: Job, orders: Orders, page: mmap.mmap, at: int) -> None:
    refused = answered = escaped = 0
    peak, began = _peak_bytes(), time.process_time()
    for index in range(job.first, job.first + job.count):
        spent = int(1e6 * (time.process_time() - began))
        if orders.seconds_max and spent > 1e6 * orders.seconds_max:
            SLOT.pack_into(page, at, index, refused, answered, escaped, spent)
            return
        SLOT.pack_into(page, at, index, refused, answered, escaped, spent)
        body = input_of(target, orders.seed, index)
        peak_before = max(peak, _peak_bytes())
        told = outcome(target, body)
        peak = _peak_bytes()
        if told == "refused":
            refused += 1
        elif told == "answered":
            answered += 1
        if peak - peak_before > GROWTH_BYTES_MAX:
            told = f"the process grew by {(peak - peak_before) >> 20} MiB; {told}"
        if told not in ("refused", "answered"):
            escaped += 1
            save_failure(Path(orders.failures), f"{target.name}-{orders.seed}-{index}", body, told)
    spent = int(1e6 * (time.process_time() - began))
    SLOT.pack_into(page, at, job.first + job.count, refused, answered, escaped, spent)


def _peak_bytes() -> int:
    """The most that this process has had resident.

    Not `getrusage`: that begins with the most of the process which started this one.
    """
    with Path("/proc/self/status").open("rb", buffering=0) as file:
        return 1024 * int(file.read(4096).partition(b"VmHWM:")[2].split(None, 1)[0])


def _bound_memory() -> None:
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        have = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (have + ADDRESS_BYTES_MAX, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _main(msgspec.json.decode(sys.argv[1], type=Orders))
