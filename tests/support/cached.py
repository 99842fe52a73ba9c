"""Queries with the cache on, and what they asked of the store."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import lazydelta as ld
from tests.support.keys import FileKey
from tests.support.reading import keys

CACHED = {"delta.cache.bytes": str(64 << 20)}
LAZILY = CACHED | {"delta.cache.max_staleness_seconds": "3600"}
UNCACHED = {"delta.cache.bytes": "0"}


class Asked:
    """One query: the files that came, the report, and every request since the table was opened."""

    def __init__(
        self,
        table: Path | str,
        *,
        options: dict[str, str] | None = None,
        version: int | None = None,
        with_stats: bool = False,
        **scan: Any,
    ) -> None:
        self.table = ld.open(
            str(table), version=version, storage_options=CACHED if options is None else options
        )
        run = self.table.scan(**scan)
        self.files = list(run.files(with_stats=with_stats))
        self.report = run.explain()
        self.requests = Counter(self.table._snapshot.storage.counters.snapshot().requests_by_kind)

    @property
    def live(self) -> set[FileKey]:
        """The keys of the files, none of which came twice."""
        found = keys(self.files)
        assert len(found) == len(set(found)), f"some file came twice: {sorted(found, key=str)}"
        return set(found)


def publish(source: Path, target: Path) -> None:
    """Put what is new in one table's log into another's, each file at once, as a store does."""
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        elif not copy.exists() or copy.name == "_last_checkpoint":
            beside = target / f".{path.name}.tmp"
            shutil.copy2(path, beside)
            beside.replace(copy)
