"""One DuckDB session: its settings, and its errors in our words.

Why: DuckDB is an extra, and what it raises must end as an error of `lazydelta.errors`. Contract: a session
is in memory, holds at most `memory_limit` and spills the rest to `temp_directory`; names in a query mean
registered tables, never variables of the program around it. An error of lazydelta that went through DuckDB
comes out as it was.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.engines.frames import needs
from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.rows.prefetch import PrefetchClosedError

Duck = Any  # Any: DuckDB is an extra; its classes are not named here, so that it may be missing
Parameters = Sequence[Any] | Mapping[str, Any] | None  # Any: values that DuckDB binds

_SHOWN_MAX = 500
_CARET = re.compile(r"^LINE (\d+): (.*)\n( *)\^", re.MULTILINE)
_KIND = re.compile(r"^[A-Z][A-Za-z ]+ Error: ")
_HINT = re.compile(r"(?:Candidate|Did you mean).*", re.DOTALL)
_MEMORY_FIX = (
    "raise memory_limit (--memory-limit), give temp_directory on a disk with room, or ask for less at once"
)
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


@contextmanager
def told(query: str, noted: Callable[[], Exception | None] = lambda: None) -> Iterator[None]:
    """Turn DuckDB's errors into ours; `noted` knows what went wrong below DuckDB."""
    try:
        yield
    except (LazyDeltaError, PrefetchClosedError):
        raise
    except Exception as error:
        below = noted()
        if below is not None:
            raise below from None
        ours = _translated(error, query)
        if ours is None:
            raise
        raise ours from error


def _translated(error: Exception, query: str) -> LazyDeltaError | None:
    """Our error, or None where it is a bug and keeps its traceback."""
    text = str(error)
    kind = type(error).__name__
    match = _KIND.search(text)
    named = kind if match is None else match[0].removesuffix(" Error: ").replace(" ", "")
    if named.startswith(("OutOfMemory", "Outof")):
        return LazyDeltaError(
            f"the query needs more memory than it may use: {_message(text)}", _shown(query), _MEMORY_FIX
        )
    if named.startswith(("Internal", "Fatal")) or not _is_ducks(error, match is not None):
        return None
    if named.startswith("IO"):
        return LazyDeltaError(
            _message(text), _shown(query), "see the message: a file or the disk is at fault"
        )
    what = "the SQL does not parse" if named.startswith("Parser") else "the query cannot be run"
    return InvalidRequestError(f"{what}: {_message(text)}", _place(text, query), _fix(text))


def _is_ducks(error: Exception, is_spelled_so: bool) -> bool:
    """Whether DuckDB said it: itself, or through the Arrow stream that it filled."""
    module = type(error).__module__.partition(".")[0]
    return module in ("duckdb", "_duckdb") or (module == "pyarrow" or is_spelled_so)


def _message(text: str) -> str:
    """The first paragraph, without the kind and the picture of the place."""
    first = _HINT.split(_KIND.sub("", text).partition("\nLINE ")[0])[0]
    return " ".join(first.split()).rstrip(".")


def _place(text: str, query: str) -> str:
    """`line 2, column 7: …`, where DuckDB points; else the query."""
    found = _CARET.search(text)
    if found is None:
        return _shown(query)
    line_number, shown, blanks = int(found[1]), found[2], len(found[3])
    column = blanks - len(f"LINE {line_number}: ")
    lines = query.splitlines()
    line = lines[line_number - 1] if 0 < line_number <= len(lines) else shown
    # A long line is shown in part: find where the part begins.
    part = shown.strip(".")
    offset = line.find(part) - (shown.find(part) if part else 0)
    return f"SQL, line {line_number}, column {max(column, 0) + max(offset, 0) + 1}: {_shown(line)}"


def _fix(text: str) -> str:
    hint = _HINT.search(text.partition("\nLINE ")[0])
    return "mend the query; it is DuckDB's SQL" if hint is None else " ".join(hint[0].split())


def _shown(query: str) -> str:
    return query if len(query) <= _SHOWN_MAX else query[: _SHOWN_MAX - 1] + "…"


def _size(given: object) -> str:
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return f"{given}B"
    if isinstance(given, str) and _SIZE.match(given):
        text = given.strip()
        return text if text[-1] in "bB" else f"{text}B"
    raise InvalidRequestError(
        f"memory_limit is {given!r}", "SQL", 'give a number of bytes, or text such as "500MB" or "2GiB"'
    )
