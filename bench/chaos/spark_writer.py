"""Delta on Spark as a writer: `python -m bench.chaos.spark_writer WORLD SEED EVENTS`. May be killed anywhere.

Contract: rows are appended, deleted by deletion vectors, updated, merged and overwritten; hours are
compacted; checkpoints are classic and V2 in turn; VACUUM keeps nothing that the newest version has not.
Each holds its table alone: Spark's commits on these stores are renames, which would replace another
writer's.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.chaos.events import Events
from bench.chaos.replay import Replay
from bench.chaos.world import HOUR_COLUMN, TableSpec, World, load_world
from lazydelta.spark.session import plan_launch, start
from tests.support.spark import environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUSE_SECONDS = 1.0
_COLUMNS = ("id", "value", "label", "ts", HOUR_COLUMN)


def main(world_path: str, seed: str, events_path: str) -> None:
    """Until the process is ended."""
    world, dice, events = load_world(world_path), random.Random(seed), Events(Path(events_path))
    spark = start(plan_launch(world.spark_settings, environment()))
    events.tell(writer="spark", op="spark start", outcome="ok", ms=0)
    tables = [SparkTable(spark, world, spec, dice) for spec in world.tables if spec.spark_url is not None]
    while True:
        table = dice.choice(tables)
        operation = dice.choices(*table.operations())[0]
        told = {"writer": table.spec.name, "op": f"spark {operation.__name__}"}
        started = time.perf_counter()
        outcome = "ok"
        try:
            with table.spec.locked(alone=True):
                operation()
        except Exception as trouble:  # noqa: BLE001 - Spark's own trouble is no answer of lazydelta's
            outcome, told["why"] = type(trouble).__name__, str(trouble)[:300]
        events.tell(**told, outcome=outcome, ms=round((time.perf_counter() - started) * 1000))
        time.sleep(dice.expovariate(1 / PAUSE_SECONDS))


class SparkTable:
    """The operations on one table."""

    def __init__(self, spark: SparkSession, world: World, spec: TableSpec, dice: random.Random) -> None:
        self.spec = spec
        self._spark, self._world, self._dice = spark, world, dice
        self._replay = Replay(spec.kept)
        self._name = f"delta.`{spec.spark_url}`"

    def operations(self) -> tuple[list[Callable[[], None]], list[int]]:
        """What it does, and how often."""
        weighted = {
            self.append: 4,
            self.delete: 6,
            self.update: 3,
            self.merge: 2,
            self.overwrite: 2,
            self.optimize: 2,
            self.checkpoint: 1,
            self.change_policy: 1,
            self.vacuum: 1,
        }
        return list(weighted), list(weighted.values())

    def append(self) -> None:
        """A file or two."""
        self._sql(f"insert into {self._name} {self._rows(self._world.hour(self._dice.choice([0, 0, 1])))}")

    def delete(self) -> None:
        """By deletion vectors."""
        rest = self._dice.randrange(4)
        self._sql(f"delete from {self._name} where {HOUR_COLUMN} = '{self._hour()}' and id % 4 = {rest}")

    def update(self) -> None:
        """Deletion vectors, and new files beside."""
        rest = self._dice.randrange(3)
        change = "set value = value + 0.25"
        self._sql(f"update {self._name} {change} where {HOUR_COLUMN} = '{self._hour()}' and id % 3 = {rest}")

    def merge(self) -> None:
        """Into one hour."""
        hour = self._hour()
        self._sql(
            f"merge into {self._name} t using ({self._rows(hour)}) s "
            f"on t.{HOUR_COLUMN} = '{hour}' and t.{HOUR_COLUMN} = s.{HOUR_COLUMN} and t.id % 50 = s.id % 50 "
            "when matched and t.id % 2 = 0 then delete when not matched then insert *"
        )

    def overwrite(self) -> None:
        """Everything of an hour."""
        hour = self._hour()
        rows = self._spark.sql(self._rows(hour))
        writer = rows.write.format("delta").mode("overwrite")
        writer.option("replaceWhere", f"{HOUR_COLUMN} = '{hour}'").save(str(self.spec.spark_url))

    def optimize(self) -> None:
        """An hour's files into one."""
        self._sql(f"optimize {self._name} where {HOUR_COLUMN} = '{self._hour()}'")

    def checkpoint(self) -> None:
        """By the policy that holds now; cleans the log, too."""
        jvm: Any = self._spark._jvm  # Any: objects of the JVM
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
            self._spark._jsparkSession, str(self.spec.spark_url)
        )
        log.checkpoint()

    def change_policy(self) -> None:
        """Checkpoints of the other kind from now on."""
        policy = self._dice.choice(["v2", "classic"])
        self._sql(f"alter table {self._name} set tblproperties ('delta.checkpointPolicy' = '{policy}')")

    def vacuum(self) -> None:
        """Nothing is retained; everything must have been kept before."""
        newest = int(self._spark.sql(f"describe history {self._name} limit 1").collect()[0]["version"])
        if self._replay.wait_for(newest):
            self._sql(f"vacuum {self._name} retain 0 hours")

    def _sql(self, text: str) -> None:
        self._spark.sql(text).collect()

    def _hour(self) -> str:
        return self._world.hour(self._dice.choice([0, 1, 1, 2, 3, 5, 60, 300]))

    def _rows(self, hour: str) -> str:
        first, count = self._dice.randrange(10**9), self._dice.randint(3, 60)
        moment = f"timestamp '2026-{hour[4:6]}-{hour[6:8]} {hour[8:10]}:00:00'"
        values = "id, (id % 4000) / 4.0D, if(id % 5 = 0, null, 'spark')"
        times = f"{moment} + make_interval(0, 0, 0, 0, 0, 0, id % 60), '{hour}'"
        chosen = f"select {values}, {times} from range({first}, {first + count}, 1, 1)"
        return f"select * from ({chosen}) as made({', '.join(_COLUMNS)})"


if __name__ == "__main__":
    main(*sys.argv[1:])
