"""The map of a table's files as it grows: the newest files first, then cells, a few times a second.

Contract: what goes to the browser is bounded by the map, not by the table: the newest files, and the cells
that changed. The map of a whole version is kept once it is whole, for who asks next.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Generator
from contextlib import closing
from typing import Any

import pyarrow as pa

from lazydelta import limits
from lazydelta.serve.calls import Call
from lazydelta.serve.command import Command
from lazydelta.serve.config import ServedTable
from lazydelta.serve.page.events import event
from lazydelta.serve.page.file_map import FileMap
from lazydelta.serve.page.requests import Question
from lazydelta.serve.page.scan_facts import scan_facts
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client

COLUMNS = ("path", "size", "modification_time")
_BETWEEN_SECONDS = 0.15  # two events
_KEPT_MAX = 16
Events = Generator[bytes, None, None]


class MapStreams:
    """Those of one server."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int], tuple[ServedTable, list[bytes]]] = OrderedDict()

    def whole(self, question: Question, version: int | None, noted: Call) -> Events:
        """All live files of a version, the newest where None is given."""
        name, client = question.table, question.client
        table = self._served.catalog.find(name, client)
        version = self._served.catalog.open(name, client, version=version).version
        known = self._kept.get((name, version))
        if known is not None and known[0] is table:
            yield from known[1]
            return
        found = FileMap()
        kept: list[bytes] = []
        with closing(self.scanned(files_command(name, version), client, found, noted)) as events:
            for told in events:
                if not told.startswith(b"event: map"):
                    kept.append(told)
                yield told
        kept.insert(-1, event("map", found.whole()))
        self._keep(table, version, kept)

    def scanned(self, command: Command, client: Client, found: FileMap, noted: Call) -> Events:
        """The files of a command, added to the map."""
        scans = self._served.scans
        planned = scans.plan(command, client)
        yield event("opened", {"version": planned.command.version})
        newest, told_at = 0, 0.0
        with closing(scans.stream(planned, client, is_limited=False)) as batches:
            for batch in batches:
                found.add(batch)
                noted.rows = found.files
                if newest < limits.PAGE_NEWEST_FILES:
                    part = batch.slice(0, limits.PAGE_NEWEST_FILES - newest)
                    newest += part.num_rows
                    yield event("newest", newest_files(part))
                if time.monotonic() >= told_at:
                    yield event("map", found.news())
                    told_at = time.monotonic() + _BETWEEN_SECONDS
        yield event("map", found.news())
        report = planned.scan.latest()
        assert report is not None
        yield event("end", scan_facts(report))

    def _keep(self, table: ServedTable, version: int, events: list[bytes]) -> None:
        with self._lock:
            self._kept[table.name, version] = (table, events)
            while len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)


def files_command(name: str, version: int, predicate: str | None = None) -> Command:
    """What the map is made of."""
    return Command(table=name, what="files", columns=list(COLUMNS), version=version, predicate=predicate)


def newest_files(batch: pa.RecordBatch) -> list[Any]:  # Any: as JSON has it
    """Path, size and time of each."""
    return [list(row) for row in zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)]
