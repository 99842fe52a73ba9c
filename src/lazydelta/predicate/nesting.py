"""How deep a filter may nest, and the error of one that nests deeper.

Why: reading, binding, printing and judging a filter recurse once per level, on a stack that callers share.
Contract: a filter that passes `check_depth` fits; width has no bound.
"""

from __future__ import annotations

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate.expression import And, Expression, Not, Or

DEPTH_MAX = 100  # at most three frames a level: a third of Python's usual stack
_SHOWN_CHARACTERS_MAX = 300


def check_depth(expression: Expression, where: str) -> None:
    """Refuse an expression of more than `DEPTH_MAX` levels."""
    level = [expression]
    for _ in range(DEPTH_MAX):
        level = [inner for outer in level for inner in _parts(outer)]
        if not level:
            return
    raise too_deep(where)


def too_deep(where: str) -> InvalidRequestError:
    """The error of a filter with too many levels."""
    cut = where if len(where) <= _SHOWN_CHARACTERS_MAX else where[:_SHOWN_CHARACTERS_MAX] + "…"
    return InvalidRequestError(
        "the filter nests too deeply", cut, "write it flatter, or use in (…) for many values of a column"
    )


def _parts(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case And(parts) | Or(parts):
            return parts
        case Not(part):
            return (part,)
    return ()
