"""Tables whose log is cleaned up in the middle of a scan, in memory.

Why: what a cleanup does to a scan depends on the moment; in memory a thousand moments take seconds.
Contract: `History` is one table with everything that its log ever had: commits, checksums and a checkpoint of
each version. `is_told` says, slowly, whether the log at hand still tells a version.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from random import Random

from fuzz.memory_storage import MemoryStorage

from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, inline_dv, remove, stats
from tests.support.checkpoint_writer import KINDS
from tests.support.keys import Action, FileKey
from tests.support.table_builder import TableBuilder

Files = dict[str, bytes]
_LOG = "_delta_log"
_COMMIT = re.compile(rf"^{_LOG}/(\d{{20}})\.json$")


class History:
    """A table whose files come, go, come again and change their deletion vectors."""

    def __init__(self, folder: Path, seed: int) -> None:
        dice = Random(seed)
        table = TableBuilder(folder, schema={"count": "long", "date": "date"})
        for _ in range(dice.randint(6, 14)):
            _random_commit(table, dice)
        for version in range(table.version + 1):
            table.crc(version)
        self.newest = table.version
        self.live: list[set[FileKey]] = [table.live(version) for version in range(self.newest + 1)]
        files = _read(folder)
        self.commits = {int(match[1]): name for name in files if (match := _COMMIT.match(name))}
        self.files = dict(files)
        self.checkpoints: list[list[str]] = []
        for version in range(self.newest + 1):
            table.checkpoint(
                dice.choice(KINDS),
                version=version,
                hint=False,
                stats="none",
                row_group_rows=dice.choice([1, 2, 100]),
            )
            written = {name: body for name, body in _read(folder).items() if name not in self.files}
            self.checkpoints.append(sorted(written))
            self.files |= written

    def at(self, version: int, floor: int, *, has_crc: bool, has_sidecar: bool) -> Files:
        """The log of a version whose checkpoint is `floor` (-1: none), as it is before any cleanup."""
        names = [self.commits[at] for at in range(version + 1)]
        if floor >= 0:
            names += self.checkpoints[floor]
        if has_crc:
            names.append(f"{_LOG}/{version:020}.crc")
        files = {name: self.files[name] for name in names}
        return files | self._sidecar(floor) if has_sidecar and floor >= 0 else files

    def clean_up(self, files: Files, checkpoint: int, dice: Random) -> None:
        """Go on to the version after, put its checkpoint, take what is older: all, or all but a few."""
        for version in range(min(checkpoint + 2, self.newest + 1)):
            if version >= max(self._commits_in(files), default=0):
                files[self.commits[version]] = self.files[self.commits[version]]
        for name in self.checkpoints[checkpoint]:
            files[name] = self.files[name]
        keeps, takes_checkpoints = dice.choice([0.0, 0.0, 0.4]), dice.random() < 0.5
        for version in range(checkpoint):
            if dice.random() >= keeps:
                files.pop(self.commits[version], None)
            for name in self.checkpoints[version] if takes_checkpoints else ():
                files.pop(name, None)

    def is_told(self, files: Files, version: int) -> bool:
        """Whether some checkpoint at or below the version, or none, has every commit after it."""
        there = self._commits_in(files)
        whole = [at for at, names in enumerate(self.checkpoints) if all(name in files for name in names)]
        return any(
            all(commit in there for commit in range(floor + 1, version + 1))
            for floor in (-1, *whole)
            if floor <= version
        )

    @cache  # noqa: B019 - there are a dozen histories, and they live as long as the test
    def _sidecar(self, floor: int) -> Files:
        """That of a checkpoint."""
        known = MemoryStorage(self.at(floor, floor, has_crc=False, has_sidecar=False))
        before = set(known.files)
        build_sidecar(known, config=SidecarConfig(row_group_rows=2, row_groups_max=2))
        return {name: body for name, body in known.files.items() if name not in before}

    def _commits_in(self, files: Files) -> set[int]:
        return {version for version, name in self.commits.items() if name in files}


def _random_commit(table: TableBuilder, dice: Random) -> None:
    """Each file once: it comes, goes, comes again as it is, or changes its deletion vector."""
    live = dict(table.states[-1].live) if table.states else {}
    adds, removes = [], []
    for number in dice.sample(range(9), dice.randint(1, 4)):
        known = [body for (path, _), body in live.items() if path == _path(number)]
        vector = known[0].get("deletionVector") if known else None
        kind = dice.random()
        if not known:
            adds.append(_added(number, None))
        elif kind < 0.4:
            removes.append(_removed(number, vector))
        elif kind < 0.6:
            adds.append(_added(number, vector))
        elif vector is None:
            removes.append(_removed(number, None))
            adds.append(_added(number, inline_dv()))
        else:
            removes.append(_removed(number, vector))
            adds.append(_added(number, None))
    table.commit(adds, removes)


def _path(number: int) -> str:
    return f"part-{number:05}.parquet"


def _added(number: int, vector: Action | None) -> Action:
    told = stats(10, low={"count": number}, high={"count": number + 9})
    day = {"date": f"2026-02-{1 + number % 4:02}"}
    return add(_path(number), partition=day, stats=told, deletion_vector=vector)


def _removed(number: int, vector: Action | None) -> Action:
    return remove(_path(number), deletion_vector=vector)


def _read(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
