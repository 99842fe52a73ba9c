"""What DuckDB says went wrong, in our words: what, where in the query, what to do about it.

Why: what users can mend ends as an error of `lazydelta.errors`. Contract: an error of lazydelta that went
through DuckDB comes out as it was; a bug keeps its traceback.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

import msgspec

from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.rows.prefetch import PrefetchClosedError

_SHOWN_MAX = 500
_NAMES_MAX = 20
_CARET = re.compile(r"^LINE (\d+): (.*)\n( *)\^", re.MULTILINE)
_KIND = re.compile(r"^[A-Z][A-Za-z ]+ Error: ")
_HINT = re.compile(r"(?:Candidate|Did you mean).*", re.DOTALL)
_COLUMN = re.compile(r'Referenced column "(.+?)" not found|does not have a column named "(.+?)"')
_TABLE = re.compile(r"Table with name (\S+) does not exist")
# What DuckDB suggests by settings of its own.
_OWN_ADVICE = re.compile(r"\s*Possible solutions.*", re.DOTALL)
# What to do about what DuckDB says.
_ADVICE = {
    re.compile(r"Can only (?:delete|update|merge|modify)|is not an table|is of type View"): (
        "tables are read only here: write them with Spark or another writer of Delta"
    ),
    re.compile(r"map contains duplicate key"): (
        "leave the column out, or read it with scan(…).batches([…]), which gives maps as they are stored"
    ),
}
_PARAMETERS = re.compile(r"Values were not provided|were provided|parameter", re.IGNORECASE)
_MEMORY_FIX = (
    "raise memory_limit (--memory-limit), give temp_directory on a disk with room, or ask for less at once"
)
# Where a query speaks of such things, none of its texts is repeated.
_OF_SECRETS = re.compile(
    r"secret|passw|token|credential|connection_string|\w_?key\b|signature", re.IGNORECASE
)
_TEXTS = re.compile(r"'(?:[^']|'')*'?|\$(\w*)\$.*?(?:\$\1\$|\Z)", re.DOTALL)
# What is wrong with a query, by DuckDB's kind; of other kinds it cannot be run.
_WHAT = {"parser": "the SQL does not parse", "outofrange": "a value is out of range"}
_MEND = "mend the query; it is DuckDB's SQL"


class QueryMemoryError(LazyDeltaError):
    """A query that needs more memory than its session may use."""


class SqlContext(msgspec.Struct, frozen=True, eq=False):
    """A query, and what helps to say what is wrong with it."""

    query: str
    tables: Mapping[str, Sequence[str]] = {}  # the names it may use, with their columns
    noted: Callable[[], Exception | None] = lambda: None  # what went wrong below DuckDB
    located: tuple[str, str] | None = None  # an error of a text that ends with the query, and that text


@contextmanager
def told(context: SqlContext) -> Iterator[None]:
    """Turn DuckDB's errors into ours."""
    try:
        yield
    except (LazyDeltaError, PrefetchClosedError):
        raise
    except Exception as error:
        below = context.noted()
        if below is not None:
            raise below from None
        ours = _translated(error, context)
        if ours is None:
            raise
        raise ours from error


def kind_of(error: BaseException) -> str:
    """DuckDB's kind of an error, as in `OutOfMemory`; of other errors the name of their class."""
    match = _KIND.search(str(error))
    return type(error).__name__ if match is None else match[0].removesuffix(" Error: ").replace(" ", "")


def _translated(error: Exception, context: SqlContext) -> LazyDeltaError | None:
    """Our error, or None where it is a bug and keeps its traceback."""
    context = msgspec.structs.replace(context, query=_without_secrets(context.query, context.query))
    text, named, query = _without_secrets(str(error), context.query), kind_of(error), context.query
    if named.lower().startswith("outofmemory"):  # not OutofRange, which is of a value
        needed = _message(_OWN_ADVICE.sub("", text))
        return QueryMemoryError(
            f"the query needs more memory than it may use: {needed}", _shown(query), _MEMORY_FIX
        )
    if named.startswith(("Internal", "Fatal")) or not _is_ducks(error):
        return None
    if named.startswith("INTERRUPT"):
        return LazyDeltaError("the query was interrupted", _shown(query), "run it again")
    if named.startswith(("IO", "HTTP")):
        return LazyDeltaError(
            _message(text), _shown(query), "see the message: a file, the disk or the network is at fault"
        )
    what = _WHAT.get(named.lower(), "the query cannot be run")
    return InvalidRequestError(f"{what}: {_message(text)}", _place(text, context), _fix(text, context.tables))


