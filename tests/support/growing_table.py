"""A table that grows as telemetry tables do: new hours, late files, re-adds, OPTIMIZE, vectors, new columns.

Contract: everything comes from one `Random`, so that hypothesis can shrink it; the log is legal, and what is
live is known to the `TableBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support import actions
from tests.support.actions import add, inline_dv, relative_dv, remove
from tests.support.checkpoint_writer import KINDS
from tests.support.keys import Action
from tests.support.table_builder import TableBuilder

_SCHEMA = {"device_id": "string", "value": "double", "count": "long", "_event_hour": "string"}


def grown_in_steps(
    folder: Path, dice: Random, config: SidecarConfig, *, steps: int = 3
) -> Iterator[GrowingTable]:
    """A table after each step: commits, a checkpoint, mostly its sidecar, and commits after it."""
    growing = GrowingTable(folder, dice)
    for _ in range(steps):
        growing.grow(dice.randint(0, 4))
        growing.checkpoint()
        if dice.random() < 0.8:
            storage = open_storage(str(folder), Settings())
            build_sidecar(storage, config=config, full=dice.random() < 0.3)
        growing.grow(dice.randint(0, 3))
        yield growing


class GrowingTable:
    """Commits of every kind, and checkpoints of every kind between them."""

    def __init__(self, folder: Path, dice: Random) -> None:
        self._dice = dice
        self.table = TableBuilder(folder, schema=_SCHEMA, partition_columns=("_event_hour",))
        self._columns = dict(_SCHEMA)
        self._hour = 0
        self._files = 0
        self.table.commit([self._new_file() for _ in range(dice.randint(0, 40))])

    @property
    def path(self) -> Path:
        return self.table.path

    @property
    def version(self) -> int:
        return self.table.version

    def grow(self, commits: int) -> None:
        """So many commits, mostly appends."""
        kinds: list[Callable[[], None]] = [self._append] * 4
        kinds += [self._late, self._delete, self._add_again, self._optimize, self._vector, self._evolve]
        for _ in range(commits):
            self._dice.choice(kinds)()

    def checkpoint(self) -> None:
        """A checkpoint of the newest version."""
        self.table.checkpoint(
            self._dice.choice(KINDS),
            stats=self._dice.choice(["json", "parsed", "both"]),
            row_group_rows=self._dice.choice([3, 1000]),
            sidecars=self._dice.choice([0, 1, 3]),
        )

    def _append(self) -> None:
        self._hour += self._dice.randint(0, 1)
        self.table.commit([self._new_file() for _ in range(self._dice.randint(0, 9))])

    def _late(self) -> None:
        self.table.commit([self._new_file(hour=self._dice.randint(0, self._hour)) for _ in range(3)])

    def _delete(self) -> None:
        self.table.commit([], [self._gone(action) for action in self._some(4)])

    def _add_again(self) -> None:
        """The same key with other statistics, without a remove; now and then under another hour."""
        again = []
        for action in self._some(3):
            hour = action["partitionValues"]["_event_hour"]
            if self._dice.random() < 0.1:
                hour = _hour_text(self._dice.randint(0, self._hour))
            again.append(
                action | {"stats": self._stats(), "partitionValues": {"_event_hour": hour}, "size": 7}
            )
        self.table.commit(again)

    def _optimize(self) -> None:
        """Every file of one hour becomes one file."""
        hour = _hour_text(self._dice.randint(0, self._hour))
        old = [a for a in self._live() if a["partitionValues"]["_event_hour"] == hour]
        self.table.commit([self._new_file(hour=int(hour))] if old else [], [self._gone(a) for a in old])

    def _vector(self) -> None:
        """Rows of some files are deleted: the old key goes, the new one comes, in one commit."""
        adds, removes = [], []
        for action in self._some(2):
            removes.append(self._gone(action))
            vectors = [inline_dv(), relative_dv(offset=self._files), relative_dv(offset=None)]
            fresh = [vector for vector in vectors if vector != action.get("deletionVector")]
            adds.append(action | {"deletionVector": self._dice.choice(fresh)})
        self.table.commit(adds, removes)

    def _evolve(self) -> None:
        """A new column, with statistics from now on."""
        self._columns[f"extra_{len(self._columns)}"] = self._dice.choice(["long", "string"])
        metadata = actions.metadata(self._columns, partition_columns=("_event_hour",))
        self.table.commit([self._new_file()], metadata=metadata)

    def _new_file(self, hour: int | None = None) -> Action:
        self._files += 1
        at = _hour_text(self._hour if hour is None else hour)
        return add(
            f"_event_hour={at}/part-{self._files:05}.parquet",
            partition={"_event_hour": at},
            stats=self._stats(),
            size=self._dice.randint(1, 10_000),
        )

    def _stats(self) -> dict[str, Any] | None:
        if self._dice.random() < 0.1:
            return None
        low: dict[str, Any] = {"value": self._dice.choice([-1.5, 0.0, 2.25]), "device_id": "d1"}
        high: dict[str, Any] = {"value": 7.5, "device_id": "d9"}
        for name, kind in self._columns.items():
            if name.startswith("extra_"):
                low[name], high[name] = (1, 5) if kind == "long" else ("a", "z")
        return actions.stats(10, low=low, high=high, nulls={"value": 0, "count": self._dice.randint(0, 10)})

    def _gone(self, action: Action) -> Action:
        """A remove; some writers leave the partition values out."""
        extra: dict[str, Any] = {}
        if self._dice.random() < 0.8:
            extra["partitionValues"] = action["partitionValues"]
        return remove(action["path"], deletion_vector=action.get("deletionVector"), **extra)

    def _live(self) -> list[Action]:
        return list(self.table.states[-1].live.values())

    def _some(self, count: int) -> list[Action]:
        live = self._live()
        return self._dice.sample(live, min(count, len(live)))


def _hour_text(hour: int) -> str:
    return f"{hour:010}"
