"""A bound condition over a batch of files: can a row make it true, false, null?

Why three answers: with all of them `not`, `<>`, `in` and `is null` need no rules of their own, and both
questions a scan asks fall out: a file might match when true is possible, and must match when nothing else is.
Contract: an answer is no only when proven; whole batches at a time, never a loop over files.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lazydelta.predicate.expression import Operator
from lazydelta.predicate.facts import FileFacts
from lazydelta.predicate.flags import Flags, flags_of
from lazydelta.predicate.nodes import (
    All,
    BoundColumn,
    Compare,
    Fixed,
    FixedUnlessNull,
    Member,
    Negation,
    Node,
    NullTest,
    Pattern,
    Some,
)
from lazydelta.predicate.ranges import ColumnRange, column_range

_OPPOSITE: dict[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_NAN_WINS: frozenset[Operator] = frozenset((">", ">=", "<>"))  # NaN is greatest, as in Spark and DuckDB
_SPANS_MAX = 16  # a longer list of texts or decimals is judged by spans of neighbours


class Outcome(msgspec.Struct, frozen=True, eq=False):
    """Per file: which results some row may have."""

    can_be_true: Flags
    can_be_false: Flags
    can_be_null: Flags


def evaluate(node: Node, facts: FileFacts, time_zone: str) -> Outcome:
    """What the condition can come to in each file."""
    return _Evaluation(facts, time_zone).outcome(node)


class _Evaluation:
    """One batch: what is known of each column is worked out once."""

    def __init__(self, facts: FileFacts, time_zone: str) -> None:
        self.facts = facts
        self.time_zone = time_zone
        self.ranges: dict[BoundColumn, ColumnRange] = {}

    def outcome(self, node: Node) -> Outcome:  # noqa: PLR0911  # one case per node
        match node:
            case All(parts):
                return _combined((self.outcome(part) for part in parts), is_and=True)
            case Some(parts):
                return _combined((self.outcome(part) for part in parts), is_and=False)
            case Negation(part):
                inner = self.outcome(part)
                return Outcome(inner.can_be_false, inner.can_be_true, inner.can_be_null)
            case Fixed(value):
                return self.fixed(value)
            case NullTest(column):
                known = self.range_of(column)
                return Outcome(known.may_be_null, _has_value(known), np.zeros(self.facts.row_count, bool))
            case FixedUnlessNull(column, value):
                known = self.range_of(column)
                nothing = np.zeros(self.facts.row_count, bool)
                has_value = _has_value(known)
                true, false = (has_value, nothing) if value else (nothing, has_value)
                return Outcome(true, false, known.may_be_null)
            case Compare():
                return _compare(self.range_of(node.column), node)
            case Member():
                return _member(self.range_of(node.column), node)
            case Pattern():
                return _pattern(self.range_of(node.column), node)
        raise AssertionError(f"no evaluation of {type(node).__name__}")

    def fixed(self, value: bool | None) -> Outcome:
        def everywhere(answer: bool) -> Flags:
            return np.full(self.facts.row_count, answer)

        return Outcome(everywhere(value is True), everywhere(value is False), everywhere(value is None))

    def range_of(self, column: BoundColumn) -> ColumnRange:
        if column not in self.ranges:
            self.ranges[column] = column_range(column, self.facts, self.time_zone)
        return self.ranges[column]


def _combined(parts: Iterator[Outcome], *, is_and: bool) -> Outcome:
    """Kleene's `and`; `or` is the same with true and false in each other's place.

    Parts are taken as independent, which can only make more results possible, and one at a time: a filter
    that a program wrote has thousands of them.
    """
    first = next(parts)
    row_count = len(first.can_be_null)
    all_won, none_lost = np.ones(row_count, bool), np.ones(row_count, bool)
    some_lost, some_undecided = np.zeros(row_count, bool), np.zeros(row_count, bool)
    for part in itertools.chain((first,), parts):
        won, lost = (part.can_be_true, part.can_be_false) if is_and else (part.can_be_false, part.can_be_true)
        all_won &= won
        some_lost |= lost
        none_lost &= won | part.can_be_null
        some_undecided |= part.can_be_null
    # Null: no part lost, at least one is null.
    can_be_null = none_lost & some_undecided
    return Outcome(all_won, some_lost, can_be_null) if is_and else Outcome(some_lost, all_won, can_be_null)


# --- leaves --------------------------------------------------------------------


def _compare(known: ColumnRange, node: Compare) -> Outcome:
    return Outcome(
        _can_satisfy(known, node.operator, node),
        _can_satisfy(known, _OPPOSITE[node.operator], node),
        known.may_be_null,
    )


def _can_satisfy(known: ColumnRange, operator: Operator, node: Compare) -> Flags:
    """Whether some value in the range stands in that relation to the literal."""
    literal = node.value
    if pa.types.is_floating(literal.type) and np.isnan(literal.as_py()):
        number_wins, nan_wins = operator in ("<", "<=", "<>"), operator in ("=", "<=", ">=")
        return (known.may_have_value & number_wins) | (known.may_be_nan & nan_wins)
    if node.is_rounded:
        # Some readers compare with the float nearest to the literal, some with the literal itself.
        if operator == "<>":
            return _has_value(known)
        operator = {"<": "<=", ">": ">="}.get(operator, operator)  # type: ignore[assignment]  # operators all
    within = known.may_have_value & _interval_can(known, operator, literal)
    return within | known.may_be_nan if operator in _NAN_WINS else within


def _interval_can(known: ColumnRange, operator: Operator, literal: pa.Scalar) -> Flags | np.bool_:
    match operator:
        case "<":
            return _holds(pc.less, known.low, literal)
        case "<=":
            return _holds(pc.less_equal, known.low, literal)
        case ">":
            return _reaches(known, literal, pc.greater)
        case ">=":
            return _reaches(known, literal, pc.greater_equal)
        case "=":
            return _holds(pc.less_equal, known.low, literal) & _reaches(known, literal, pc.greater_equal)
        case "<>":
            return ~_all_equal(known, literal)


def _reaches(known: ColumnRange, literal: pa.Scalar, relation: pc.Function) -> Flags | np.bool_:
    """Whether values may go up to the literal (or past it, as the relation says)."""
    reached = _holds(relation, known.high, literal)
    if known.is_high_prefix and known.high is not None:
        # A cut max stands for all that start with it (PROTOCOL.md, "Per-file Statistics", footnote 1).
        return reached | flags_of(pc.is_in(known.high, value_set=_prefixes(literal, known.high)))
    return reached


def _all_equal(known: ColumnRange, literal: pa.Scalar) -> Flags | np.bool_:
    if known.low is None or known.high is None or known.is_high_prefix:
        return np.bool_(False)
    both = pc.and_(pc.equal(known.low, literal), pc.equal(known.high, literal))
    return flags_of(pc.fill_null(both, False))


def _member(known: ColumnRange, node: Member) -> Outcome:
    can_be_in = _can_be_in(known, node.values)
    can_be_out = _has_value(known) if node.has_rounded else _can_be_out(known, node.values)
    if not node.has_null:
        return Outcome(can_be_in, can_be_out, known.may_be_null)
    # A null in the list: what equals no other value may equal this one, so the answer is null, not false.
    return Outcome(can_be_in, np.zeros_like(can_be_out), known.may_be_null | can_be_out)


def _can_be_in(known: ColumnRange, values: pa.Array) -> Flags:
    numbers, has_nan = _split_nan(values)
    if len(numbers) == 0:  # no value of the column's type is in the list, not even one that is unknown
        possible = np.zeros(len(known.may_have_value), bool)
    elif known.is_single and known.low is not None:
        possible = _is_one_of(known.low, numbers) | ~flags_of(known.low.is_valid())
    elif _is_machine_number(numbers.type):
        possible = _holds_one_of(known, numbers)
    else:
        possible = np.zeros(len(known.may_have_value), bool)
        for first, last in _spans(numbers):
            possible |= _holds(pc.less_equal, known.low, last) & _reaches(known, first, pc.greater_equal)
    return (known.may_have_value & possible) | (known.may_be_nan & has_nan)


def _holds_one_of(known: ColumnRange, values: pa.Array) -> Flags:
    """Whether the least value that is not below the range is not above it either."""
    low, high = (
        pc.fill_null(pa.nulls(len(known.may_have_value), values.type) if bound is None else bound, unbounded)
        for bound, unbounded in ((known.low, values[0]), (known.high, values[-1]))
    )
    ordered = _machine_numbers(values)
    at = np.searchsorted(ordered, _machine_numbers(low))
    is_held: Flags = (at < len(ordered)) & (
        ordered[np.minimum(at, len(ordered) - 1)] <= _machine_numbers(high)
    )
    return is_held


def _is_machine_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind))


def _machine_numbers(array: pa.Array) -> NDArray[Any]:  # Any: integers or floats of any width
    """As numpy orders them; dates and timestamps by their ticks."""
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    numbers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers


def _can_be_out(known: ColumnRange, values: pa.Array) -> Flags:
    numbers, has_nan = _split_nan(values)
    may_be_other = known.may_have_value
    if known.low is not None and known.high is not None and not known.is_high_prefix:
        is_one_value = flags_of(pc.fill_null(pc.equal(known.low, known.high), False))
        may_be_other = may_be_other & ~(is_one_value & _is_one_of(known.low, numbers))
    return may_be_other | (known.may_be_nan & (not has_nan))


def _pattern(known: ColumnRange, node: Pattern) -> Outcome:
    value = known.may_have_value
    if known.low is None or known.high is None:
        return Outcome(value, value, known.may_be_null)
    if known.is_single:
        matched = pc.match_like(known.low, node.pattern)
        can_match, can_miss = pc.fill_null(matched, True), pc.fill_null(pc.invert(matched), True)
        return Outcome(value & flags_of(can_match), value & flags_of(can_miss), known.may_be_null)
    prefix = pa.scalar(node.prefix, known.low.type)
    starts_below = _holds(pc.less_equal, known.low, prefix) | flags_of(
        pc.fill_null(pc.starts_with(known.low, node.prefix), True)
    )
    can_match = starts_below & _reaches(known, prefix, pc.greater_equal)
    can_miss = np.ones(len(value), bool)
    if node.is_prefix_only:
        # What lies between two texts with this prefix has it too, also past a cut max.
        both = pc.and_(pc.starts_with(known.low, node.prefix), pc.starts_with(known.high, node.prefix))
        can_miss = ~flags_of(pc.fill_null(both, False))
    return Outcome(value & can_match, value & can_miss, known.may_be_null)


# --- small things --------------------------------------------------------------


def _has_value(known: ColumnRange) -> Flags:
    return known.may_have_value | known.may_be_nan


def _holds(relation: pc.Function, bound: pa.Array | None, literal: pa.Scalar) -> Flags | np.bool_:
    """Where the relation holds between bound and literal; no bound rules nothing out."""
    if bound is None:
        return np.bool_(True)
    return flags_of(pc.fill_null(relation(bound, literal), True))


def _prefixes(literal: pa.Scalar, bounds: pa.Array) -> pa.Array:
    """Those that are as long as one of the bounds: a literal may be long, and has as many in all."""
    whole = literal.as_py()
    measure = pc.binary_length if isinstance(whole, bytes) else pc.utf8_length
    lengths = pc.unique(measure(bounds)).drop_null().to_pylist()
    return pa.array([whole[:length] for length in lengths if length <= len(whole)], literal.type)


def _spans(values: pa.Array) -> list[tuple[pa.Scalar, pa.Scalar]]:
    """The sorted values as at most so many closed intervals."""
    step = max(1, -(-len(values) // _SPANS_MAX))
    return [(values[at], values[min(at + step, len(values)) - 1]) for at in range(0, len(values), step)]


def _split_nan(values: pa.Array) -> tuple[pa.Array, bool]:
    if not pa.types.is_floating(values.type):
        return values, False
    is_nan = pc.is_nan(values)
    return values.filter(pc.invert(is_nan)), bool(pc.any(is_nan).as_py())


def _is_one_of(array: pa.Array, values: pa.Array) -> Flags:
    if pa.types.is_floating(array.type):
        # Hashed look-ups tell −0.0 from 0.0; comparisons do not, and neither must a filter.
        array, values = pc.add(array, pa.scalar(0.0, array.type)), pc.add(values, pa.scalar(0.0, values.type))
    return flags_of(pc.is_in(array, value_set=values.cast(array.type)))
