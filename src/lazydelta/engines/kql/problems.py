"""What the translation library and DuckDB say about a query, as errors of ours with the place in its text."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from lazydelta.engines.kql.catalog import KqlCatalog, nearest
from lazydelta.engines.kql.errors import (
    SYNTAX,
    TOO_LARGE,
    TWICE,
    UNKNOWN_NAME,
    KqlError,
    Place,
    kql_error,
    place_of,
    unsupported,
)
from lazydelta.engines.kql.misreadings import as_a_column, second_naming, unclosed_text
from lazydelta.engines.kql.tokens import Token, string_value, tokens
from lazydelta.engines.kql.vocabulary import OPERATORS
from lazydelta.errors import LazyDeltaError

_EXPECTING = re.compile(r"(.*?)expecting (\{.*\}|\S+)\Z", re.DOTALL)
_EXPECTED_SHOWN_MAX = 8
_PAIRS = {")": "(", "]": "[", "}": "{"}
_CLASS = re.compile(r"^(?:source:)?([A-Z]\w+?)(?:Operator|Expression|Statement)?(?:Part)?$")


@contextmanager
def told_in_kql(text: str) -> Iterator[None]:
    """Turn errors of the library into ours."""
    from duckdb_kql import errors as library

    try:
        yield
    except library.KqlSyntaxError as error:
        raise _syntax(text, error) from error
    except library.KqlUnsupportedError as error:
        if error.construct.startswith("literal:"):
            raise _no_literal(text, error) from error
        operator = _operator(error.construct)
        at = _place(error.span) or place_of_name(text, operator.split(" ")[-1])
        raise unsupported(operator, text, at, why=_reason(error.hint)) from error
    except library.KqlSchemaError as error:
        if "SEM0034" in (error.hint or ""):
            raise _named_twice(text, error.name) from error
        at = place_of_name(text, error.name) or place_of_name(text, error.name.partition("-")[0])
        raise kql_error(
            f"{error.name}: {error.hint or 'not known'}", text, at, "mend the query", UNKNOWN_NAME
        ) from error
    except RecursionError:
        raise kql_error("the query is nested too deep", text, None, "write it flatter", TOO_LARGE) from None
    except LazyDeltaError:
        raise
    except Exception as error:
        if not _is_of_library(error):
            raise
        what = f"the query cannot be read: {type(error).__name__}: {error}"[:300]
        raise kql_error(what, text, None, "mend the query, or write it another way", SYNTAX) from error


def _named_twice(text: str, name: str) -> KqlError:
    at = second_naming(text, name) or place_of_name(text, name)
    return kql_error(f"two columns are named {name!r}", text, at, "give one of them another name", TWICE)


def _no_literal(text: str, error: Any) -> KqlError:  # Any: the library's
    kind = error.construct.removeprefix("literal:")
    what = (error.hint or "").replace(" (Kusto: SYN0002)", "") or f"there is no such literal of type '{kind}'"
    return kql_error(what, text, _place(error.span), f"write it as {kind}(…) takes it", SYNTAX)


def _is_of_library(error: Exception) -> bool:
    """Whether the library, or its parser, stumbled over the query: ours is a bug and keeps its traceback."""
    (*_, (frame, _line)) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).startswith(("duckdb_kql", "antlr4"))


def unknown_table(text: str, name: str, catalog: KqlCatalog) -> KqlError:
    """A name that no table has."""
    return kql_error(
        f"there is no table {name!r}",
        text,
        place_of_name(text, name) or place_of_name(text, "search"),
        nearest(name, catalog.names, "tables"),
        UNKNOWN_NAME,
    )


def place_of_name(text: str, name: str) -> Place:
    """Where a query says a name first; None where it does not."""
    for word in tokens(text):
        is_text = word.kind == "text" and string_value(word.text) == name
        is_joined = "-" in name and word.kind == "name" and text.startswith(name, word.at)
        if word.text == name or is_text or is_joined:
            return place_of(text, word.at)
    return None


def _unclosed(text: str) -> KqlError | None:
    """A bracket that nobody closes, or that closes none."""
    open_: list[Token] = []
    for word in tokens(text):
        if word.kind == "sign" and word.text in _PAIRS.values():
            open_.append(word)
        elif word.text in _PAIRS and (not open_ or open_.pop().text != _PAIRS[word.text]):
            what = f"{word.text!r} closes no bracket"
            return kql_error(what, text, place_of(text, word.at), "leave it out, or open one", SYNTAX)
    if not open_:
        return None
    what = f"the bracket {open_[-1].text!r} is not closed"
    return kql_error(what, text, place_of(text, open_[-1].at), "close it", SYNTAX)


def _unknown_operator(text: str, at: Place) -> KqlError | None:
    """The parser stops at the bar before a word that is no operator, and before one that it cannot read."""
    words = tokens(text)
    for bar, word in pairwise(words):
        if bar.text == "|" and place_of(text, bar.at) == at and word.kind == "name":
            name = re.match(r"[\w-]+", text[word.at :])
            spelled = word.text if name is None else name[0]
            place = place_of(text, word.at)
            if spelled not in OPERATORS:
                hint = nearest(spelled, OPERATORS, "operators")
                return kql_error(f"{spelled!r} is no operator", text, place, hint, SYNTAX)
            fix = f"see what stands after {spelled}, up to the next |" + as_a_column(words, word.at)
            return kql_error(f"the operator {spelled!r} cannot be read", text, place, fix, SYNTAX)
    return None


def _syntax(text: str, error: Any) -> KqlError:  # Any: the library's
    if not error.diagnostics:
        return kql_error(f"the query does not parse: {error}", text, None, "mend the query", SYNTAX)
    first = error.diagnostics[0]
    unknown = unclosed_text(text) or _unclosed(text) or _unknown_operator(text, _place(first.span))
    if unknown is not None:
        return unknown
    found = _EXPECTING.match(first.message)
    what, expected = (first.message, "") if found is None else (found[1].strip(" ,"), found[2])
    names = [name.strip() for name in expected.strip("{}").split(", ") if name.strip()]
    shown = ", ".join(names[:_EXPECTED_SHOWN_MAX])
    more = f" or {len(names) - _EXPECTED_SHOWN_MAX} others" if len(names) > _EXPECTED_SHOWN_MAX else ""
    fix = f"expected here: {shown}{more}" if names else "mend the query"
    fix += as_a_column(tokens(text), 0)
    return kql_error(f"the query does not parse: {what}"[:500], text, _place(first.span), fix, SYNTAX)


def _place(span: Any) -> Place:  # Any: the library's
    return None if span is None else (span.line, span.column + 1)


def _operator(construct: str) -> str:
    """The operator as KQL spells it: `MakeSeriesOperator` is make-series."""
    found = _CLASS.match(construct)
    if found is None:
        return construct.replace("function:", "the function ")
    return re.sub(r"(?<!^)(?=[A-Z])", "-", found[1]).lower()


def _reason(hint: str | None) -> str:
    """Why the library refuses it, unless that is only that it does."""
    return "" if hint is None or "in this wave" in hint or "registered" in hint else hint
