"""Simulated tables as a bucket: what is small lies in folders, parts are made when they are asked for.

Contract: a few parts are kept in memory, the one used last at the end; a listing tells of all of them.
"""

from __future__ import annotations

import heapq
import io
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from bench.bucket import FolderBucket, StoredObject
from bench.scale.simulated import SimulatedTable
from bench.spec import TODAY_US

_KEPT = 8  # parts


class SimulatedBucket:
    """Tables by the names of their folders below one root."""

    def __init__(self, root: Path, tables: Sequence[SimulatedTable]) -> None:
        self._folder = FolderBucket(root)
        self._parts = {
            f"{table.folder.name}/{table.part_name(number)}": (table, number)
            for table in tables
            for number in table.parts_to_make
        }
        self._names = sorted(self._parts)
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def after(self, prefix: str, name: str) -> Iterator[StoredObject]:
        """As `Bucket`."""
        parts = (self._told(part) for part in self._names if part.startswith(prefix) and part > name)
        below = prefix.rpartition("/")[0]
        here = (part for part in parts if part.name.rpartition("/")[0] == below)
        yield from heapq.merge(self._folder.after(prefix, name), here, key=lambda told: told.name)

    def opened(self, name: str) -> tuple[StoredObject, BinaryIO]:
        """As `Bucket`."""
        if name not in self._parts:
            return self._folder.opened(name)
        return self._told(name), io.BytesIO(self._body(name))

    def put(self, name: str, body: bytes) -> bool:
        """As `Bucket`."""
        return name not in self._parts and self._folder.put(name, body)

    def _told(self, name: str) -> StoredObject:
        table, _ = self._parts[name]
        return StoredObject(
            name=name,
            size=table.made_size,
            etag=f"made-{zlib.crc32(name.encode()):x}",
            modified_s=TODAY_US / 1e6,
        )

    def _body(self, name: str) -> bytes:
        with self._lock:  # two requests for one part make it once
            if name not in self._bodies:
                table, number = self._parts[name]
                self._bodies[name] = table.part_body(number)
                if len(self._bodies) > _KEPT:
                    self._bodies.popitem(last=False)
            self._bodies.move_to_end(name)
            return self._bodies[name]
