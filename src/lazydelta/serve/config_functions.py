"""`[functions.NAME]`: stored functions of KQL, read and checked as far as their text tells.

Contract: a function that does not parse, or names a table that is not served, is refused by its key, before
anything starts: it would spoil every query that names it. What it reads is known, so that a client who may
not read all of it does not learn that it exists.
"""

from __future__ import annotations

import re

import msgspec
import pyarrow as pa

from lazydelta.engines.kql.catalog import KqlCatalog, StoredFunction
from lazydelta.engines.kql.errors import KqlError
from lazydelta.engines.kql.names import named_tables
from lazydelta.serve.config_keys import ConfigKeys
from lazydelta.serve.config_parts import ConfigFile

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_PARAMETERS = re.compile(r"\(.*\)\Z", re.DOTALL)


class ServedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A function, and what it needs."""

    stored: StoredFunction
    comment: str
    tables: frozenset[str]  # that it reads, and those of the functions that it calls
    functions: frozenset[str]  # that it calls, and so on


def read_functions(file: ConfigFile, keys: ConfigKeys) -> dict[str, ServedFunction]:
    """All of them, by name."""
    stored = {}
    for name, part in file.functions.items():
        key = f"functions.{name}"
        if not _NAME.match(name) or name in file.tables:
            raise keys.wrong(key, "that cannot be its name", "use letters, digits and _, and no table's name")
        if not part.body.strip():
            raise keys.wrong(f"{key}.body", "it is empty", "write a query")
        if not _PARAMETERS.match(part.parameters.strip()):
            raise keys.wrong(f"{key}.parameters", "they are in no brackets", 'write "(x:long)", or "()"')
        stored[name] = StoredFunction(name, part.body, part.parameters.strip())
    named = {name: {one.name for one in named_tables(one.body)} for name, one in stored.items()}
    calls = {name: _reached(name, named) for name in stored}
    found = {}
    for name, one in stored.items():
        _check(name, [stored[other] for other in calls[name]], file, keys)
        tables = {table for other in calls[name] for table in file.tables if table in named[other]}
        found[name] = ServedFunction(
            stored=one,
            comment=file.functions[name].comment,
            tables=frozenset(tables),
            functions=frozenset(calls[name]),
        )
    return found


def _reached(name: str, named: dict[str, set[str]]) -> list[str]:
    """The function, and those that it calls, and so on."""
    found, left = [], [name]
    while left:
        one = left.pop()
        if one not in found:
            found.append(one)
            left += sorted(named[one] & set(named))
    return found


def _check(name: str, functions: list[StoredFunction], file: ConfigFile, keys: ConfigKeys) -> None:
    from lazydelta.engines.kql.translate import translate

    nothing = pa.schema([])
    databases: dict[str, dict[str, str]] = {}
    for table, part in file.tables.items():
        databases.setdefault(part.schema, {})[table] = table
    catalog = KqlCatalog(dict.fromkeys(file.tables, nothing), databases, functions)
    try:
        translate("print is_read = true", catalog)
    except KqlError as error:
        raise keys.wrong(f"functions.{name}.body", error.what, error.fix) from error
