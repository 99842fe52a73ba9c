"""The `stats` JSON of `add` actions, decoded for a few columns, a slice of files at a time.

Why: on a checkpoint without typed statistics this runs over every file of the table. A decoder made for just
the wanted fields skips the rest of each document without building it. Contract: numbers are read exactly
(longs beyond 2^53, decimals by their digits); a row that does not decode says nothing and costs its
neighbours nothing.
Spec: PROTOCOL.md, "Per-file Statistics".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DecimalException
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.protocol.arrow_casts import cast_where_possible
from lazydelta.protocol.paths import string_parts
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.value_text import values_from_text

_SLICE_ROWS = 2048  # decoded at once: bounds the Python objects alive at a time
_NOTHING = "{}"
_ESCAPED = re.compile(r"[\x00-\x1f\"\\]")
_NOTHING_BYTES = b"{}"
_DECIMAL_DIGITS = Context(prec=80)  # more than any decimal and its exponent need

_FLOAT_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

Path = tuple[str, ...]
Sides = frozenset[str]  # of "min" and "max"
Bounds = tuple[pa.Array | None, pa.Array | None, pa.Array]


class DecodedStatistics(msgspec.Struct, frozen=True, eq=False):
    """Columns of one batch: per wanted column its min, max and null count."""

    num_records: pa.Array
    tight_bounds: pa.Array
    columns: Sequence[Bounds]


def decode_statistics(
    stats: pa.StringArray,
    paths: tuple[Path, ...],
    bound_types: tuple[str | None, ...],
    sides: tuple[Sides, ...],
    *,
    lean: bool = False,
) -> DecodedStatistics:
    """Decode the statistics of `paths`; `bound_types` holds Delta type names, None for null counts alone.

    `sides` says which bounds of each are wanted. When `lean`, counts are null up to the first slice in which
    a wanted bound is missing.
    """
    full = _plan(paths, bound_types, sides, has_counts=True)
    is_lean = lean and None not in bound_types
    plan = _plan(paths, bound_types, sides, has_counts=False) if is_lean else full
    pieces = []
    for at in range(0, len(stats), _SLICE_ROWS):
        rows = stats.slice(at, _SLICE_ROWS)
        piece = _decode_slice(rows, plan)
        if plan is not full and _lacks_bounds(piece, without_statistics=rows.null_count):
            plan = full  # where one file has nulls only, others will: decoding twice stays the exception
            piece = _decode_slice(rows, plan)
        pieces.append(piece)
    if not pieces:
        pieces = [plan.columns_of([])]
    return pieces[0] if len(pieces) == 1 else _concatenated(pieces)


class _Plan(msgspec.Struct, frozen=True, eq=False):
    """A decoder for one set of columns, and where each of them sits in what it decodes to."""

    decoder: Any  # msgspec.json.Decoder of a struct that is made at run time
    empty: Any
    bound_types: tuple[str | None, ...]
    leaves: tuple[str, ...]
    sides: tuple[Sides, ...]
    has_counts: bool

    def columns_of(self, rows: Sequence[Any]) -> DecodedStatistics:
        columns: list[Bounds] = []
        for leaf, type_name, sides in zip(self.leaves, self.bound_types, self.sides, strict=True):
            low = high = None
            if type_name is not None and "min" in sides:
                low = _bound_array(_pluck(rows, f"low.{leaf}"), type_name, is_min=True)
            if type_name is not None and "max" in sides:
                high = _bound_array(_pluck(rows, f"high.{leaf}"), type_name, is_min=False)
            columns.append((low, high, self.counts_of(rows, f"nulls.{leaf}")))
        has_tight = self.has_counts and bool(rows)
        tight = (
            pa.array(_pluck(rows, "tight_bounds"), pa.bool_())
            if has_tight
            else pa.nulls(len(rows), pa.bool_())
        )
        return DecodedStatistics(self.counts_of(rows, "num_records"), tight, columns)

    def counts_of(self, rows: Sequence[Any], dotted: str) -> pa.Array:
        return _integers(_pluck(rows, dotted)) if self.has_counts else pa.nulls(len(rows), pa.int64())


def _lacks_bounds(piece: DecodedStatistics, *, without_statistics: int) -> bool:
    """Whether a file that has statistics lacks one of the bounds that were decoded."""
    decoded = [bound for low, high, _ in piece.columns for bound in (low, high) if bound is not None]
    return any(bound.null_count > without_statistics for bound in decoded)


def _decode_slice(stats: pa.StringArray, plan: _Plan) -> DecodedStatistics:
    # Rows are decoded as one document. When each begins with a brace and ends with one, no object can reach
    # over two rows: after a closing brace none may open.
    is_object = _is_object(stats)
    if np.count_nonzero(is_object) != len(stats) - stats.null_count:
        stats = pc.if_else(pa.array(is_object), stats, _NOTHING)
    return plan.columns_of(_decode_rows(stats, plan))


def _is_object(stats: pa.StringArray) -> npt.NDArray[np.bool_]:
    """Which rows begin and end with a brace."""
    offsets, data = string_parts(stats)
    starts, ends = offsets[:-1], offsets[1:]
    found = np.zeros(len(stats), np.bool_)
    rows = np.flatnonzero(ends - starts >= len(_NOTHING))
    found[rows] = (data[starts[rows]] == _NOTHING_BYTES[0]) & (data[ends[rows] - 1] == _NOTHING_BYTES[1])
    return found


def _decode_rows(stats: pa.StringArray, plan: _Plan) -> list[Any]:
    """Decode all rows as one document; where that fails, by halves, down to the rows that say nothing."""
    lines = pc.binary_join_element_wise(stats, "", "\n", null_handling="replace", null_replacement=_NOTHING)
    offsets, data = string_parts(lines)
    document = data[offsets[0] : offsets[-1]]
    try:
        decoded: list[Any] = plan.decoder.decode_lines(document)
    except (msgspec.DecodeError, UnicodeDecodeError):
        decoded = []
    if len(decoded) == len(stats):
        return decoded
    if len(stats) == 1:
        return [plan.empty]
    middle = len(stats) // 2
    return _decode_rows(stats.slice(0, middle), plan) + _decode_rows(stats.slice(middle), plan)


def _pluck(rows: Sequence[Any], dotted: str) -> list[Any]:
    try:
        return list(map(attrgetter(dotted), rows))
    except AttributeError:  # an explicit null where an object is expected
        names = dotted.split(".")
        return [functools.reduce(lambda part, name: getattr(part, name, None), names, row) for row in rows]


# --- from JSON values to Arrow -------------------------------------------------


def _bound_array(values: list[Any], type_name: str, *, is_min: bool) -> pa.Array | None:
    wanted = arrow_type(PrimitiveType(type_name))
    if pa.types.is_integer(wanted):
        return cast_where_possible(_integers(values), wanted)
    if pa.types.is_floating(wanted):
        # A float's shortest digits name it only as a float: read as double, then rounded back.
        return _floats(values).cast(wanted)
    if pa.types.is_decimal(wanted):
        return _decimals(values, wanted, rounding=ROUND_FLOOR if is_min else ROUND_CEILING)
    if pa.types.is_boolean(wanted):
        return pa.array(values, pa.bool_())
    return values_from_text(pa.array(values, pa.string()), type_name)


def _integers(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.int64())
    except OverflowError:
        limit = 1 << 63
        return pa.array([v if v is not None and -limit <= v < limit else None for v in values], pa.int64())


def _floats(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        words = (_FLOAT_WORDS.get(v) if isinstance(v, str) else v for v in values)
        return pa.array(list(words), pa.float64())


def _decimals(values: list[Any], wanted: pa.Decimal128Type, *, rounding: str) -> pa.Array:
    try:
        return pa.array(values, wanted)
    except pa.ArrowInvalid:
        return pa.array([_on_grid(v, wanted, rounding) for v in values], wanted)


def _on_grid(value: Decimal | None, wanted: pa.Decimal128Type, rounding: str) -> Decimal | None:
    """The nearest decimal of that scale on the outer side: arithmetic in f64 leaves digits past the scale."""
    if value is None or not value.is_finite():
        return None
    try:
        placed = value.quantize(Decimal(1).scaleb(-wanted.scale), rounding, _DECIMAL_DIGITS)
    except DecimalException:
        return None
    return placed if placed.adjusted() < wanted.precision - wanted.scale else None


# --- the decoder ---------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _plan(
    paths: tuple[Path, ...],
    bound_types: tuple[str | None, ...],
    sides: tuple[Sides, ...],
    *,
    has_counts: bool,
) -> _Plan:
    fields: dict[str, tuple[str, Any, Any]] = {}
    for field, name, side in (("low", "minValues", "min"), ("high", "maxValues", "max")):
        wanted = zip(paths, bound_types, sides, strict=True)
        bounded = [(path, _json_type(kind)) for path, kind, of in wanted if kind and side in of]
        if bounded:
            values = _section(bounded)
            fields[field] = (name, values | None, values())
    if has_counts:
        nulls = _section([(path, int) for path in paths])
        fields["nulls"] = ("nullCount", nulls | None, nulls())
        fields["num_records"] = ("numRecords", int | None, None)
        fields["tight_bounds"] = ("tightBounds", bool | None, None)
    row = _struct(fields)
    leaves = tuple(".".join(map(_attribute, path)) for path in paths)
    return _Plan(msgspec.json.Decoder(row), row(), bound_types, leaves, sides, has_counts)


def _section(leaves: Iterable[tuple[Path, Any]]) -> type[msgspec.Struct]:
    """A struct with exactly these leaves, structs inside structs as the paths say."""
    fields: dict[str, tuple[str, Any, Any]] = {}
    deeper: dict[str, list[tuple[Path, Any]]] = {}
    for (name, *rest), leaf_type in leaves:
        if rest:
            deeper.setdefault(name, []).append((tuple(rest), leaf_type))
        else:
            fields[_attribute(name)] = (name, leaf_type | None, None)
    for name, inner in deeper.items():
        nested = _section(inner)
        fields.setdefault(_attribute(name), (name, nested | None, nested()))
    return _struct(fields)


def _struct(fields: dict[str, tuple[str, Any, Any]]) -> type[msgspec.Struct]:
    return msgspec.defstruct(
        "Stats",
        [(attribute, field_type, default) for attribute, (_, field_type, default) in fields.items()],
        rename={attribute: _key(name, attribute) for attribute, (name, _, _) in fields.items()},
        frozen=True,
        gc=False,  # they hold no cycles; untracked, they cost the collector nothing
    )


def _key(name: str, attribute: str) -> str:
    """The name in JSON. msgspec knows no names that JSON escapes: such columns have no statistics."""
    return f"{attribute} is not told" if _ESCAPED.search(name) else name


def _attribute(name: str) -> str:
    """A Python attribute for any physical name."""
    return f"c{name.encode('utf-8', 'surrogatepass').hex()}"


def _json_type(type_name: str) -> Any:
    arrow = arrow_type(PrimitiveType(type_name))
    kinds: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
        (pa.types.is_integer, int),
        (pa.types.is_floating, float | str),  # "NaN" and "Infinity" are strings in JSON
        (pa.types.is_decimal, Decimal),
        (pa.types.is_boolean, bool),
    )
    return next((json_type for is_kind, json_type in kinds if is_kind(arrow)), str)


def _concatenated(pieces: Sequence[DecodedStatistics]) -> DecodedStatistics:
    columns: list[Bounds] = []
    for of_column in zip(*(piece.columns for piece in pieces), strict=True):
        lows, highs, null_counts = zip(*of_column, strict=True)
        columns.append((_joined(lows), _joined(highs), _joined(null_counts)))
    return DecodedStatistics(
        _joined([piece.num_records for piece in pieces]),
        _joined([piece.tight_bounds for piece in pieces]),
        columns,
    )


def _joined(arrays: Sequence[pa.Array | None]) -> pa.Array | None:
    return None if arrays[0] is None else pa.concat_arrays(arrays)
