"""Shares, schemas and tables as a client sees them: what it may not read is not there.

Contract: names are found case apart, an exact one first. Lists are in the order of names, so that a page goes
on behind the last name of the one before, whatever was added or taken away meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from lazydelta.errors import TableNotFoundError
from lazydelta.serve.catalog import Catalog
from lazydelta.serve.config import ServedTable
from lazydelta.serve.sharing.requests import ListAsked
from lazydelta.serve.sharing.tokens import TokenOffice
from lazydelta.serve.sign_in import Client

Item = dict[str, Any]  # Any: as JSON has it
_PAGE_MAX = 1000


class Directory:
    """What one client may see."""

    def __init__(self, catalog: Catalog, client: Client, tokens: TokenOffice) -> None:
        self._tables = catalog.seen_by(client)
        self._client = client
        self._tokens = tokens

    def shares(self, asked: ListAsked) -> Item:
        """All of them."""
        return self._page("shares", [_share(name) for name in {table.share for table in self._tables}], asked)

    def share(self, share: str) -> Item:
        """One of them."""
        return {"share": _share(self._in_share(share)[0].share)}

    def schemas(self, share: str, asked: ListAsked) -> Item:
        """Of a share."""
        tables = self._in_share(share)
        items = [{"name": name, "share": tables[0].share} for name in {table.schema for table in tables}]
        return self._page(f"schemas of {tables[0].share}", items, asked)

    def tables(self, share: str, schema: str, asked: ListAsked) -> Item:
        """Of a schema."""
        tables = _named(self._in_share(share), "schema", schema)
        where = f"tables of {tables[0].share}.{tables[0].schema}"
        return self._page(where, [_table(table) for table in tables], asked)

    def all_tables(self, share: str, asked: ListAsked) -> Item:
        """Of a share, whatever the schema."""
        tables = self._in_share(share)
        return self._page(f"all tables of {tables[0].share}", [_table(table) for table in tables], asked)

    def table(self, share: str, schema: str, name: str) -> ServedTable:
        """The one that these names mean."""
        return _named(_named(self._in_share(share), "schema", schema), "name", name)[0]

    def _in_share(self, share: str) -> list[ServedTable]:
        return _named(self._tables, "share", share)

    def _page(self, what: str, items: list[Item], asked: ListAsked) -> Item:
        bound_to = (self._client.name, what)
        items = sorted(items, key=_place)
        if asked.page_token:
            after = self._tokens.read("pageToken", bound_to, asked.page_token, list[str])
            items = [item for item in items if _place(item) > after]
        count = _PAGE_MAX if asked.max_results is None else min(asked.max_results, _PAGE_MAX)
        found: Item = {"items": items[:count]}
        if len(items) > count:
            last = _place(items[count - 1]) if count else (self._before(asked, bound_to))
            found["nextPageToken"] = self._tokens.write("pageToken", bound_to, last)
        return found

    def _before(self, asked: ListAsked, bound_to: Any) -> list[str]:  # Any: plain values
        """Where a page of nothing ends."""
        if not asked.page_token:
            return []
        return self._tokens.read("pageToken", bound_to, asked.page_token, list[str])


def _named(tables: Sequence[ServedTable], kind: str, name: str) -> list[ServedTable]:
    """Those of that name; raises where there is none."""
    found = [table for table in tables if getattr(table, kind) == name]
    if not found:
        found = [table for table in tables if getattr(table, kind).lower() == name.lower()]
    if not found:
        word = "table" if kind == "name" else kind
        raise TableNotFoundError(f"there is no {word} {name[:200]!r}", word, "list what is shared")
    return found


def _place(item: Item) -> list[str]:
    return [item.get("schema", ""), item["name"]]


def _share(name: str) -> Item:
    return {"name": name, "id": _id("share", name)}


def _table(table: ServedTable) -> Item:
    return {
        "name": table.name,
        "schema": table.schema,
        "share": table.share,
        "shareId": _id("share", table.share),
        "id": _id("table", table.share, table.schema, table.name),
        "accessModes": ["url"],
    }


def _id(*names: str) -> str:
    return str(uuid5(NAMESPACE_URL, "lazydelta:" + "/".join(names)))
