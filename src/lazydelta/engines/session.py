"""One DuckDB session: its settings, and how names and text are written in it.

Why: DuckDB is an extra, so that it is imported here alone, and late. Contract: a session is in memory, holds
at most `memory_limit` and spills the rest to `temp_directory`; names in a query mean registered tables, never
variables of the program around it.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.engines.frames import needs
from lazydelta.errors import InvalidRequestError

Duck = Any  # Any: DuckDB is an extra; its classes are not named here, so that it may be missing
Parameters = Sequence[Any] | Mapping[str, Any] | None  # Any: values that DuckDB binds

_SIZE = re.compile(r"\s*\d+(\.\d+)?\s*([KMGT]i?)?B?\s*\Z", re.IGNORECASE)


class SqlOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a session may spend."""

    memory_limit: str | int | None = None  # bytes, or "500MB", "2GiB"; None: limits.SQL_MEMORY_BYTES
    temp_directory: str | os.PathLike[str] | None = None  # for what does not fit; None: the system's
    threads: int | None = None  # None: as many as there are cores


def open_session(options: SqlOptions) -> Duck:
    """A connection to a database of its own, in memory."""
    needs("duckdb", "sql")
    import duckdb

    config: dict[str, Any] = {  # Any: as DuckDB takes them
        "memory_limit": _size(
            limits.SQL_MEMORY_BYTES if options.memory_limit is None else options.memory_limit
        ),
        # A folder of its own, which DuckDB makes when it spills and removes at the end: sessions of several
        # processes in one folder would take each other's files.
        "temp_directory": str(
            Path(options.temp_directory or tempfile.gettempdir()) / f"lazydelta-sql-{uuid.uuid4().hex}"
        ),
    }
    if options.threads is not None:
        if not isinstance(options.threads, int) or isinstance(options.threads, bool) or options.threads < 1:
            raise InvalidRequestError(
                f"threads is {options.threads!r}", "SQL", "give a whole number from 1 on"
            )
        config["threads"] = str(options.threads)
    session = duckdb.connect(":memory:", config=config)
    # Otherwise a name that no table has would be looked up among the variables of the caller.
    session.execute("set python_enable_replacements = false")
    session.execute("set TimeZone = 'UTC'")
    return session


def spelled(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """Text as SQL quotes it."""
    return "'" + value.replace("'", "''") + "'"


def _size(given: object) -> str:
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return f"{given}B"
    if isinstance(given, str) and _SIZE.match(given):
        text = given.strip()
        return text if text[-1] in "bB" else f"{text}B"
    raise InvalidRequestError(
        f"memory_limit is {given!r}", "SQL", 'give a number of bytes, or text such as "500MB" or "2GiB"'
    )
