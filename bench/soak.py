"""The same work over and over, and whether anything grows: `python -m bench.soak --minutes 20`.

Why: what leaks a little at each query ends a service after a week.
Contract: workers take jobs at random, on disk and on a store behind a faulty line. Now and then all of them
rest, and the process is looked at: resident memory, open handles, threads, bytes still held of the memory
budget. After a first part, in which caches fill, none of these may grow; a job that fails other than by its
own design ends the soak. Prints each look; the exit code says whether all was flat.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import random
import statistics
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pyarrow as pa

from bench.ladder_server import BUCKET
from bench.ladder_tables import HOUR, LadderTable, ladder_table
from bench.peers.measure import status_kb
from bench.soak_jobs import JOBS, Job, Place, World
from bench.spec import TableSpec
from bench.tables import REPOSITORY
from lazydelta.errors import StorageError
from lazydelta.memory_budget import PROCESS_MEMORY
from lazydelta.rows.row_threads import threads_in_use

WORKERS = 6
WARM_UP = 0.4  # of the looks; caches fill and allocators settle
GROWTH_MB_MAX = 24.0
GROWTH_SHARE_MAX = 0.06
_HANDLES_GROWTH_MAX = 10  # idle connections come and go
_THREADS_GROWTH_MAX = WORKERS  # Arrow's pools fill as more workers meet: each may bring one that stays
_POOLS = ("lazydelta-io", "lazydelta-in-time")  # bounded; they keep as many as were busy at once
_RUNTIME = "tokio-rt-worker"  # obstore's, likewise
_SETTLE_SECONDS_MAX = 10.0  # what is held for longer, while nobody works, is lost
_GIVEN_UP_MAX = 0.02  # of the jobs on the store: every attempt of a request met a fault


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The process at rest."""

    seconds: float
    resident_mb: float
    arrow_mb: float
    handles: int
    threads: int
    held_bytes: int  # of the memory budget, without the cache
    row_threads: int
    jobs: int


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """A soak that has ended."""

    looks: list[Look]
    jobs: Counter[str] = msgspec.field(default_factory=Counter)
    given_up: int
    failures: list[str] = []


