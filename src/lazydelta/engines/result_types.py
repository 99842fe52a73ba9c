"""Types of DuckDB's that Arrow cannot hold as they are.

Contract: a result that would lose something on its way to Arrow is refused, by the column and with the cast
that keeps it; nothing is changed silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lazydelta.engines.session import Duck
from lazydelta.errors import InvalidRequestError

# What would become of them, and what to cast them to.
_LOSSY = {
    "uhugeint": ("which Arrow cannot hold: DuckDB would wrap it", "HUGEINT, DOUBLE or VARCHAR"),
    "time with time zone": ("whose zone Arrow cannot hold", "VARCHAR, or to TIME without the zone"),
    "bit": ("which Arrow has no type for", "VARCHAR"),
}
_NESTED = frozenset({"list", "array", "struct", "map", "union"})


def check_types(relation: Duck) -> None:
    """Raise where DuckDB would give other values to Arrow than it has."""
    for name, kind in zip(relation.columns, relation.types, strict=True):
        for inner in _kinds(kind):
            if inner.id in _LOSSY:
                why, other = _LOSSY[inner.id]
                raise InvalidRequestError(
                    f"the column {name!r} is {kind}, {why}"[:500], "sql", f"cast it to {other} in the query"
                )


def _kinds(kind: Any) -> Iterator[Any]:  # Any: DuckDB's
    """The type, and those inside it."""
    yield kind
    if kind.id in _NESTED:
        for _, inner in kind.children:
            if hasattr(inner, "id"):  # an array tells its length besides
                yield from _kinds(inner)
