"""`make chaos`: everything at once on tables of ten thousand files, and every answer checked.

Writers (Delta on Spark, delta-rs, by hand) commit, delete by deletion vectors, overwrite, compact, write
checkpoints of every kind, clean the log and vacuum; lazydelta's own sidecars are built and cleaned; some of
these processes are killed in the middle. Readers in processes of their own scan, page, read rows and run
SQL, on the stores through a line with faults. Each answer must be the replay of its version, from a copy of
the log that nothing is deleted from. Errors must be of the kinds that cleanup, vacuum and deadlines give.
Exit code 1 if an answer was wrong, a file lost, a question hung, or fewer scans were verified than asked
for.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from bench.chaos.crew import Crew
from bench.chaos.events import read_events
from bench.chaos.replay import Replay
from bench.chaos.report import Tally, render, save
from bench.chaos.start import make_start, put_start
from bench.chaos.stores import STORES, running_stores
from bench.chaos.world import TableSpec, World, load_world, save_world
from lazydelta.errors import LazyDeltaError
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.verify import verify_sidecar

HOURS = 480
KEEPER = "bench.chaos.keeper"
LOOK_SECONDS = 0.5
TELL_SECONDS = 30.0
KEEPER_SECONDS = 3.0  # to catch up, once nobody writes
RUNS_KEPT = 3
SPARK_SECONDS_MAX = 180.0
SPARK_KILL_SECONDS = 200.0  # from one kill of Spark to the next: it takes long to come back
# Readers: of which store, and how many threads each.
READERS = (("local", 2), ("local", 1), ("s3", 2), ("azurite", 2))


def main() -> int:
    """Run, and say how it went."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nobody is left behind
    options = _options()
    root = Path(options.folder)
    folder = root / time.strftime("run-%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    _forget_old_runs(root)
    tally = Tally()
    make_start(folder / "start", hours=HOURS, files_per_hour=options.files_per_hour, seed=options.seed)
    with running_stores(folder, options.stores, seed=options.seed) as (specs, spark_settings):
        for spec in specs:
            started = time.monotonic()
            put_start(spec)
            print(f"{spec.name}: put in {time.monotonic() - started:.1f} s", flush=True)
        world = World(
            folder=str(folder),
            seed=options.seed,
            began=time.time(),
            hours=HOURS,
            tables=specs,
            spark_settings=spark_settings,
        )
        path = str(save_world(world))
        with Crew(folder, tally, random.Random(options.seed)) as crew:
            for spec in specs:
                crew.add(f"keeper-{spec.name}", KEEPER, path, spec.name, store=spec.store)
            if not options.no_spark:
                _start_spark(crew, path)
            _hire(crew, path, world)
            _go_on(crew, tally, options)
            crew.dismiss(but=KEEPER)
            time.sleep(KEEPER_SECONDS)
        ends = {spec.name: _at_the_end(spec, tally) for spec in specs}
        for spec in specs:
            for event in read_events(Path(spec.folder) / "faults.jsonl") if spec.store != "local" else ():
                tally.take(event, spec.store)
    return _tell(folder, tally, crew, options, ends)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--scans-min", type=int, default=10_000, help="verified, or the run fails")
    parser.add_argument("--seconds-max", type=float, default=0.0, help="to go on for while they are fewer")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--files-per-hour", type=int, default=25, help=f"of {HOURS} hours")
    parser.add_argument("--kill-seconds", type=float, default=9.0, help="between kills, on average")
    parser.add_argument("--no-spark", action="store_true")
    cache = os.environ.get("LAZYDELTA_CACHE") or str(Path(__file__).resolve().parents[2] / ".cache")
    parser.add_argument("--folder", default=f"{cache}/chaos")
    return parser.parse_args()


def _start_spark(crew: Crew, path: str) -> None:
    """The slowest to start: the others wait for it."""
    words = (path, "{seed}", "{events}")
    spark = crew.add("spark", "bench.chaos.spark_writer", *words, store="spark", is_mortal=True, niceness=3)
    give_up = time.monotonic() + SPARK_SECONDS_MAX
    while not spark.events.stat().st_size and time.monotonic() < give_up:
        time.sleep(LOOK_SECONDS)


def _hire(crew: Crew, path: str, world: World) -> None:
    """Writers, whoever tends sidecars, and readers."""
    for spec in world.tables:
        at = {"store": spec.store, "is_mortal": True, "niceness": 5}
        words = (path, spec.name, "{seed}", "{events}")
        for number in range(2 if spec.store == "local" else 1):
            crew.add(f"writer-{spec.name}-{number}", "bench.chaos.writer", *words, **at)
        crew.add(f"tender-{spec.name}", "bench.chaos.tender", *words, **at)
    there = {spec.store for spec in world.tables}
    for number, (store, threads) in enumerate(READERS):
        if store in there:
            name = f"reader-{number}"
            crew.add(name, "bench.chaos.reader", path, store, name, str(threads), "{events}", store=store)


def _go_on(crew: Crew, tally: Tally, options: argparse.Namespace) -> None:
    """Until the time is up, or a longer one where too few scans were verified: look, kill, tell."""
    dice = random.Random(options.seed)
    started = time.monotonic()
    kill_at = started + options.kill_seconds
    kill_spark_at = started + SPARK_KILL_SECONDS
    tell_at = started + TELL_SECONDS
    while (now := time.monotonic()) < started + options.seconds or (
        tally.verified < options.scans_min and now < started + options.seconds_max
    ):
        time.sleep(LOOK_SECONDS)
        crew.look()
        if now > kill_at:
            crew.kill_one(with_spark=False)
            kill_at = now + dice.expovariate(1 / options.kill_seconds)
        if now > kill_spark_at:
            crew.kill_one(with_spark=True)
            kill_spark_at = now + SPARK_KILL_SECONDS
        if now > tell_at:
            print(
                f"{now - started:5.0f} s: {tally.verified:,} scans verified, {tally.failed} failed, "
                f"{len(crew.hung)} hung, {sum(tally.kills.values())} kills, {len(tally.troubles)} troubles",
                flush=True,
            )
            tell_at = now + TELL_SECONDS
        if len(tally.troubles) >= 20:
            return


def _at_the_end(spec: TableSpec, tally: Tally) -> dict[str, Any]:
    """The table as it was left: how large, and whether a sidecar of it holds what the log does."""
    replay = Replay(spec.kept)
    newest = replay.newest()
    live = replay.live
    storage = open_storage(spec.url, Settings(storage_options=spec.options, request_timeout_seconds=120.0))
    verified = "none"
    try:
        build_sidecar(storage, config=SidecarConfig())
        report = verify_sidecar(storage, config=SidecarConfig())
        verified = "ok" if report.is_ok else f"differs: {report}"
    except LazyDeltaError as error:
        verified = str(error)
    if verified != "ok":
        tally.troubles.append(f"{spec.name}: the sidecar at the end: {verified}")
    missing = spec.kept / "missing.txt"
    return {
        "commits": newest + 1,
        "files": len(live),
        "with deletion vectors": sum(vector is not None for _, vector in live),
        "sidecar": verified,
        "not kept in time": len(missing.read_text().splitlines()) if missing.exists() else 0,
    }


def _tell(
    folder: Path, tally: Tally, crew: Crew, options: argparse.Namespace, ends: dict[str, dict[str, Any]]
) -> int:
    lost = sum(count for (outcome, _), count in tally.outcomes.items() if outcome == "FAILED: lost")
    facts: dict[str, Any] = {
        "seconds": options.seconds,
        "seed": options.seed,
        "verified scans": tally.verified,
        "wrong, or errors that must not be": tally.failed - lost,
        "lost": lost,
        "hung": len(crew.hung),
        "kills": sum(tally.kills.values()),
        "retries": tally.retries,
        "troubles": len(tally.troubles),
    }
    for name, end in ends.items():
        facts |= {f"{name}: {what}": value for what, value in end.items()}
    text = render(tally, stores=options.stores, facts=facts)
    (folder / "report.txt").write_text(text + "\n")
    save(folder / "report.json", tally, facts | {"hung questions": crew.hung})
    print(f"\n{text}")
    for trouble in [*crew.hung, *tally.troubles][:10]:
        print(f"\nTROUBLE: {trouble}")
    is_good = not (tally.failed or crew.hung or tally.troubles) and tally.verified >= options.scans_min
    is_large = all(end["files"] >= options.files_per_hour * HOURS * 0.8 for end in ends.values())
    print(f"\n{'passed' if is_good and is_large else 'FAILED'}: {folder}")
    if is_good:
        for spec in load_world(folder / "world.json").tables:
            shutil.rmtree(spec.folder, ignore_errors=True)
    return 0 if is_good and is_large else 1


def _forget_old_runs(root: Path) -> None:
    runs = sorted(path for path in root.iterdir() if path.name.startswith("run-"))
    for path in runs[:-RUNS_KEPT]:
        shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