class Soak:
    """Workers, and the rests between their jobs."""

    def __init__(self, world: World, jobs: Sequence[Job] = JOBS, *, workers: int = WORKERS) -> None:
        self._world = world
        self._jobs = jobs
        self._workers = workers
        self._done: Counter[str] = Counter()
        self._given_up = 0
        self._failures: list[str] = []
        self._resting = threading.Barrier(workers + 1)
        self._rest = threading.Event()
        self._stop = False
        self._lock = threading.Lock()
        self._began = time.monotonic()

    def run(self, *, seconds: float, look_every_s: float) -> Soaked:
        """Soak for so long."""
        looks: list[Look] = []
        threads = [
            threading.Thread(target=self._work, args=(number,), daemon=True)
            for number in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        while not self._stop:
            time.sleep(look_every_s)
            self._stop = bool(self._failures) or time.monotonic() - self._began >= seconds
            self._rest.set()
            self._resting.wait()  # all rest
            looks.append(self._look())
            print(_line(looks[-1]), flush=True)
            self._rest.clear()
            self._resting.wait()  # all go on
        for thread in threads:
            thread.join()
        return Soaked(looks=looks, jobs=self._done, given_up=self._given_up, failures=self._failures)

    def _work(self, number: int) -> None:
        dice = random.Random(number)
        while not self._stop:
            while not self._rest.is_set():
                self._do(dice)
            self._resting.wait()
            self._resting.wait()

    def _do(self, dice: random.Random) -> None:
        job, place = dice.choice(self._jobs), dice.choice(self._world.places)
        try:
            job(self._world, place, dice)
        except StorageError:
            with self._lock:
                self._given_up += 1
                if not place.options:
                    self._failures.append(f"{job.__name__}: {traceback.format_exc()}")
        except BaseException:  # noqa: BLE001 - told by the verdict
            self._failures.append(f"{job.__name__} at {place.url}: {traceback.format_exc()}")
        with self._lock:
            self._done[job.__name__] += 1

    def _look(self) -> Look:
        _settle()
        use = PROCESS_MEMORY.use()
        return Look(
            seconds=time.monotonic() - self._began,
            resident_mb=status_kb("VmRSS") / 1024,
            arrow_mb=pa.total_allocated_bytes() / (1 << 20),
            handles=sum(1 for _ in Path("/proc/self/fd").iterdir()),
            threads=_threads(),
            held_bytes=use.held_bytes - use.cache_bytes,
            row_threads=threads_in_use(),
            jobs=self._done.total(),
        )


def verdicts_on(soaked: Soaked) -> list[str]:
    """What grew, or failed; nothing where all is well."""
    settled = soaked.looks[int(len(soaked.looks) * WARM_UP) :]
    found = list(soaked.failures)
    before, after = settled[: len(settled) // 2], settled[len(settled) // 2 :]
    allowed = {
        "resident_mb": max(GROWTH_MB_MAX, GROWTH_SHARE_MAX * _middle(before, "resident_mb")),
        "handles": _HANDLES_GROWTH_MAX,
        "threads": _THREADS_GROWTH_MAX,
    }
    for name, growth_max in allowed.items():
        first, last = _middle(before, name), _middle(after, name)
        if last - first > growth_max:
            found.append(f"{name} grew from {first:,.1f} to {last:,.1f}")
    leaks = {name: max(getattr(look, name) for look in settled) for name in ("held_bytes", "row_threads")}
    found += [f"{name} is {most:,} at rest" for name, most in leaks.items() if most]
    if soaked.given_up > _GIVEN_UP_MAX * max(1, soaked.jobs.total()):
        found.append(f"{soaked.given_up} of {soaked.jobs.total()} jobs were given up")
    return found


def soak_spec(files: int) -> TableSpec:
    """A table by the hour with a tail, deletion vectors, and data for every file."""
    return TableSpec(
        files=files,
        order="spark",
        event_hour=True,
        date_partition=False,
        time_settings=True,
        stats_width=2,
        checkpoint_dv_every=50,
        tail_commits=10,
        tail_adds=20,
        tail_removes=5,
        tail_dv_updates=3,
        tail_readds=1,
        tail_minutes=50,
        data="all",
    )


@contextmanager
def soak_world(files: int) -> Iterator[World]:
    """The table on disk and on a store that is started here."""
    table = ladder_table(soak_spec(files))
    folder = table.table.path.parent
    with _stored(folder) as port:
        options = {"endpoint": f"http://127.0.0.1:{port}", "region": "us-east-1"}
        options |= {"allow_http": "true", "skip_signature": "true", "delta.request.backoff_seconds": "0.01"}
        store = Place(url=f"s3://{BUCKET}/{table.table.path.name}", options=options)
        yield _world(table, (Place(url=str(table.table.path)), store))


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=about)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--files", type=int, default=2_000)
    options = parser.parse_args(arguments)
    seconds = options.minutes * 60
    with soak_world(options.files) as world:
        soaked = Soak(world).run(seconds=seconds, look_every_s=max(2.0, seconds / 60))
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(soaked.jobs.items()))
    print(f"{soaked.jobs.total():,} jobs ({soaked.given_up} given up): {told}")
    verdicts = verdicts_on(soaked)
    for verdict in verdicts:
        print(f"NOT FLAT: {verdict}")
    print("flat" if not verdicts else "not flat")
    sys.exit(1 if verdicts else 0)


@contextmanager
def _stored(folder: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "bench.soak_store", str(folder)]
    there = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=there) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()


def _world(table: LadderTable, places: tuple[Place, ...]) -> World:
    where = HOUR.where()
    assert where is not None
    return World(
        places=places,
        files=table.answers["all"],
        files_of_hour=table.answers[HOUR.name],
        hour=where,
    )


def _threads() -> int:
    """Threads but those of pools, which fill whenever more requests meet than ever before."""
    found = 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ended meanwhile
            found += (task / "comm").read_text("utf-8").strip() != _RUNTIME
    return found - sum(thread.name.startswith(_POOLS) for thread in threading.enumerate())


def _settle() -> None:
    """Let threads end that have nothing to do, and give unused memory back; a busy machine takes its time."""
    give_up = time.monotonic() + _SETTLE_SECONDS_MAX
    while True:
        gc.collect()
        use = PROCESS_MEMORY.use()
        is_idle = threads_in_use() == 0 and use.held_bytes == use.cache_bytes
        if is_idle and not any(thread.name.startswith("lazydelta-rows") for thread in threading.enumerate()):
            break
        if time.monotonic() > give_up:
            break
        time.sleep(0.05)
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # glibc's own
        ctypes.CDLL(None).malloc_trim(0)


def _middle(looks: Sequence[Look], name: str) -> float:
    return statistics.median(float(getattr(look, name)) for look in looks)


def _line(look: Look) -> str:
    return (
        f"{look.seconds:>7.0f} s  {look.resident_mb:>7.1f} MB  {look.arrow_mb:>6.1f} MB Arrow  "
        f"{look.handles:>4} handles  {look.threads:>3} threads  {look.held_bytes:>8,} held  "
        f"{look.jobs:>7,} jobs"
    )


if __name__ == "__main__":
    main()
