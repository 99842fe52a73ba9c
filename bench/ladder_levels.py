"""The levels of the ladder: what each switches on, what the seeds promise of it, how a table is opened at it.

Contract: a level is the real code with what lies above it switched off, by the reader's own switches. L0 is
another reader and is not opened here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lazydelta import limits
from lazydelta.log import open_snapshot
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarAwareProvider, SidecarReading
from lazydelta.sidecar.format.memory import TakenOnce
from lazydelta.sidecar.format.names import sidecar_folder
from lazydelta.storage import open_storage
from lazydelta.table import Table
from lazydelta.table import open as open_table

Column = Literal["memory", "first", "complete", "take"]


class Seeds(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the seeds' table (ten million files, the last hour): its words, and MB and seconds."""

    memory: str
    first: str
    complete: str
    memory_mb: float | None
    first_s: float | None
    complete_s: float | None


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One rung. `claims` are the columns whose figure the seeds' row betters."""

    name: str
    title: str
    about: str
    seeds: Seeds
    claims: tuple[Column, ...] = ()
    commit_parallelism: int = 1
    has_sidecar: bool = False
    uses_manifest: bool = False
    projects: bool = False
    prunes: bool = False
    stops_early: bool = False
    has_cache: bool = False
    max_staleness_s: float = 0.0

    @property
    def tier(self) -> str | None:
        """The sidecar's tier that must serve at this level."""
        if not self.has_sidecar:
            return None
        return "manifest" if self.uses_manifest else "footers"


def _seeds(memory: str, first: str, complete: str, *figures: float | None) -> Seeds:
    memory_mb, first_s, complete_s = figures
    return Seeds(
        memory=memory,
        first=first,
        complete=complete,
        memory_mb=memory_mb,
        first_s=first_s,
        complete_s=complete_s,
    )


_PARALLEL = limits.COMMIT_PARALLELISM
L0 = Level(
    name="L0",
    title="eager",
    about="delta-rs loads the whole table, then lists",
    seeds=_seeds("10-50 GB", "60+ s", "60+ s", None, None, None),
)
L1 = Level(
    name="L1",
    title="+ lazy iterator",
    about="the checkpoint as a stream; commits one after the other",
    seeds=_seeds("~150 MB", "~5 s", "~60 s", 150, 5, 60),
    claims=("memory", "first"),
)
L2 = msgspec.structs.replace(
    L1,
    name="L2",
    title="+ parallel tail",
    about=f"{_PARALLEL} commits at once",
    seeds=_seeds("~150 MB", "~1 s", "~55 s", 150, 1, 55),
    claims=("first", "complete"),
    commit_parallelism=_PARALLEL,
)
L3 = msgspec.structs.replace(
    L2,
    name="L3",
    title="+ sidecar",
    about="typed statistics instead of the checkpoint; found by its footers, read whole",
    seeds=_seeds("~50 MB", "~500 ms", "~30 s", 50, 0.5, 30),
    claims=("memory", "first", "complete"),
    has_sidecar=True,
)
L4 = msgspec.structs.replace(
    L3,
    name="L4",
    title="+ manifest",
    about="fetched beside the listing; no footers to find the parts",
    seeds=_seeds("~50 MB", "~200 ms", "~30 s", 50, 0.2, 30),
    claims=("first",),
    uses_manifest=True,
)
L5 = msgspec.structs.replace(
    L4,
    name="L5",
    title="+ projection",
    about="only the columns that the query needs",
    seeds=_seeds("~20 MB", "~200 ms", "~20 s", 20, 0.2, 20),
    claims=("memory", "complete"),
    projects=True,
)
L6 = msgspec.structs.replace(
    L5,
    name="L6",
    title="+ pruning",
    about="only the row groups that may match",
    seeds=_seeds("~5 MB", "~200 ms", "~1 s", 5, 0.2, 1),
    claims=("memory", "complete"),
    prunes=True,
)
L7 = msgspec.structs.replace(
    L6,
    name="L7",
    title="+ early stop",
    about="a limit ends the reading",
    seeds=_seeds("~5 MB", "~200 ms", "~200 ms (`take 100`)", 5, 0.2, 0.2),
    claims=("take",),
    stops_early=True,
)
L8 = msgspec.structs.replace(
    L7,
    name="L8",
    title="+ cache",
    about="the second query of a process",
    seeds=_seeds("(not told)", "~1 ms", "~1 ms", None, 0.001, 0.001),
    claims=("first", "complete"),
    has_cache=True,
)
L8_STALE = msgspec.structs.replace(
    L8,
    name="L8s",
    title="+ max_staleness",
    about="the same, content with a listing of a minute ago",
    claims=(),
    max_staleness_s=60.0,
)
LEVELS = (L0, L1, L2, L3, L4, L5, L6, L7, L8, L8_STALE)


def level_named(name: str) -> Level:
    """The level of that name."""
    return next(level for level in LEVELS if level.name == name)


def level_settings(level: Level, storage_options: dict[str, str]) -> Settings:
    """The settings a user would give."""
    return Settings(
        storage_options=storage_options,
        commit_read_parallelism=level.commit_parallelism,
        sidecar_enabled=level.has_sidecar,
        cache_bytes=limits.CACHE_BYTES if level.has_cache else 0,
        max_staleness_seconds=level.max_staleness_s,
    )


def open_at(level: Level, url: str, storage_options: dict[str, str]) -> Table:
    """The table as this level opens it: by `open`, unless a switch is off that users do not have."""
    assert level is not L0, "L0 is another reader"
    settings = level_settings(level, storage_options)
    if level.prunes or not level.has_sidecar:
        return open_table(url, settings=settings)
    reading = SidecarReading(
        is_enabled=level.has_sidecar,
        folder=sidecar_folder(settings.sidecar_directory),
        uses_manifest=level.uses_manifest,
        projects_columns=level.projects,
        prunes=level.prunes,
    )
    storage = open_storage(url, settings)
    opening = storage.scoped()  # as `open` does it: an account of its own
    sidecar = SidecarAwareProvider(opening, reading, TakenOnce())
    parallelism = settings.commit_read_parallelism
    snapshot = open_snapshot(opening, version=None, parallelism=parallelism, companion=sidecar)
    return Table(msgspec.structs.replace(snapshot, storage=storage), settings, sidecar)
