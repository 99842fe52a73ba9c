"""Keeps every commit, data file and deletion vector as it appears: `… bench.chaos.keeper WORLD TABLE`.

Why: log cleanup and vacuum take away what an old version would be checked by.
Contract: a commit is put aside after the files that it adds, whole, under its own name; so whoever sees
commit N there finds everything up to N. A data file that went before it was seen is told in `missing.txt`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from urllib.parse import unquote

from bench.chaos.objects import Objects
from bench.chaos.replay import commit_path, json_lines
from bench.chaos.vectors import vector_file
from bench.chaos.world import TableSpec, load_world
from tests.support.keys import Action

POLL_SECONDS = 0.1


def main(world_path: str, name: str) -> None:
    """Until the process is ended."""
    keeper = Keeper(load_world(world_path).table(name))
    while True:
        if not keeper.keep():
            time.sleep(POLL_SECONDS)


class Keeper:
    """One table's."""

    def __init__(self, spec: TableSpec) -> None:
        self._objects = Objects(spec)
        self._kept = spec.kept
        self._log = spec.kept / "_delta_log"
        self._next = len(list(self._log.glob("*.json")))

    def keep(self) -> int:
        """Whatever came since the last time; how many commits that was."""
        before = self._next
        while (body := self._objects.get(f"_delta_log/{self._next:020}.json")) is not None:
            for line in json_lines(body):
                if line.get("add"):
                    self._keep_files(line["add"])
            self._put(f"_delta_log/{self._next:020}.json", body)
            assert commit_path(self._log, self._next).exists()
            self._next += 1
        return self._next - before

    def _keep_files(self, add: Action) -> None:
        names = [unquote(add["path"])]
        vector = add.get("deletionVector")
        if vector and vector["storageType"] == "u":
            names.append(vector_file(vector))
        for name in names:
            if not (self._kept / name).exists() and not self._keep_one(name):
                with (self._kept / "missing.txt").open("a") as missing:
                    missing.write(f"{self._next} {name}\n")

    def _keep_one(self, name: str) -> bool:
        folder = self._objects.folder
        if folder is not None:
            (self._kept / name).parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(folder / name, self._kept / name)
            except FileNotFoundError:
                return False
            return True
        body = self._objects.get(name)
        if body is not None:
            self._put(name, body)
        return body is not None

    def _put(self, name: str, body: bytes) -> None:
        path = self._kept / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(f"{path}.tmp")
        beside.write_bytes(body)
        beside.replace(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
