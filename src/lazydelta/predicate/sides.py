"""Which bounds of a column can rule a file out: `x < 5` needs the minimum alone.

Contract: a side that is left out is unknown to whoever judges files, so an answer can only become less sharp;
what is named here is enough for `might_match`.
"""

from __future__ import annotations

from lazydelta.predicate.nodes import All, BoundColumn, Compare, Negation, Node, Some, columns_of
from lazydelta.protocol.statistics import BOTH_SIDES

_BELOW = frozenset({"<", "<="})
_ABOVE = frozenset({">", ">="})


def sides_needed(node: Node, column: BoundColumn, *, is_negated: bool = False) -> frozenset[str]:
    """The sides of this column that the condition looks at."""
    match node:
        case All(parts) | Some(parts):
            found = (sides_needed(part, column, is_negated=is_negated) for part in parts)
            return frozenset().union(*found)
        case Negation(part):
            return sides_needed(part, column, is_negated=not is_negated)
        case Compare(named, operator) if named == column and operator in _BELOW | _ABOVE:
            return frozenset({"min" if (operator in _BELOW) != is_negated else "max"})
        case _:
            return BOTH_SIDES if column in columns_of(node) else frozenset()
