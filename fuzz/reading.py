"""Tables in memory, opened and read as users do, without cache and without a disk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fuzz.memory_storage import MemoryStorage
from lazydelta.log import open_snapshot
from lazydelta.protocol.names import LOG_FOLDER
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarAwareProvider, SidecarReading
from lazydelta.sidecar.format.memory import TakenOnce
from lazydelta.table import Table

Keys = list[tuple[str, str | None]]
ALL = 1_000_000  # more than there are; with a limit no thread reads ahead
_SETTINGS = Settings(cache_bytes=0, commit_read_parallelism=2)


class WrongAnswerError(AssertionError):
    """The reader gave an answer that contradicts what is known."""


def opened(files: dict[str, bytes], *, has_sidecar: bool = False) -> Table:
    """The newest version of the table that these files are."""
    storage = MemoryStorage(files)
    if not has_sidecar:
        return Table(open_snapshot(storage.scoped(), parallelism=2), _SETTINGS)
    reading = SidecarReading(is_enabled=True, folder=f"{LOG_FOLDER}/_lazy", row_groups_per_batch=2)
    sidecar = SidecarAwareProvider(storage.scoped(), reading, TakenOnce())
    snapshot = open_snapshot(storage.scoped(), parallelism=2, companion=sidecar)
    sidecar.opened(snapshot.state.metadata)
    return Table(snapshot, _SETTINGS, sidecar)


def live(table: Table, where: Any = None, *, may_repeat: bool = False, **scan: Any) -> Keys:
    """The live files by key, each once.

    `may_repeat`: a checkpoint or a forged sidecar in which a path was changed into another one names a file
    twice. Who reads it in bounded memory cannot tell.
    """
    found = [(file.path, file.dv_id) for file in table.scan(where, **scan).files()]
    if len(set(found)) != len(found) and not may_repeat:
        raise WrongAnswerError(f"a file came twice: {found}")
    return sorted(found, key=str)


def expect_equal(found: object, expected: object) -> None:
    """A wrong answer is worse than none."""
    if found != expected:
        raise WrongAnswerError(f"{str(found)[:2000]} instead of {str(expected)[:2000]}")


def names_like(files: Iterable[str], *words: str) -> list[str]:
    """The names that have all the words in them."""
    return sorted(name for name in files if all(word in name for word in words))
