"""delta-rs, and by hand: `python -m bench.chaos.writer WORLD TABLE SEED EVENTS`. May be killed anywhere.

Contract: delta-rs appends, deletes, updates, merges, overwrites partitions, compacts, writes checkpoints,
cleans the log and vacuums. By hand come what it cannot write: deletion vectors, V2 and multi-part
checkpoints. A commit is put only where there is none. An operation that loses against another writer is
told and given up.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.chaos.events import Events
from bench.chaos.objects import Objects
from bench.chaos.replay import Replay, json_lines
from bench.chaos.start import checkpoint_files, commit_body, new_rows, vector_actions
from bench.chaos.world import HOUR_COLUMN, TableSpec, World, load_world
from tests.support.checkpoint_writer import KINDS, CheckpointPlan

CHECKPOINT_AGE_SECONDS = 15.0  # a checkpoint so old may take the place of the log below it
PAUSE_SECONDS = 0.8
_LOG_NAME = re.compile(r"^_delta_log/(\d{20})\.(json|crc|checkpoint\..*)$")
_CHECKPOINT = re.compile(r"^_delta_log/(\d{20})\.checkpoint\.(?:parquet|[0-9a-f-]{36}\.(?:json|parquet))$")


def main(world_path: str, name: str, seed: str, events_path: str) -> None:
    """Until the process is ended."""
    world = load_world(world_path)
    writer = Writer(world, world.table(name), random.Random(seed))
    events = Events(Path(events_path))
    operations = [operation for operation, weight in writer.operations().items() for _ in range(weight)]
    dice = random.Random(seed)
    while True:
        operation = dice.choice(operations)
        told = {"writer": name, "op": operation.__name__}
        started = time.perf_counter()
        try:
            outcome = operation() or "ok"
        except Exception as trouble:  # noqa: BLE001 - another writer was first, or the files are gone
            outcome = type(trouble).__name__
            told["why"] = str(trouble)[:300]
        events.tell(**told, outcome=outcome, ms=round((time.perf_counter() - started) * 1000))
        time.sleep(dice.expovariate(1 / PAUSE_SECONDS))


class Writer:
    """One process's operations on one table."""

    def __init__(self, world: World, spec: TableSpec, dice: random.Random) -> None:
        self._world, self._spec, self._dice = world, spec, dice
        self._objects = Objects(spec)
        self._replay = Replay(spec.kept)

    def operations(self) -> dict[Callable[[], str | None], int]:
        """What it does, and how often."""
        return {
            self.append: 8,
            self.delete_by_vectors: 8,
            self.delete: 2,
            self.update: 2,
            self.merge: 2,
            self.overwrite_hour: 2,
            self.optimize: 2,
            self.checkpoint: 1,
            self.checkpoint_by_hand: 1,
            self.clean_log: 1,
            self.clean_log_by_hand: 1,
            self.vacuum: 1,
        }

    def append(self) -> None:
        """A few files in the newest hours."""
        hours = {self._world.hour(self._dice.choice([0, 0, 0, 1, 30])) for _ in range(2)}
        with self._spec.locked(alone=False):
            write_deltalake(
                self._spec.rs_url, self._rows(hours), mode="append", storage_options=self._spec.rs_options
            )

    def delete(self) -> None:
        """Some rows of an hour; delta-rs writes its files anew."""
        with self._spec.locked(alone=False):
            self._table().delete(f"{HOUR_COLUMN} = '{self._hour()}' and id % 5 = {self._dice.randrange(5)}")

    def update(self) -> None:
        """Some values of an hour."""
        with self._spec.locked(alone=False):
            self._table().update(
                predicate=f"{HOUR_COLUMN} = '{self._hour()}' and id % 3 = {self._dice.randrange(3)}",
                updates={"value": "value + 0.25"},
            )

    def merge(self) -> None:
        """Rows of an hour changed, and new ones."""
        hour = self._hour()
        with self._spec.locked(alone=False):
            source = self._rows({hour})
            same = f"t.{HOUR_COLUMN} = '{hour}' and t.id = s.id"
            merger = self._table().merge(source, same, source_alias="s", target_alias="t")
            merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def overwrite_hour(self) -> None:
        """Everything of an hour is replaced."""
        hour = self._hour()
        with self._spec.locked(alone=False):
            write_deltalake(
                self._spec.rs_url,
                self._rows({hour}),
                mode="overwrite",
                predicate=f"{HOUR_COLUMN} = '{hour}'",
                storage_options=self._spec.rs_options,
            )

    def optimize(self) -> None:
        """Few large files of an hour's small ones."""
        with self._spec.locked(alone=False):
            self._table().optimize.compact(partition_filters=[(HOUR_COLUMN, "=", self._hour())])

    def checkpoint(self) -> None:
        """A classic one."""
        with self._spec.locked(alone=False):
            self._table().create_checkpoint()

    def clean_log(self) -> None:
        """What is past the retention."""
        with self._spec.locked(alone=False):
            self._table().cleanup_metadata()

    def vacuum(self) -> None:
        """Every file that the newest version has not, once everything is kept and nobody writes."""
        with self._spec.locked(alone=True):
            table = self._table()
            if self._replay.wait_for(table.version()):
                table.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def delete_by_vectors(self) -> str | None:
        """Rows of some files anywhere in the table."""
        with self._spec.locked(alone=False):
            newest = self._follow()
            live = self._replay.live
            plain = [add for _, add in live.items() if not add.get("deletionVector") and _is_of_start(add)]
            if not plain:
                return "nothing left"
            files = self._dice.sample(plain, min(len(plain), self._dice.randint(1, 30)))
            with tempfile.TemporaryDirectory() as folder:
                lines = vector_actions(Path(folder), files, self._dice)
                for path in Path(folder).rglob("*.bin"):
                    self._objects.put(str(path.relative_to(folder)), path.read_bytes())
            body = commit_body(lines)
            is_first = self._objects.put_new(f"_delta_log/{newest + 1:020}.json", body)
            return None if is_first else "lost the race"

    def checkpoint_by_hand(self) -> None:
        """Of any kind; the hint comes last."""
        with self._spec.locked(alone=False), tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "_delta_log"
            log.mkdir()
            newest = self._follow()
            plan = CheckpointPlan(
                version=newest,
                kind=self._dice.choice(KINDS[:4]),
                stats=self._dice.choice(["json", "both"]),
                row_group_rows=self._dice.choice([1000, 5000, 1_000_000]),
                name_salt=str(self._dice.random()),
            )
            hint = checkpoint_files(log, self._replay, plan)
            written = sorted(path for path in log.rglob("*") if path.is_file())
            for path in sorted(written, key=lambda path: path.parent.name != "_sidecars"):
                self._objects.put(str(path.relative_to(folder)), path.read_bytes())
            self._objects.put("_delta_log/_last_checkpoint", json.dumps(hint).encode())

    def clean_log_by_hand(self) -> str:
        """The log below a checkpoint that has been there for a while, oldest first."""
        listed = self._objects.listing("_delta_log")
        old = time.time() - CHECKPOINT_AGE_SECONDS
        floors = [
            int(match[1]) for name in listed if (match := _CHECKPOINT.match(name)) and listed[name] < old
        ]
        if len(floors) < 2:
            return "nothing old"
        floor = max(floors)
        doomed = [name for name in sorted(listed) if (at := _LOG_NAME.match(name)) and int(at[1]) < floor]
        self._objects.delete(doomed)
        return "ok"

    def _follow(self) -> int:
        """The newest version, read from the store where it is not kept yet."""
        newest = self._replay.newest()
        while (body := self._objects.get(f"_delta_log/{newest + 1:020}.json")) is not None:
            self._replay.apply(json_lines(body))
            newest += 1
        return newest

    def _table(self) -> DeltaTable:
        return DeltaTable(self._spec.rs_url, storage_options=self._spec.rs_options)

    def _hour(self) -> str:
        return self._world.hour(self._dice.choice([0, 1, 1, 2, 3, 5, 8, 40, 200]))

    def _rows(self, hours: set[str]) -> pa.Table:
        tables = []
        for hour in sorted(hours):
            rows = new_rows(self._dice.randint(3, 60), self._dice, hour)
            tables.append(rows.append_column(HOUR_COLUMN, pa.array([hour] * rows.num_rows, pa.string())))
        return pa.concat_tables(tables)


def _is_of_start(add: dict[str, object]) -> bool:
    """Their number of rows is known."""
    return str(add["path"]).endswith("-start.parquet")


if __name__ == "__main__":
    main(*sys.argv[1:])
