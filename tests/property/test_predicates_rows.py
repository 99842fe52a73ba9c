"""Rows are judged as a dumb twin judges them: plain Python, one value at a time, exact arithmetic."""

from __future__ import annotations

import math
import operator
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lazydelta.predicate import Column, bind, matches
from tests.support.written_files import LITERALS, PARTITIONS, SCHEMA, VALUES, batch_of, row_of

OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("column", sorted(VALUES))
def test_comparisons_of_rows_agree_with_plain_python(column: str) -> None:
    values = [None, *VALUES[column]]
    batch = batch_of([row_of(**{column: value}) for value in values])
    path = (column, "inner") if column == "outer" else (column,)
    for literal in LITERALS[column]:
        for name, compare in OPERATORS.items():
            expression = getattr(Column(path), f"__{compare.__name__}__")(literal)
            predicate = bind(expression, SCHEMA, PARTITIONS, where="memory")
            expected = [
                None if value is None else compare(_order(value), _order(_as_column(column, literal)))
                for value in values
            ]
            assert matches(predicate, batch).to_pylist() == expected, f"{column} {name} {literal!r}"


@pytest.mark.parametrize("column", sorted(VALUES))
def test_lists_of_values_agree_with_plain_python(column: str) -> None:
    values = [None, *VALUES[column]]
    batch = batch_of([row_of(**{column: value}) for value in values])
    path = (column, "inner") if column == "outer" else (column,)
    literals = LITERALS[column]
    for chosen in (literals, literals[:1], literals[1:3], [], [*literals[:2], None]):
        wanted = [_order(_as_column(column, literal)) for literal in chosen if literal is not None]
        miss = None if None in chosen else False
        expected = [None if value is None else True if _order(value) in wanted else miss for value in values]
        predicate = bind(Column(path).is_in(chosen), SCHEMA, PARTITIONS, where="memory")
        assert matches(predicate, batch).to_pylist() == expected, f"{column} in {chosen!r}"


def _as_column(column: str, literal: Any) -> Any:
    """Digits with a point or an exponent mean the nearest double, floats take the nearest float."""
    if column == "single" and math.isfinite(literal) and abs(literal) < 3e38:
        return float(np.float32(float(literal)))
    if column in ("double", "widened") and isinstance(literal, Decimal) and abs(literal) < Decimal("1e308"):
        return float(literal)
    return literal


def _order(value: Any) -> Any:
    """A key that orders as Spark does: NaN above all, text by its bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float) and not math.isfinite(value):
        return (3, 0) if math.isnan(value) else (2, 0) if value > 0 else (0, 0)
    if isinstance(value, bool | date | datetime):
        return value
    return (1, Fraction(value))
