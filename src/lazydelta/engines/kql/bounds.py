"""How large a query may be; what it may make is in `growth.py`.

Why: the parser is plain Python and recursive, the library writes the arguments of some functions eight times
over, and DuckDB works out constants while it plans, where nothing can interrupt it. Contract: what goes
beyond is refused by its name and place before it is parsed, or before SQL is made of it.
"""

from __future__ import annotations

from typing import Any

from lazydelta import limits
from lazydelta.engines.kql.errors import TOO_LARGE, KqlError, kql_error, place_of
from lazydelta.engines.kql.tokens import tokens
from lazydelta.engines.kql.trees import parts_of

Node = Any  # Any: of the translation library, which is an extra
_OPENS, _CLOSES = "([{", ")]}"
# How often the SQL of a function may repeat the SQL of what it is given; measured on the library.
_REPEATS = {"strcat": 8, "tostring": 8, "strcat_delim": 8, "strcat_array": 8}
_REPEATS_OTHERS = 3
_OWN_CHARACTERS = 60


def check_text(text: str) -> None:
    """Raise where a query is longer or deeper than anybody writes one."""
    if len(text) > limits.KQL_CHARACTERS_MAX:
        raise _too_large(
            text[:1000], f"the query has {len(text):,} characters, more than {limits.KQL_CHARACTERS_MAX:,}"
        )
    words = tokens(text)
    if len(words) > limits.KQL_WORDS_MAX:
        raise _too_large(text, f"the query has {len(words):,} words, more than {limits.KQL_WORDS_MAX:,}")
    depth = 0
    for word in words:
        depth += (word.text in _OPENS) - (word.text in _CLOSES)
        if depth > limits.KQL_NESTING_MAX:
            raise _too_large(
                text, f"brackets are nested deeper than {limits.KQL_NESTING_MAX}", offset=word.at
            )


def check_size(text: str, query: Node) -> None:
    """Raise where the SQL of a query would be huge; before others walk a tree that shares its parts."""
    if _sql_size(query, {}) > limits.KQL_SQL_CHARACTERS_MAX:
        raise _too_large(
            text,
            "its functions are nested so deep, or its lets used so often, that its SQL would be too large",
        )


def _sql_size(node: Node, known: dict[int, float]) -> float:
    """About how long the SQL becomes; what is used twice counts twice, and is looked at once."""
    from duckdb_kql import ir

    size = known.get(id(node))
    if size is None:
        inside = sum(_sql_size(part, known) for part in parts_of(node))
        repeats = 1
        if isinstance(node, ir.FunctionCall):
            repeats = _REPEATS.get(node.name, _REPEATS_OTHERS)
        own = len(node.value) if isinstance(node, ir.Literal) and isinstance(node.value, str) else 0
        size = known[id(node)] = _OWN_CHARACTERS + own + repeats * inside
    return size


def _too_large(text: str, what: str, *, offset: int | None = None) -> KqlError:
    place = place_of(text, offset) if offset is not None else None
    return kql_error(f"the query is too large: {what}", text, place, "write a smaller query", TOO_LARGE)
