"""The tables that are served, by name, and who sees which.

Contract: a table that a client may not read is not there, in the same words as one that does not exist, so
that names do not leak. Each opening is of the newest version, or of the one that is asked for; what several
openings share is in the process's cache, and the latest ones are kept, so that a ticket is read without
opening its version again. `replace` swaps all tables at once; scans that run keep theirs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from functools import partial

import msgspec

from lazydelta.errors import TableNotFoundError
from lazydelta.serve.config import ServedTable
from lazydelta.serve.shared_opening import SharedOpening
from lazydelta.serve.sign_in import Client
from lazydelta.serve.tracing import part
from lazydelta.table import Table
from lazydelta.table import open as open_table

_OPENED_MAX = 32  # versions that are kept open


class _Served(msgspec.Struct, frozen=True):
    """A table, and how it is opened."""

    table: ServedTable
    opening: SharedOpening


class Catalog:
    """Tables of one configuration."""

    def __init__(self, tables: Iterable[ServedTable]) -> None:
        self._lock = threading.Lock()
        self._tables: dict[str, _Served] = {}
        self._opened: OrderedDict[tuple[str, int], tuple[ServedTable, Table]] = OrderedDict()
        self.replace(tables)

    def replace(self, tables: Iterable[ServedTable]) -> None:
        """Serve these from now on; what is open of those that did not change is kept."""
        before = self._tables
        self._tables = {table.name: _served(table, before.get(table.name)) for table in tables}
        with self._lock:
            for key, (table, _) in list(self._opened.items()):
                if (now := self._tables.get(table.name)) is None or now.table is not table:
                    del self._opened[key]

    def seen_by(self, client: Client) -> list[ServedTable]:
        """What a client may read, by name."""
        tables = [served.table for served in self._tables.values()]
        found = [table for table in tables if client.may_read(table.readers)]
        return sorted(found, key=lambda table: table.name)

    def find(self, name: str, client: Client) -> ServedTable:
        """The table of that name."""
        return self._find(name, client).table

    def open(
        self,
        name: str,
        client: Client,
        *,
        version: int | None = None,
        timestamp: str | None = None,
        asked_at: float | None = None,
    ) -> Table:
        """The table, pinned; `asked_at`: as `SharedOpening` has it."""
        served = self._find(name, client)
        table = served.table
        if version is not None and timestamp is None:
            known = self._opened.get((name, version))
            if known is not None and known[0] is table:
                return known[1]
        with part("open") as trace:
            if version is None and timestamp is None:
                found = served.opening.newest(asked_at)
            else:
                found = open_table(table.url, version=version, timestamp=timestamp, settings=table.settings)
            trace.note(table=name, version=found.version)
        self._keep(table, found)
        return found

    def _find(self, name: str, client: Client) -> _Served:
        served = self._tables.get(name)
        if served is None or not client.may_read(served.table.readers):
            raise TableNotFoundError(f"there is no table {name[:200]!r}", "table", "list what is served")
        return served

    def _keep(self, table: ServedTable, opened: Table) -> None:
        with self._lock:
            self._opened[table.name, opened.version] = (table, opened)
            self._opened.move_to_end((table.name, opened.version))
            while len(self._opened) > _OPENED_MAX:
                self._opened.popitem(last=False)


def _served(table: ServedTable, before: _Served | None) -> _Served:
    if before is not None and before.table == table:
        return before
    return _Served(table, SharedOpening(partial(_newest, table)))


def _newest(table: ServedTable) -> Table:
    return open_table(table.url, settings=table.settings)
