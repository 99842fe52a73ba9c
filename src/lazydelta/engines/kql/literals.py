"""Literals with a type: `datetime(…)`, `guid(…)`, `bool(…)`. One that is none is refused, never null.

Contract: what is accepted here is what the translation library reads to that very value.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from duckdb_kql import ir, lower
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.timespans import ticks

from lazydelta.engines.kql import decimals

Node = Any  # Any: ANTLR's trees have no types
_INSIDE = re.compile(r"^\s*\w+\s*\((.*)\)\s*$", re.DOTALL)
_ISO = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?"
    r"\s*(?:Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?\s*Z?",
    re.IGNORECASE,
)
# Others that the library reads.
_FORMATS = (
    *("%m-%d-%Y", "%m/%d/%Y", "%m.%d.%Y", "%m-%d-%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%d %b %Y", "%b %d, %Y"),
    *("%a, %d %b %Y %H:%M:%S GMT", "%Y%m%d"),
)
_YEAR = re.compile(r"\d{4}")
_GUID = re.compile(r"\{?[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\}?")
_PART_OF_A_UNIT = re.compile(r"\d+\.\d+(?:ms|milli|micro|nano|tick)[a-z]*", re.IGNORECASE)
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def read(node: Node) -> ir.Literal | None:
    """A literal of one of these types; None: it is of another."""
    kind = lower._cls(node)
    if kind == "DecimalLiteralExpression":
        return decimals.literal(node)
    name = _KINDS.get(kind)
    if name is None:
        return None
    text = _inside(node)
    if text.lower() in ("null", ""):
        return ir.Literal(None, name)
    if name == "datetime":
        return ir.Literal(_moment(text, node), name)
    if name == "bool" and text.lower() in _TRUTHS:
        return ir.Literal(_TRUTHS[text.lower()], name)
    if (name == "guid" and _GUID.fullmatch(text)) or (name == "timespan" and _is_timespan(text)):
        return ir.Literal(text, name)
    if name == "timespan" and _PART_OF_A_UNIT.fullmatch(text):
        hint = "it is a fraction of a unit below a second; write whole microseconds"
        raise KqlUnsupportedError(text, span=lower._span(node), hint=hint)
    raise _no_literal(text, name, node)


def _inside(node: Node) -> str:
    text = lower._literal_text(node).strip()
    inside = _INSIDE.match(text)
    text = inside[1].strip() if inside else text
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return str(lower._string_value(text)) if is_quoted else text


def _moment(text: str, node: Node) -> str:
    text = str(lower._datetime_parts_to_iso(text))
    if _YEAR.fullmatch(text):
        return f"{text}-01-01"
    found = _ISO.fullmatch(text)
    try:
        if found is not None:
            year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
            dt.datetime(year, month, day, hour, minute, second)  # noqa: DTZ001  # looked at only
            return text
    except ValueError:
        raise _no_literal(text, "datetime", node) from None
    if any(_is_of(text, form) for form in _FORMATS):
        return text
    raise _no_literal(text, "datetime", node)


def _is_of(text: str, form: str) -> bool:
    try:
        dt.datetime.strptime(text, form)  # noqa: DTZ007  # looked at only
    except ValueError:
        return False
    return True


def _is_timespan(text: str) -> bool:
    try:
        ticks(text)
    except ValueError:
        return False
    return True


def _no_literal(text: str, kind: str, node: Node) -> KqlUnsupportedError:
    hint = f"{text!r} could not be parsed as a literal of type '{kind}'"
    return KqlUnsupportedError(f"literal:{kind}", span=lower._span(node), hint=hint)


_KINDS = {
    "DateTimeLiteralExpression": "datetime",
    "TimeSpanLiteralExpression": "timespan",
    "GuidLiteralExpression": "guid",
    "BooleanLiteralExpression": "bool",
}
