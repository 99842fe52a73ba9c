"""Bounds of a double column that was a float: one reading, wherever they come from.

Why: of the float nearest to 0.1 some writers say 0.1 and some 0.10000000149011612. As text both name the same
float; once the column is a double they are two numbers, and what typed the float first can no longer tell
which it was. Contract: pure. A bound that is either reading of a float becomes the outer one of both, so that
it holds whichever was meant; any other number was written as a double and stays. Twice is the same as once.
Spec: PROTOCOL.md, "Type Widening".
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def outer_reading(bound: pa.Array, *, is_min: bool) -> pa.Array:
    """Doubles, with those that may stand for a float moved to the outer of its two readings."""
    exact, digits = readings_of(bound.cast(pa.float32(), safe=False))
    is_reading = pc.or_(pc.equal(bound, exact), pc.equal(bound, digits))
    return pc.if_else(is_reading, _outer(exact, digits, is_min=is_min), bound)


def widened_floats(floats: pa.Array, *, is_min: bool) -> pa.Array:
    """Bounds that were typed as floats, as doubles."""
    exact, digits = readings_of(floats)
    return _outer(exact, digits, is_min=is_min)


def readings_of(floats: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The numbers that the floats are, and those that their shortest digits say."""
    return floats.cast(pa.float64()), floats.cast(pa.string()).cast(pa.float64())


def _outer(exact: pa.Array, digits: pa.Array, *, is_min: bool) -> pa.Array:
    return pc.min_element_wise(exact, digits) if is_min else pc.max_element_wise(exact, digits)