def _without_secrets(text: str, query: str) -> str:
    return _TEXTS.sub("'…'", text) if _OF_SECRETS.search(query) else text


def _is_ducks(error: Exception) -> bool:
    """Whether DuckDB said it: itself, or through the Arrow stream that it filled."""
    module = type(error).__module__.partition(".")[0]
    return module in ("duckdb", "_duckdb", "pyarrow") or _KIND.search(str(error)) is not None


def _message(text: str) -> str:
    """The first paragraph, without the kind and the picture of the place."""
    first = _HINT.split(_KIND.sub("", text).partition("\nLINE ")[0])[0]
    return " ".join(first.split()).rstrip(".")


def _place(text: str, context: SqlContext) -> str:
    """`line 2, column 7: …`, where DuckDB points; else the query."""
    query = context.query
    place = _line_and_column(text, query)
    longer = context.located if place is None else None
    if longer is not None and _message(longer[0]) == _message(text):
        place = _line_and_column(*longer)
        ahead = len(longer[1]) - len(query)
        if place is not None and place[0] == 1:
            place = (1, place[1] - ahead)
    if place is None or place[1] < 1:
        return _shown(query)
    lines = query.splitlines()
    line = lines[place[0] - 1] if place[0] <= len(lines) else ""
    return f"SQL, line {place[0]}, column {place[1]}: {_shown(line)}"


def _line_and_column(text: str, query: str) -> tuple[int, int] | None:
    found = _CARET.search(text)
    if found is None:
        return None
    line_number, shown, blanks = int(found[1]), found[2], len(found[3])
    column = _characters(shown, blanks - len(f"LINE {line_number}: "))
    lines = query.splitlines()
    line = lines[line_number - 1] if 0 < line_number <= len(lines) else shown
    # A long line is shown in part: find where the part begins.
    part = shown.strip(".")
    offset = line.find(part) - (shown.find(part) if part else 0)
    return line_number, max(column, 0) + max(offset, 0) + 1


def _characters(shown: str, width: int) -> int:
    """How many characters of the line are so wide: DuckDB points as a terminal shows it."""
    taken = 0
    for number, character in enumerate(shown):
        cells = _cells(character)
        if taken >= width and cells:
            return number
        taken += cells
    return len(shown) + max(width - taken, 0)


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _fix(text: str, tables: Mapping[str, Sequence[str]]) -> str:
    unknown = _TABLE.search(text)
    if unknown is not None:
        return _known_names("tables", unknown[1].strip('"'), list(tables))
    for said, advice in _ADVICE.items():
        if said.search(text):
            return advice
    if _PARAMETERS.search(text) and "provided" in text:
        return "give parameters=[…] for ?, or parameters={…} for $name, one for each"
    told = _HINT.search(text.partition("\nLINE ")[0])
    if told is not None:
        return _shown(" ".join(told[0].split()))
    column = _COLUMN.search(text)
    if column is not None and tables:
        names = list(dict.fromkeys(name for columns in tables.values() for name in columns))
        return _known_names("columns", column[1] or column[2], names)
    return _MEND


def _known_names(what: str, name: str, known: list[str]) -> str:
    if not known:
        return f"there are no {what}: give them by name, as in sql(query, {name}=table)"
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    more = f", and {len(known) - _NAMES_MAX:,} more" if len(known) > _NAMES_MAX else ""
    return f"{hint}the {what} are: {', '.join(known[:_NAMES_MAX])}{more}"


def _shown(query: str) -> str:
    return query if len(query) <= _SHOWN_MAX else query[: _SHOWN_MAX - 1] + "…"
