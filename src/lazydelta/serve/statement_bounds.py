"""How large a statement may be, and the values that it makes out of nothing.

Why: DuckDB's parser takes time by the square of how deep brackets are nested, and values that a function
makes of a number (`repeat('x', 1000000000)`) are not counted by its memory limit. Contract: what is refused
here is refused by its text alone; it is a bound against accidents and idle malice, not a proof: a server that
strangers may ask runs where the system bounds its memory, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.predicate_size import checked_words

Node = dict[str, Any]  # Any: JSON, as DuckDB writes a statement
DEPTH_MAX = 200
_OPENS, _CLOSES = "([{", ")]}"
_BRACKETS = re.compile(r"[(\[{)\]}]")
# Quotes and comments of which brackets are none.
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*")
# Forms of text and comments that are not told apart here.
_UNTOLD = re.compile(r"\be'|\$\w*\$|/\*", re.IGNORECASE)
_TEXT_MAX, _SERIES_MAX = 10_000, 1_000_000
# Functions that make values as large as a number says: which arguments that is, and how large it may be.
_MAKERS: dict[str, tuple[slice, int]] = {
    "repeat": (slice(1, 2), _TEXT_MAX),
    "lpad": (slice(1, 2), _TEXT_MAX),
    "rpad": (slice(1, 2), _TEXT_MAX),
    "bitstring": (slice(1, 2), _TEXT_MAX),
    "bar": (slice(3, 4), _TEXT_MAX),
    "list_resize": (slice(1, 2), _TEXT_MAX),
    "array_resize": (slice(1, 2), _TEXT_MAX),
    "range": (slice(0, 3), _SERIES_MAX),
    "generate_series": (slice(0, 3), _SERIES_MAX),
}
FORMATS = frozenset({"format", "printf"})
_WIDE = re.compile(r"\d{5,}")


def check_depth(query: str) -> None:
    """Raise where the statement is longer, or its brackets are nested deeper, than anybody writes them."""
    checked_words(query, "the statement", "SQL")
    if sum(query.count(character) for character in _OPENS) <= DEPTH_MAX:
        return
    if _UNTOLD.search(query):
        raise _refused("the statement has too many brackets beside comments or E'' and $$ text")
    depth = 0
    for found in _BRACKETS.finditer(_QUOTED.sub("", query)):
        depth += 1 if found[0] in _OPENS else -1
        if depth > DEPTH_MAX:
            raise _refused(f"brackets are nested deeper than {DEPTH_MAX}")


def check_sizes(node: Node) -> None:
    """Raise where a function would make too large a value, or one whose size its text does not tell."""
    name, arguments = name_of(node), arguments_of(node)
    if name in FORMATS and (not arguments or _WIDE.search(text_of(arguments[0]) or "00000")):
        raise _refused(f"{name} needs a text with widths of at most 4 digits")
    if name not in _MAKERS:
        return
    places, most = _MAKERS[name]
    if not all(number_of(argument) <= most for argument in arguments[places]):
        raise _refused(f"{name} needs a plain number of at most {most:,}")


def name_of(node: Node) -> str:
    """The function that it calls, in small letters; empty: none."""
    return str(node.get("function_name", "")).lower()


def arguments_of(node: Node) -> list[Node]:
    """What the function is given."""
    return [argument.get("expression") or {} for argument in node.get("arguments") or []]


def text_of(node: Node) -> str | None:
    """A constant."""
    return _literal(node, "STRING")


def number_of(node: Node) -> float:
    """A constant; what is none is too large."""
    text = (_literal(node, "INTEGER") or "").removeprefix("-").replace("_", "")
    return int(text) if text.isdecimal() else float("inf")


def nodes_of(tree: Any) -> Iterator[Node]:  # Any: JSON
    """Every object in a tree."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def _literal(node: Node, kind: str) -> str | None:
    while node.get("class") == "CAST":
        node = node.get("child") or {}
    literal = node.get("literal") or {}
    return str(literal.get("text", "")) if literal.get("kind") == kind else None


def _refused(what: str) -> InvalidRequestError:
    return InvalidRequestError(what, "SQL", "write a smaller statement")
