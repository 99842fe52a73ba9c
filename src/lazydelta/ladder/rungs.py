"""The rungs: which question is asked of the table, with what switched off, and what came of it.

Contract: plain data, as it goes to and from the process that runs a rung.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

TAKEN = 100  # files or rows of the rungs that stop early


class RungName(StrEnum):
    """In the order in which they are climbed."""

    OPEN = "open"
    FIRST_FILE = "first file"
    FILES = "100 files"
    ROWS = "100 rows"
    FILTER_CHECKPOINT = "filter, no sidecar"
    FILTER_SIDECAR = "filter, sidecar"
    FILTER_AGAIN = "filter, again"
    EVERY_FILE = "every file"


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One question."""

    name: RungName
    about: str
    gives: str  # files or rows
    limit: int | None = None
    has_filter: bool = False
    uses_sidecar: bool = True
    is_again: bool = False  # the second query of its process: what the cache keeps serves it


RUNGS = (
    Rung(name=RungName.OPEN, about="version, schema and features, no file", gives="files", limit=0),
    Rung(name=RungName.FIRST_FILE, about="the newest file", gives="files", limit=1),
    Rung(name=RungName.FILES, about="the newest 100 files", gives="files", limit=TAKEN),
    Rung(name=RungName.ROWS, about="100 rows of the newest files", gives="rows", limit=TAKEN),
    Rung(
        name=RungName.FILTER_CHECKPOINT,
        about="files that may match, out of the checkpoint",
        gives="files",
        has_filter=True,
        uses_sidecar=False,
    ),
    Rung(
        name=RungName.FILTER_SIDECAR,
        about="the same through the sidecar, where there is one",
        gives="files",
        has_filter=True,
    ),
    Rung(
        name=RungName.FILTER_AGAIN,
        about="the same query once more in its process, from the cache",
        gives="files",
        has_filter=True,
        is_again=True,
    ),
    Rung(
        name=RungName.EVERY_FILE, about="the whole list of files, as far as the time reaches", gives="files"
    ),
)


class RungRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the process of a rung is told, on its stdin: storage options may be secrets."""

    rung: Rung
    url: str
    storage_options: dict[str, str]
    version: int | None
    where: str | None
    seconds: float


class RungRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a rung. Times are from before the table is opened, imports done."""

    first_ms: float | None  # to the first file or row; of `open` to the open table
    total_ms: float
    count: int  # files or rows
    is_cut: bool  # the time was up before the end
    requests: int
    bytes_read: int
    round_trips: int
    peak_bytes: int | None  # of memory over the imported process; None where the system does not tell
    source: str  # of the files below the tail
    error: str | None = None  # why there is none


class RungResult(msgspec.Struct, frozen=True, kw_only=True):
    """A rung over all its rounds; figures are of the round in the middle by its total time."""

    name: RungName
    about: str
    where: str | None
    rounds: int
    run: RungRun | None
    total_ms_min: float | None = None
    total_ms_max: float | None = None
    skipped: str | None = None  # why it was not run
    failed: str | None = None  # the error of its last round, where the rounds before were measured


class LadderReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole ladder."""

    table: str
    version: int
    where: str | None
    where_from: str  # the caller, or how the newest period was found
    files_known: int | None
    seconds: float
    is_time_up: bool
    rungs: tuple[RungResult, ...]
