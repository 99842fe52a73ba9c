"""One DuckDB session: its settings, and how names and text are written in it.

Why: DuckDB is an extra, so that it is imported here alone, and late. Contract: a session is in memory, holds
at most `memory_limit` and spills the rest to a folder of its own in `temp_directory`, for this user alone,
which is gone with the session; where the process was killed, a later one removes it. Names in a query mean
registered tables, never variables of the program around it.
"""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.engines.frames import needs
from lazydelta.errors import InvalidRequestError
from lazydelta.storage.scratch_folder import ScratchFolder

Duck = Any  # Any: DuckDB is an extra; its classes are not named here, so that it may be missing
Parameters = Sequence[Any] | Mapping[str, Any] | None  # Any: values that DuckDB binds

_THREADS_MAX = 1024  # DuckDB would start as many as it is told to
_SPILL = "lazydelta-spill-"
_scratches: weakref.WeakKeyDictionary[Duck, weakref.finalize[Any, Any]] = weakref.WeakKeyDictionary()
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
    }
    if options.threads is not None:
        is_number = isinstance(options.threads, int) and not isinstance(options.threads, bool)
        if not is_number or not 1 <= options.threads <= _THREADS_MAX:
            raise InvalidRequestError(
                f"threads is {options.threads!r}", "SQL", f"give a whole number from 1 to {_THREADS_MAX:,}"
            )
        config["threads"] = str(options.threads)
    scratch = _scratch(_folder(options.temp_directory), config)
    try:
        session = duckdb.connect(":memory:", config=config)
    except (duckdb.ParserException, duckdb.InvalidInputException) as error:
        if scratch is not None:
            scratch.remove()
        raise InvalidRequestError(
            f"DuckDB takes no memory_limit of {config['memory_limit']}: {error}",
            "SQL",
            'give a number of bytes, or text such as "500MB" or "2GiB"',
        ) from error
    if scratch is not None:
        _scratches[session] = weakref.finalize(session, scratch.remove)
    # Otherwise a name that no table has would be looked up among the variables of the caller.
    session.execute("set python_enable_replacements = false")
    session.execute("set TimeZone = 'UTC'")
    # A query of more than two seconds would draw one on stdout, where the caller's data goes.
    session.execute("set enable_progress_bar = false")
    return session


def give_rows_at_once(session: Duck) -> None:
    """Have DuckDB hand rows out as they come: it would go on until it has a megabyte of them.

    A session whose settings are locked keeps the one it has.
    """
    with suppress(Exception):  # DuckDB's own kind, for a setting that may not be changed
        session.execute("set streaming_buffer_size = '1B'")


def close_session(session: Duck) -> None:
    """Close what `open_session` gave, or a cursor of it; with the session its folder goes."""
    session.close()
    remove = _scratches.pop(session, None)
    if remove is not None:
        remove()


def checked_parameters(given: Parameters) -> Parameters:
    """Values by place or by name, as DuckDB takes them."""
    if given is None or isinstance(given, Mapping):
        return given
    # The characters of a text are hardly meant, and a set has no order.
    if isinstance(given, str | bytes | Set) or not isinstance(given, Iterable):
        raise InvalidRequestError(
            f"parameters is {given!r}"[:200],
            "SQL",
            "give a list for ?, as in [5], or {name: value} for $name",
        )
    return list(given)


def spelled(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """Text as SQL quotes it."""
    return "'" + value.replace("'", "''") + "'"


def _scratch(parent: Path, config: dict[str, Any]) -> ScratchFolder | None:
    """A folder to spill to: sessions of several processes in one would take each other's files."""
    try:
        scratch = ScratchFolder(parent, _SPILL)
    except OSError:  # which DuckDB tells when it spills, if it does
        config["temp_directory"] = str(parent / f"{_SPILL}none")
        return None
    config["temp_directory"] = str(scratch.path)
    return scratch


def _folder(given: object) -> Path:
    if given is None:
        return Path(tempfile.gettempdir())
    if isinstance(given, str | os.PathLike) and isinstance(path := os.fspath(given), str):
        return Path(path or tempfile.gettempdir())
    raise InvalidRequestError(f"temp_directory is {given!r}"[:200], "SQL", "give the path of a folder")


def _size(given: object) -> str:
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return f"{given}B"
    if isinstance(given, str) and _SIZE.match(given):
        text = given.strip()
        return text if text[-1] in "bB" else f"{text}B"
    raise InvalidRequestError(
        f"memory_limit is {given!r}", "SQL", 'give a number of bytes, or text such as "500MB" or "2GiB"'
    )
