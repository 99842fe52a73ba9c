"""What every process of a run is told: the tables, where they lie, who may touch them when.

Contract: `world.json` in the run's folder, written once by the harness. Below it each table has a folder of
its own with `kept` (every commit and data file that ever was, out of reach of cleanup and vacuum), `lock`
and, where the store is the local disk, the table itself.
Writers that put a commit only where there is none hold the lock shared. Those that rely on a rename (Spark,
on these stores) and whoever deletes data files hold it alone: they would damage the table by themselves.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

FIRST_HOUR = 2026_06_01_00
HOUR_SECONDS = 45.0  # of the run make an hour of the tables' time
HOUR_COLUMN = "_event_hour"


class TableSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One table, as each of its users addresses it."""

    name: str
    store: str  # "local", "s3" or "azurite"
    folder: str
    url: str
    options: dict[str, str]
    reader_options: dict[str, str]  # by way of the faulty proxy
    rs_url: str
    rs_options: dict[str, str]
    spark_url: str | None = None

    @property
    def kept(self) -> Path:
        """The copy that nothing is ever deleted from."""
        return Path(self.folder) / "kept"

    @property
    def start(self) -> Path:
        """The table as the run began, the same for all."""
        return Path(self.folder).parent / "start"

    @contextmanager
    def locked(self, *, alone: bool) -> Iterator[None]:
        """The table, with others that share it or without them; a killed process lets go by itself."""
        how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        with (Path(self.folder) / "lock").open("a") as lock:
            with (Path(self.folder) / "gate").open("a") as gate:
                fcntl.flock(gate, how)  # whoever waits for the table alone keeps newcomers out
                fcntl.flock(lock, how)
            yield


class World(msgspec.Struct, frozen=True, kw_only=True):
    """A run."""

    folder: str
    seed: int
    began: float  # seconds since 1970
    hours: int  # of the tables' time, when the run began
    tables: list[TableSpec]
    spark_settings: dict[str, str] = {}

    def hour(self, back: int = 0) -> str:
        """The tables' current hour, or one that many before."""
        return hour_text(self.hours - 1 + int((time.time() - self.began) / HOUR_SECONDS) - back)

    def table(self, name: str) -> TableSpec:
        """By its name."""
        return next(spec for spec in self.tables if spec.name == name)


def hour_text(number: int) -> str:
    """The hour with that number; months have thirty days here, and text sorts as numbers do."""
    months, rest = divmod(number, 720)
    return f"2026{6 + months:02}{1 + rest // 24:02}{rest % 24:02}"


def save_world(world: World) -> Path:
    """Write it where the processes look."""
    path = Path(world.folder) / "world.json"
    path.write_bytes(msgspec.json.encode(world))
    return path


def load_world(path: str | Path) -> World:
    """What was saved."""
    return msgspec.json.decode(Path(path).read_bytes(), type=World)
