"""Values for `declare query_parameters`: what clients send as text, in the types that the query declares.

Contract: a value that is not of its type, one for a parameter that is not declared and one that is missing
are errors. Values never become part of the SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lazydelta.engines.kql.constants import moment, span
from lazydelta.engines.kql.errors import BAD_VALUE, KqlError, kql_error
from lazydelta.engines.kql.problems import place_of_name
from lazydelta.engines.kql.tokens import string_value

_TYPED = re.compile(
    r"\s*(?:bool|int|long|real|double|decimal|datetime|date|timespan|time|guid|dynamic)\((.*)\)\s*\Z",
    re.DOTALL,
)
_QUOTED = re.compile(r"""\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\Z""", re.DOTALL)
_NULL = "null"


def bound_parameters(
    text: str, declared: Sequence[Any], given: Mapping[str, Any]
) -> dict[
    str, Any
]:  # Any: declarations of the library; values as text or JSON gives them, and as DuckDB takes them
    """A value for each parameter, by its place in the SQL."""
    from duckdb_kql.params import coerce

    names = {one.name for one in declared}
    for name in given:
        if name not in names:
            known = f"it declares {', '.join(sorted(names))}" if names else "it declares none"
            raise kql_error(f"the query declares no parameter {name!r}", text, None, known, BAD_VALUE)
    values = {}
    for one in declared:
        if one.name not in given and one.default is None:
            raise kql_error(
                f"the parameter {one.name!r} has no value",
                text,
                place_of_name(text, one.name),
                "give one, or a default in the query",
                BAD_VALUE,
            )
        value = given.get(one.name, one.default)
        try:
            values[one.slot] = coerce(_read(value, one.type), one.type, one.name)
        except KqlError:
            raise
        except Exception as error:
            raise kql_error(
                f"the parameter {one.name!r} is no {one.type}: {value!r}"[:300],
                text,
                place_of_name(text, one.name),
                f"give a value as {one.type}(…) takes it",
                BAD_VALUE,
            ) from error
    return values


def _read(value: Any, kind: str) -> Any:  # noqa: PLR0911  # one case per type; Any: as above
    """What a text says in a type; other values as they are."""
    if not isinstance(value, str):
        return value
    if kind == "string":
        return string_value(value.strip()) if _QUOTED.match(value) else value
    inside = _TYPED.match(value)
    plain = value.strip() if inside is None else inside[1].strip()
    if plain.lower() == _NULL:
        return None
    if kind in ("int", "long"):
        return int(plain, 0)
    if kind == "real":
        return float(plain)
    if kind == "bool":
        return {"true": True, "1": True, "false": False, "0": False}[plain.lower()]
    if kind == "datetime":
        return moment(plain.strip("'\"")) or plain.strip("'\"")
    if kind == "timespan":
        return span(plain.strip("'\"")) or plain.strip("'\"")
    return plain
