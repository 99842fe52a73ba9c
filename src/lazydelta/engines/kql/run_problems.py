"""What DuckDB says about a translated query, in the words of the query that the user wrote.

Contract: errors of the tables and of lazydelta come out as they were; a bug keeps its traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from lazydelta.engines.kql.catalog import nearest
from lazydelta.engines.kql.errors import BAD_VALUE, MISMATCH, UNKNOWN_NAME, KqlError, Place, kql_error
from lazydelta.engines.kql.problems import place_of_name
from lazydelta.engines.kql.tokens import tokens
from lazydelta.engines.sql_errors import SqlContext, kind_of, told
from lazydelta.errors import InvalidRequestError

_COLUMN = re.compile(r'column "([^"]+)" not found|column named "([^"]+)"|Referenced column "([^"]+)"')
_VALUE = re.compile(r"[Cc]ould not convert (?:string )?'([^']*)'")
_KIND = re.compile(r"^[A-Z][A-Za-z ]+ Error: ")
_ADVICE = re.compile(r"\nLINE |You might need|Candidate|- an explicit cast")
_OVERFLOW = re.compile(r"INT128 .*out of range for the destination type INT64")
_MISMATCHES = (
    "Cannot compare values of type",
    "No function matches",
    "Cannot mix values of type",
    "Could not convert",
)
_OPTIONS = frozenset(
    {"kind", "withsource", "with_source", "isfuzzy", "with_itemindex", "bagexpansion", "default"}
)


class RunContext(msgspec.Struct, frozen=True):
    """A query, and what helps to say what is wrong with it."""

    text: str
    columns: Mapping[str, Sequence[str]]  # of its tables


@contextmanager
def told_by_duckdb(context: RunContext) -> Iterator[None]:
    """Turn what DuckDB says into errors about the query's own text."""
    try:
        with told(SqlContext(context.text)):
            yield
    except KqlError:
        raise
    except InvalidRequestError as error:
        cause = error.__cause__
        if cause is None:
            raise
        raise _in_kql(error, str(cause), kind_of(cause), context) from error


def _in_kql(error: InvalidRequestError, said: str, kind: str, context: RunContext) -> KqlError:
    text = context.text
    found = _COLUMN.search(said)
    if found is not None:
        name = next(group for group in found.groups() if group)
        return unknown_column(text, name, context.columns)
    if any(part in said for part in _MISMATCHES):
        value = _VALUE.search(said)
        at = place_of_name(text, value[1]) if value is not None else None
        fix = "convert one side, as in tostring(x), tolong(x), todatetime(x)"
        return kql_error(f"types do not go together: {_first(said)}", text, at, fix, MISMATCH)
    if _OVERFLOW.search(said):
        what = "a value is out of range: a sum or another whole number is larger than a long holds"
        return kql_error(what, text, None, "convert it before, as in sum(toreal(x))", BAD_VALUE)
    fix = "mend the query, or leave out rows with such values" if kind.startswith("Out") else "mend the query"
    return kql_error(_first(error.what), text, None, fix, BAD_VALUE)


def unknown_column(text: str, name: str, columns: Mapping[str, Sequence[str]], at: Place = None) -> KqlError:
    """A name that no column has; where its place is not known, it is the first that says the name."""
    known = list(dict.fromkeys(column for names in columns.values() for column in names))
    own = [word.text for word in tokens(text) if word.kind == "name"]
    known += [
        other
        for other in dict.fromkeys(own)
        if other not in known and other != name and _is_made(text, other)
    ]
    return kql_error(
        f"there is no column {name!r}",
        text,
        at or place_of_name(text, name),
        nearest(name, known, "columns"),
        UNKNOWN_NAME,
    )


def _is_made(text: str, name: str) -> bool:
    """Whether the query gives the name to a column; `let` names other things, and operators have options."""
    if name in _OPTIONS:
        return False
    return re.search(rf"(?<!\blet )\b{re.escape(name)}\s*=(?![=~])", text) is not None


def _first(said: str) -> str:
    """The first sentence, without DuckDB's advice."""
    return " ".join(_ADVICE.split(_KIND.sub("", said), maxsplit=1)[0].split())[:400].rstrip(".")
