"""A table with a random history, written by Delta on Spark.

Contract: everything follows from the seed. What was done is in `history`, so that a failure can be done again
by hand; what Spark refused is in `refused`, and has changed nothing. `models` has the schema of every version
that rows may be asked of.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lazydelta.settings import Settings
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.random_lake_changes import CHANGES, Change, Situation, another_model, insert
from tests.support.random_lake_model import Model, declaration, random_model
from tests.support.spark import delta_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of a session that makes and reads random tables: expressions are compiled once for each, else.
SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.typeWidening.enableForIcebergCompatible": "false",
}
_FORMS = {
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MICROS"),
    "spark.sql.parquet.writeLegacyFormat": ("false", "false", "true"),
    "spark.sql.parquet.compression.codec": ("snappy", "zstd", "gzip", "uncompressed"),
    "parquet.block.size": ("134217728", "1000"),
    "parquet.page.size.row.check.min": ("1",),
    "parquet.page.size.row.check.max": ("4",),
    "parquet.block.size.row.check.min": ("2",),
    "parquet.block.size.row.check.max": ("5",),
    "parquet.writer.version": ("PARQUET_1_0", "PARQUET_1_0", "PARQUET_2_0"),
    "parquet.enable.dictionary": ("true", "true", "false"),
    "spark.databricks.delta.checkpoint.partSize": ("1000000", "3"),
    "spark.databricks.delta.checkpointV2.topLevelFileFormat": ("json", "parquet"),
    "spark.databricks.delta.write.utcTimestampPartitionValues": ("true", "true", "false"),
}


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


class RandomLake:
    """One table."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self.spark = spark
        self.folder = folder
        self.seed = seed
        self.dice = random.Random(seed)
        self.table = f"delta.`{folder}`"
        self.history: list[str] = []
        self.refused: list[str] = []
        self.done: Counter[str] = Counter()
        self.models: dict[int, Model] = {}
        self._next_key = 0
        self._properties: dict[str, str] = {}

    @property
    def version(self) -> int:
        """The newest."""
        return max(
            int(path.stem) for path in (self.folder / "_delta_log").glob("[0-9]*.json") if path.stem.isdigit()
        )

    def create(self) -> None:
        """The table with its first rows; the seed decides mapping and partitions by turns."""
        dice = self.dice
        mapping = ("none", "name", "id")[self.seed % 3]
        model = random_model(dice, mapping=mapping, partitions=(self.seed + 1) % 3, turn=self.seed)
        self._properties = _properties(dice, mapping, self.seed)
        self._run(Change(declaration(model, self.table, self._properties), model), must=True)
        self._change(insert, must=True)

    def grow(self, steps: int) -> None:
        """As many changes, with checkpoints and sidecars between."""
        changes, weights = zip(*CHANGES, strict=True)
        for _ in range(steps):
            forms = {name: self.dice.choice(values) for name, values in _FORMS.items()}
            if self.seed % 2:  # peers read INT96 through nanoseconds, which end in 2262
                forms["spark.sql.parquet.outputTimestampType"] = "TIMESTAMP_MICROS"
            with configured(self.spark, forms):
                (change,) = self.dice.choices(changes, weights)
                self._change(change)
                if self.dice.random() < 0.25:
                    self._checkpoint()
            if self.dice.random() < 0.25:
                self._sidecar()
            if self.dice.random() < 0.03:
                self._replace()

    def clone(self, folder: Path) -> RandomLake:
        """A shallow clone, with rows of its own in it."""
        copy = RandomLake(self.spark, folder, self.seed + 1_000_000)
        copy._next_key = self._next_key
        copy._properties = self._properties
        statement = f"CREATE TABLE {copy.table} SHALLOW CLONE {self.table}"
        copy._run(Change(statement, self.models[self.version]), must=True)
        copy.done["clone"] += 1
        return copy

    def _change(self, kind: object, *, must: bool = False) -> None:
        assert callable(kind)
        earlier = {version: model for version, model in self.models.items() if version}
        now = Situation(self.table, self.models[self.version], self._next_key, earlier or self.models)
        change = kind(self.dice, now)
        if change is not None and self._run(change, must=must):
            self.done[kind.__name__] += 1

    def _run(self, change: Change, *, must: bool = False) -> bool:
        before = self.version if self.models else -1
        try:
            self.spark.sql(change.statement)
        except PySparkException as refusal:
            self.refused.append(f"{change.statement}\n  {str(refusal)[:300]}")
            if must:
                raise
            return False
        self.history.append(change.statement)
        for version in range(before + 1, self.version + 1):
            self.models[version] = change.model
        self._next_key = max(self._next_key, change.next_key)
        return True

    def _checkpoint(self) -> None:
        delta_log(self.spark, self.folder).checkpoint()
        self.history.append("-- checkpoint")
        self.done["checkpoint"] += 1

    def _sidecar(self) -> None:
        """A sidecar beside the newest checkpoint, and delta files behind it, in small parts."""
        if not list((self.folder / "_delta_log").glob("*.checkpoint*")):
            return
        dice, storage = self.dice, open_storage(str(self.folder), Settings())
        config = SidecarConfig(
            row_group_rows=dice.choice((1, 3, 1000)),
            row_groups_max=dice.choice((1, 2, 64)),
            delta_commits_min=1,
        )
        build_sidecar(storage, config=config)
        if dice.random() < 0.5:
            write_delta_files(storage, config=config)
        self.history.append("-- sidecar")
        self.done["sidecar"] += 1

    def _replace(self) -> None:
        model = another_model(self.dice, self.models[self.version])
        statement = declaration(model, self.table, self._properties, "CREATE OR REPLACE")
        if self._run(Change(statement, model)):
            self._change(insert, must=True)
            self.done["replace"] += 1


def _properties(dice: random.Random, mapping: str, turn: int) -> dict[str, str]:
    """Features of a new table; those that keep peers away come by turns."""

    def sometimes(chance: float) -> str:
        return str(dice.random() < chance).lower()

    return {
        "delta.columnMapping.mode": mapping,
        "delta.enableDeletionVectors": str(turn % 4 != 3).lower(),
        "delta.enableTypeWidening": str(turn % 2 == 0).lower(),
        "delta.enableRowTracking": str(turn % 4 in (0, 1)).lower(),
        "delta.enableChangeDataFeed": sometimes(0.2),
        "delta.enableInCommitTimestamps": sometimes(0.3),
        "delta.checkpointPolicy": dice.choice(("classic", "classic", "v2")),
        "delta.checkpointInterval": dice.choice(("4", "100", "100")),
        "delta.checkpoint.writeStatsAsStruct": sometimes(0.7),
        "delta.dataSkippingNumIndexedCols": dice.choice(("-1", "3", "32")),
        "delta.randomizeFilePrefixes": sometimes(0.2),
    }
