"""A table with a random history, written by Delta on Spark.

Contract: everything follows from the seed. What Delta has few forms of comes by turns, so that four tables
in a row meet all of it; the rest is random. What was done is in `history`, so that a failure can be done
again by hand; what Spark refused is in `refused`, and has changed nothing. `models` has the schema of every
version that rows may be asked of.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.random_lake_changes import (
    CHANGES,
    Change,
    Situation,
    add_field,
    another_model,
    delete,
    insert,
    merge,
    rename_field,
    update,
    widen,
)
from tests.support.random_lake_model import Model, declaration, random_model
from tests.support.random_lake_types import quoted
from tests.support.spark_settings import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of a session that makes and reads random tables: expressions are compiled once for each, else.
SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.databricks.delta.typeWidening.enableForIcebergCompatible": "false",
    # That reader of Spark takes other bytes for strings inside structs, lists and maps that are written as
    # DELTA_BYTE_ARRAY (Parquet 2 without a dictionary), in rows and in checkpoints; a V2 checkpoint then has
    # a sidecar file named by a piece of its own schema, and Delta can read the table no more. The reader that
    # goes row by row reads them right.
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "false",
}
_FORMS = {
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MICROS"),
    "spark.sql.parquet.writeLegacyFormat": ("false", "false", "true"),
    "spark.sql.parquet.compression.codec": ("snappy", "zstd", "gzip", "uncompressed"),
    "parquet.block.row.count.limit": ("1000000", "3"),
    "parquet.page.row.count.limit": ("20000", "2"),
    "parquet.page.size.row.check.min": ("1",),
    "parquet.page.size.row.check.max": ("4",),
    "parquet.writer.version": ("PARQUET_1_0", "PARQUET_1_0", "PARQUET_2_0"),
    "parquet.enable.dictionary": ("true", "true", "false"),
    "spark.databricks.delta.write.utcTimestampPartitionValues": ("true", "true", "false"),
}


# Forms that have their turn, and changes that a table of that turn is sure to see.
_CHECKPOINT_POLICIES = ("classic", "v2", "v2", "classic")
_CHECKPOINT_FORMS = (
    {"checkpoint.partSize": "1000000"},
    {"checkpoint.partSize": "2", "checkpointV2.topLevelFileFormat": "json"},
    {"checkpoint.partSize": "1000000", "checkpointV2.topLevelFileFormat": "parquet"},
    {"checkpoint.partSize": "1"},
)
_SURE_CHANGES = ((widen, delete), (delete, rename_field), (add_field, widen), (merge, update))


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
        with configured(self.spark, self._forms()):
            self._change(insert, must=True)
            if self.seed % 4 == 3:  # before a change of its policy
                self._checkpoint()

    def grow(self, steps: int) -> None:
        """As many changes, with a checkpoint and a sidecar between, at times more of them."""
        changes, weights = zip(*CHANGES, strict=True)
        chosen = [*_SURE_CHANGES[self.seed % 4], *self.dice.choices(changes, weights, k=steps)][:steps]
        self.dice.shuffle(chosen)
        sure = self.dice.randrange(steps)
        for step, change in enumerate(chosen):
            with configured(self.spark, self._forms()):
                self._change(change)
                if step == sure or self.dice.random() < 0.1:
                    self._checkpoint()
            if step == sure or self.dice.random() < 0.2:
                self._sidecar()
            if self.dice.random() < 0.03:
                self._replace()

    def clone(self, folder: Path) -> RandomLake:
        """A shallow clone, in which rows are gone by deletion vectors of this table."""
        model = self.models[self.version]
        gone = f"pmod(xxhash64({quoted(model.key.name)}), 2) = 0"
        self._run(Change(f"DELETE FROM {self.table} WHERE {gone}", model), must=True)
        copy = RandomLake(self.spark, folder, self.seed + 1_000_000)
        copy._next_key = self._next_key
        copy._properties = self._properties
        statement = f"CREATE TABLE {copy.table} SHALLOW CLONE {self.table}"
        copy._run(Change(statement, model), must=True)
        copy.done["clone"] += 1
        return copy

    def _forms(self) -> dict[str, str]:
        """How the next files are written."""
        forms = {name: self.dice.choice(values) for name, values in _FORMS.items()}
        if self.seed % 2:  # peers read INT96 through nanoseconds, which end in 2262
            forms["spark.sql.parquet.outputTimestampType"] = "TIMESTAMP_MICROS"
        turn = _CHECKPOINT_FORMS[self.seed % 4]
        return forms | {f"spark.databricks.delta.{name}": value for name, value in turn.items()}

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
        jvm: Any = self.spark._jvm
        # As this session knows the log: nobody else writes it, and reading it anew takes another second.
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.spark._jsparkSession, str(self.folder))
        log.checkpoint()
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
        "delta.checkpointPolicy": _CHECKPOINT_POLICIES[turn % 4],
        "delta.checkpointInterval": dice.choice(("4", "100", "100")),
        "delta.checkpoint.writeStatsAsStruct": sometimes(0.7),
        "delta.dataSkippingNumIndexedCols": dice.choice(("-1", "3", "32")),
        "delta.randomizeFilePrefixes": sometimes(0.2),
    }
