"""The tables and functions that a query may name, and what its names mean.

Contract: names are case sensitive, as Kusto's are. One that is not there is an error with the nearest ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import msgspec
import pyarrow as pa

_NAMES_SHOWN_MAX = 20


class StoredFunction(msgspec.Struct, frozen=True):
    """A function that queries may call: a view, if it has no parameters."""

    name: str
    body: str
    parameters: str = "()"  # as in "(x:long, y:string = 'a')"

    @property
    def definition(self) -> str:
        """As the translation library reads it."""
        body = self.body.strip()
        inside = body if body.startswith("{") else f"{{ {body} }}"
        return f"function {self.name}{self.parameters} {inside}"


class KqlCatalog(msgspec.Struct, frozen=True, eq=False):
    """What can be named."""

    tables: Mapping[str, pa.Schema]
    # Of each database: its tables' names, and which of `tables` they are.
    databases: Mapping[str, Mapping[str, str]] = {}
    functions: Sequence[StoredFunction] = ()
    clusters: Sequence[str] = ()  # names of this server: `cluster('…')` means no other
    others: Sequence[str] = ()  # names of tables that were not opened, for what an error suggests

    @property
    def names(self) -> list[str]:
        """All that can be read by its bare name."""
        return list(dict.fromkeys([*self.tables, *self.others, *(one.name for one in self.functions)]))

    def resolved(self, name: str, database: str | None = None) -> str | None:
        """Which of `tables` a name means; None: no one."""
        if database is None:
            return name if name in self.tables else None
        return self.databases.get(database, {}).get(name)

    def is_here(self, cluster: str) -> bool:
        """Whether a cluster is this server: another one's data must not be taken from here."""
        return not cluster or _host(cluster) in map(_host, self.clusters)

    def matching(self, pattern: str) -> list[str]:
        """The tables that `Telemetry*` means."""
        return sorted(name for name in self.tables if fnmatchcase(name, pattern))


class NamedTable(msgspec.Struct, frozen=True):
    """A name in a query that may be a table's; `*` in it stands for anything."""

    name: str
    database: str | None = None
    cluster: str | None = None

    def is_of(self, table: str) -> bool:
        """Whether the name may mean this table."""
        return fnmatchcase(table, self.name) if "*" in self.name else table == self.name


def _host(cluster: str) -> str:
    """A cluster's name without what its spellings differ by: `https://Here.kusto.windows.net/` is `here`."""
    bare = cluster.lower().removeprefix("https://").removeprefix("http://").rstrip("/")
    return bare.removesuffix(".kusto.windows.net")


def nearest(name: str, known: Sequence[str], what: str) -> str:
    """`did you mean telemetry? the tables are: …`."""
    if not known:
        return f"there are no {what} here"
    folded = {one.casefold(): one for one in known}
    close = folded.get(name.casefold()) or next(iter(get_close_matches(name, known, 1)), None)
    hint = f"did you mean {close}? " if close else ""
    more = f", and {len(known) - _NAMES_SHOWN_MAX:,} more" if len(known) > _NAMES_SHOWN_MAX else ""
    return f"{hint}the {what} are: {', '.join(known[:_NAMES_SHOWN_MAX])}{more}"
