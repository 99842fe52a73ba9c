"""Processes that run inputs, watched: which input ended one, which never ends, how many were refused.

Contract: jobs are dealt to as many processes as asked for; one that dies or hangs is ended, its input is
written down as an escape, and another process goes on behind it. Everything follows from the seed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psutil

from fuzz.line_coverage import Lines
from fuzz.seeds import make_seeds
from fuzz.targets import all_targets, target_named
from fuzz.worker import SLOT, Job, Orders, input_of, save_failure

HANG_SECONDS = 30.0  # of the processor, for one input
_DEAD_SECONDS = 900.0  # of the clock: a lock that is never given back takes no time of the processor
_POLL_SECONDS = 0.1
_ROOT = Path(__file__).resolve().parents[1]


class Tally(msgspec.Struct):
    """What became of the inputs of one target."""

    inputs: int = 0
    refused: int = 0
    answered: int = 0
    escaped: int = 0
    microseconds: int = 0  # of the processor


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the fuzzer."""

    folder: Path  # for seeds, failures and the report
    seed: int
    processes: int
    counts: dict[str, int]  # inputs by target
    chunk: int = 50_000  # inputs of a job
    jobs_at_once: int = 1  # of a process, which takes a while to start
    lines: Path | None = None  # folder for the lines that are run
    seconds_max: float = 0.0  # of the processor, for a job; 0: as long as it takes
    hang_seconds: float = HANG_SECONDS


def shares(total: int, names: Sequence[str] = ()) -> dict[str, int]:
    """How many inputs each target has of so many in all."""
    chosen = {name: target for name, target in all_targets().items() if not names or name in names}
    whole = sum(target.share for target in chosen.values())
    return {name: -(-total * target.share // whole) for name, target in chosen.items()}


def run(plan: Plan) -> dict[str, Tally]:
    """Run everything; what escaped is in the folder `failures`."""
    make_seeds(plan.folder / "seeds")
    jobs = [
        Job(name, first, min(plan.chunk, count - first))
        for first in range(0, max(plan.counts.values()), plan.chunk)
        for name, count in plan.counts.items()
        if first < count
    ]
    deals = [jobs[at : at + plan.jobs_at_once] for at in range(0, len(jobs), plan.jobs_at_once)]
    tallies = {name: Tally() for name in plan.counts}
    with ThreadPoolExecutor(plan.processes) as pool:
        for done in pool.map(lambda deal: _watched(plan, deal), deals):
            for name, tally in done:
                _add(tallies[name], tally)
    return tallies


def _watched(plan: Plan, jobs: list[Job]) -> list[tuple[str, Tally]]:
    """Run these jobs, in as many processes one after the other as it takes."""
    found: list[tuple[str, Tally]] = []
    waiting = list(jobs)
    while waiting:
        page = plan.folder / f"page-{os.getpid()}-{id(jobs):x}"
        page.write_bytes(b"".join(SLOT.pack(job.first, 0, 0, 0, 0) for job in waiting))
        orders = Orders(
            seed=plan.seed,
            jobs=waiting,
            seeds=str(plan.folder / "seeds"),
            failures=str(plan.folder / "failures"),
            page=str(page),
            lines="" if plan.lines is None else str(plan.lines),
            seconds_max=plan.seconds_max,
        )
        told = _process(orders, page, plan.hang_seconds)
        done, waiting = _account(plan, waiting, page.read_bytes(), told)
        page.unlink()
        found += done
    return found


def _process(orders: Orders, page: Path, hang_seconds: float) -> str:
    """Run a process to its end; empty, or why it ended early."""
    command = [sys.executable, "-m", "fuzz.worker", msgspec.json.encode(orders).decode()]
    errors = page.with_suffix(".stderr")
    with errors.open("wb") as stderr:
        process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=stderr)
        before, since, spent = b"", time.monotonic(), 0.0
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            time.sleep(_POLL_SECONDS)
            now = page.read_bytes()
            if now != before:
                before, since, spent = now, time.monotonic(), _processor_seconds(watched)
            elif (
                _processor_seconds(watched) - spent > hang_seconds or time.monotonic() - since > _DEAD_SECONDS
            ):
                process.kill()
                process.wait()
                errors.unlink()
                return f"it hung: {hang_seconds:.0f} s of the processor, or {_DEAD_SECONDS:.0f} s in all"
    said = errors.read_text("utf-8", "replace")[-3000:]
    errors.unlink()
    return "" if process.returncode == 0 else f"the process ended with {process.returncode}\n{said}"


def _processor_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _account(
    plan: Plan, jobs: list[Job], page: bytes, told: str
) -> tuple[list[tuple[str, Tally]], list[Job]]:
    """What was done, and what is left behind the input that ended the process."""
    done, left = [], []
    for number, job in enumerate(jobs):
        index, refused, answered, escaped, spent = SLOT.unpack_from(page, number * SLOT.size)
        ran = index - job.first
        if told and not left and ran < job.count:
            _save(plan, job.target, index, told)
            escaped, ran = escaped + 1, ran + 1
            left.append(Job(job.target, index + 1, job.count - ran))
        elif left:
            left.append(job)
            continue
        done.append((job.target, Tally(ran, refused, answered, escaped, spent)))
    return done, [job for job in left if job.count]


def _save(plan: Plan, name: str, index: int, told: str) -> None:
    target = target_named(name)
    target.prepare(plan.folder / "seeds")
    body = input_of(target, plan.seed, index)
    save_failure(plan.folder / "failures", f"{name}-{plan.seed}-{index}", body, told)


def _add(whole: Tally, more: Tally) -> None:
    for field in Tally.__struct_fields__:
        setattr(whole, field, getattr(whole, field) + getattr(more, field))


def read_lines(path: Path) -> Lines:
    """The lines that were run, by module."""
    return msgspec.json.decode(path.read_bytes(), type=Lines) if path.exists() else {}
