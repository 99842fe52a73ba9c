"""A table that somebody commits to, checkpoints and cleans while others read, and what each version holds.

Why: what a reader may see depends on when it began, so the table keeps account of who is reading.
Contract: files appear whole and in the order in which a writer puts them: commits, then what a checkpoint
refers to, then the checkpoint, then the hint. The eager twin of a version is known before the version is
there. `clean_log` deletes what Delta's log cleanup may: commits and checkpoints below a checkpoint that was
there before any reader that counts began. Safe to call from several threads, one of them writing.
"""

from __future__ import annotations

import random
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.eager_twin import replay
from tests.support.growing_table import GrowingTable
from tests.support.keys import Action, FileKey

_VERSION = re.compile(r"^(\d{20})\.")
_HINT = "_last_checkpoint"


@dataclass(frozen=True)
class Began:
    """What was there when a reader began."""

    published: int
    checkpoint: int | None  # the newest; None: there was none
    gone_below: int  # the log below that version was deleted, to the last file


class TendedLake:
    """One writer's table at `path`; the whole log stays in a draft beside it."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.path = folder / "lake"
        self.twins: dict[int, dict[FileKey, Action]] = {}
        self.published = -1
        self.cleaned_below = 0  # what is below may be gone, or is going
        self._gone_below = 0
        self._checkpoints: list[int] = []
        self._draft = GrowingTable(folder / "draft", dice)
        self._aside = folder / "aside"
        self._put: set[Path] = set()
        self._lock = threading.Condition()
        self._is_closed = False
        self._reading: dict[object, Began] = {}
        self._publish()

    def commit(self) -> None:
        """One version more."""
        self._draft.grow(1)
        self._publish()

    def checkpoint(self) -> None:
        """A checkpoint of the newest version."""
        self._draft.checkpoint()
        self._publish()
        with self._lock:
            self._checkpoints.append(self.published)

    @contextmanager
    def reading(self) -> Iterator[Began]:
        """While this lasts nothing is cleaned that a reader of the newest version may have listed."""
        token = object()
        with self._lock:
            self._lock.wait_for(lambda: not self._is_closed)
            newest = self._checkpoints[-1] if self._checkpoints else None
            began = self._reading[token] = Began(self.published, newest, self._gone_below)
        try:
            yield began
        finally:
            with self._lock:
                del self._reading[token]
                self._lock.notify_all()

    @contextmanager
    def after_every_reader(self) -> Iterator[None]:
        """Once those that read now have ended, while nobody new begins: as if a day had gone by."""
        with self._lock:
            self._is_closed = True
            self._lock.wait_for(lambda: not self._reading)
        try:
            yield
        finally:
            with self._lock:
                self._is_closed = False
                self._lock.notify_all()

    def clean_log(self) -> int:
        """Delete the log below the newest checkpoint that every reader knew; returns how many files went."""
        with self._lock:
            known = {began.checkpoint for began in self._reading.values()}
            if None in known or not self._checkpoints:
                return 0
            below = min({at for at in known if at is not None} | {self._checkpoints[-1]})
            self.cleaned_below = max(self.cleaned_below, below)
        gone = 0
        for path in sorted((self.path / "_delta_log").iterdir()):
            match = _VERSION.match(path.name)
            if match is not None and int(match[1]) < below:
                path.unlink()
                gone += 1
        self._gone_below = max(self._gone_below, below)
        return gone

    def _publish(self) -> None:
        newest = self._draft.version
        for version in range(self.published + 1, newest + 1):
            self.twins[version] = replay(self._draft.path, version=version, from_checkpoint=False).live
        log = self._draft.path / "_delta_log"
        for path in sorted((path for path in log.rglob("*") if path.is_file()), key=_turn):
            if path not in self._put or path.name == _HINT:
                self._put_one(path, self.path / path.relative_to(self._draft.path))
                self._put.add(path)
        self.published = newest

    def _put_one(self, source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, self._aside)
        self._aside.replace(target)


def _turn(path: Path) -> tuple[bool, bool, bool, str]:
    """Commits first, then what checkpoints refer to, then they themselves, the hint last."""
    is_above = path.parent.name != "_sidecars"
    return path.name == _HINT, ".checkpoint." in path.name, is_above, path.name
