"""Which bounds of a column can rule a file out: `x < 5` needs the minimum alone.

Contract: a side that is left out is unknown to whoever judges files, so an answer can only become less sharp;
what is named here is enough for `might_match`.
"""

from __future__ import annotations

from lazydelta.predicate.nodes import All, BoundColumn, Compare, Negation, Node, Some, columns_of
from lazydelta.protocol.statistics import BOTH_SIDES

_BELOW = frozenset({"<", "<="})
_ABOVE = frozenset({">", ">="})


def sides_needed(root: Node) -> dict[BoundColumn, frozenset[str]]:
    """The sides of each column that the condition looks at; every part is visited once."""
    sides: dict[BoundColumn, frozenset[str]] = {}
    waiting = [(root, False)]
    while waiting:
        node, is_negated = waiting.pop()
        match node:
            case All(parts) | Some(parts):
                waiting.extend((part, is_negated) for part in parts)
            case Negation(part):
                waiting.append((part, not is_negated))
            case _:
                for column in columns_of(node):  # one, or none
                    sides[column] = sides.get(column, frozenset()) | _leaf_sides(node, is_negated=is_negated)
    return sides


def _leaf_sides(node: Node, *, is_negated: bool) -> frozenset[str]:
    match node:
        case Compare(_, operator) if operator in _BELOW | _ABOVE:
            return frozenset({"min" if (operator in _BELOW) != is_negated else "max"})
    return BOTH_SIDES
