"""Live files as the log has them beside the rows of the sidecar: missing, extra, twice, different.

Why: it is the heart of `verify`, and pure: tables in, findings out.
Contract: both sides hold typed rows (sidecar/format/typed_rows.py) whose keys may meet: a key is the path as
the log spells it with the deletion vector's id. Columns pair up by role and physical path, not by name; one
that a part lacks, or that the table no longer has, is no difference. A value is compared in the part's own
type, because statistics that were typed before a column was widened are not those typed after. NaN equals
NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.protocol.arrow_casts import cast_where_possible
from lazydelta.protocol.float_readings import widened_floats
from lazydelta.sidecar.format.layout import field_kind, field_path
from lazydelta.upkeep.findings import Findings

# No column of a table is called like these.
PART_COLUMN = "\0part"  # which part a row of the sidecar came from
JSON_COLUMN = "\0stats"  # beside typed statistics of the log, the same as JSON where there is any
_KEY_COLUMNS = ("dv.storageType", "dv.pathOrInlineDv", "dv.offset")
_SEPARATOR = "\0"
_VALUE_CHARACTERS_MAX = 80
_COLUMNS_NAMED_MAX = 4

Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class ColumnPair(msgspec.Struct, frozen=True):
    """One column under the names of the two sides."""

    in_log: str
    in_part: str


def column_pairs(log_schema: pa.Schema, part_schema: pa.Schema) -> list[ColumnPair]:
    """The columns that both sides have."""
    names = {_role(field): field.name for field in log_schema}
    return [
        ColumnPair(names[_role(field)], field.name)
        for field in part_schema
        if field.name != PART_COLUMN and _role(field) in names
    ]


def compare_rows(
    log: pa.Table,
    families: Sequence[pa.Table],
    *,
    part_names: Sequence[str],
    findings: Findings,
    retyped: Callable[[pa.Table], pa.Table] | None = None,
    once_float: Collection[str] = (),
) -> None:
    """Compare the rows of the log with those of the sidecar, one table for each schema that parts have.

    `retyped` gives rows of the log with statistics read from their JSON, for those whose typed ones differ.
    `once_float` names the log's bounds that are doubles and were floats.
    """
    chunks = [chunk for table in (log, *families) for chunk in _keys(table).chunks]
    keys = pa.chunked_array(chunks, pa.string())
    codes = keys.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.intp)
    key_count = int(codes.max(initial=-1)) + 1
    log_codes, codes = codes[: log.num_rows], codes[log.num_rows :]
    in_log = np.bincount(log_codes, minlength=key_count)
    in_sidecar = np.bincount(codes, minlength=key_count)
    log_at = np.zeros(key_count, np.intp)
    log_at[log_codes] = np.arange(log.num_rows)
    _note_missing(log, in_sidecar[log_codes] == 0, findings)
    _note_repeated_in_log(log, log_at, in_log, findings)
    ends = np.cumsum([table.num_rows for table in families])
    coded = list(zip(families, np.split(codes, ends[:-1]), strict=True)) if families else []
    repeated = np.flatnonzero((in_sidecar > 1) & (in_log > 0))
    paths = zip(_paths(log, log_at[repeated]), repeated.tolist(), strict=True)
    samples = ((path, _places(code, coded, part_names)) for path, code in paths)
    findings.note_many("twice", len(repeated), samples)
    for table, own in coded:
        _note_extra(table, in_log[own] == 0, part_names, findings)
        once = np.flatnonzero((in_log[own] > 0) & (in_sidecar[own] == 1))
        left, right = log.take(pa.array(log_at[own[once]])), table.take(pa.array(once))
        differing = differing_in(left, right, column_pairs(left.schema, right.schema))
        _forgive_by_float(left, right, differing, once_float)
        if differing and retyped is not None:
            _forgive_by_json(left, right, differing, retyped)
        _note_differing(left, right, differing, part_names, findings)


def differing_in(log: pa.Table, rows: pa.Table, pairs: Sequence[ColumnPair]) -> dict[ColumnPair, Flags]:
    """The columns that differ in some row, with the rows that do; row n is compared with row n."""
    differing: dict[ColumnPair, Flags] = {}
    for pair in pairs:
        left, right = _comparable(log.column(pair.in_log), rows.column(pair.in_part))
        if left is not None and (flags := differing_rows(left, right)).any():
            differing[pair] = flags
    return differing


def differing_rows(left: pa.Array, right: pa.Array) -> Flags:
    """Which rows differ; null equals null, NaN equals NaN, maps are equal whatever their order."""
    if pa.types.is_map(left.type):
        return _differing_maps(left, right)
    if pa.types.is_null(left.type):
        return np.zeros(len(left), np.bool_)
    both_null = pc.and_(left.is_null(), right.is_null())
    equal = pc.or_kleene(pc.fill_null(pc.equal(left, right), False), both_null)
    if pa.types.is_floating(left.type):
        both_nan = pc.and_(pc.fill_null(pc.is_nan(left), False), pc.fill_null(pc.is_nan(right), False))
        equal = pc.or_(equal, both_nan)
    return ~_flags(equal)


def _role(field: pa.Field) -> tuple[object, ...]:
    """What a column stands for: its kind and path, or its name where it is one of the fixed ones."""
    kind = field_kind(field)
    return (field.name,) if kind is None else (kind, field_path(field))


def _keys(rows: pa.Table) -> pa.ChunkedArray:
    """The key of each row as one text; null and empty differ, as offset 0 and no offset do."""
    texts = [rows.column("path")]
    if any(rows.column(name).null_count < rows.num_rows for name in _KEY_COLUMNS):
        for name in _KEY_COLUMNS:
            column = rows.column(name).cast(pa.string())
            marked = pc.binary_join_element_wise("=", column, "", null_handling="emit_null")
            texts.append(pc.fill_null(marked, ""))
    else:
        texts += [pa.scalar("")] * len(_KEY_COLUMNS)
    joined = pc.binary_join_element_wise(*texts, _SEPARATOR)
    return joined if isinstance(joined, pa.ChunkedArray) else pa.chunked_array([joined])


def _note_missing(log: pa.Table, is_missing: Flags, findings: Findings) -> None:
    rows = np.flatnonzero(is_missing)
    samples = ((path, "is live in the log and not in the sidecar") for path in _paths(log, rows))
    findings.note_many("missing", len(rows), samples)


def _note_repeated_in_log(log: pa.Table, log_at: Indices, in_log: Indices, findings: Findings) -> None:
    repeated = np.flatnonzero(in_log > 1)
    samples = (
        (path, f"is in the log's state {in_log[code]} times")
        for path, code in zip(_paths(log, log_at[repeated]), repeated, strict=True)
    )
    findings.note_many("twice", len(repeated), samples)


def _note_extra(rows: pa.Table, is_extra: Flags, part_names: Sequence[str], findings: Findings) -> None:
    extra = np.flatnonzero(is_extra)
    samples = (
        (path, f"is in {part} and not live in the log")
        for path, part in zip(_paths(rows, extra), _parts(rows, extra, part_names), strict=True)
    )
    findings.note_many("extra", len(extra), samples)


def _places(code: int, families: Sequence[tuple[pa.Table, Indices]], part_names: Sequence[str]) -> str:
    names = [
        name for table, codes in families for name in _parts(table, np.flatnonzero(codes == code), part_names)
    ]
    return f"is in the sidecar {len(names)} times: in {', '.join(names)}"


def _note_differing(
    log: pa.Table,
    rows: pa.Table,
    differing: dict[ColumnPair, Flags],
    part_names: Sequence[str],
    findings: Findings,
) -> None:
    if not any(flags.any() for flags in differing.values()):
        return
    found = np.flatnonzero(np.logical_or.reduce(list(differing.values())))
    findings.note_many("differs", len(found), _difference_texts(log, rows, found, differing, part_names))


def _forgive_by_float(
    log: pa.Table, rows: pa.Table, differing: dict[ColumnPair, Flags], once_float: Collection[str]
) -> None:
    """A bound that is what the log's float became was typed before the column was widened: no difference."""
    for pair in differing:
        if pair.in_log in once_float and pa.types.is_float64(rows.schema.field(pair.in_part).type):
            floats = _whole(log.column(pair.in_log)).cast(pa.float32(), safe=False)
            is_min = field_kind(log.schema.field(pair.in_log)) == "min"
            again = widened_floats(floats, is_min=is_min)
            differing[pair] &= differing_rows(again, _whole(rows.column(pair.in_part)))


def _forgive_by_json(
    log: pa.Table, rows: pa.Table, differing: dict[ColumnPair, Flags], retyped: Callable[[pa.Table], pa.Table]
) -> None:
    """A statistic that equals the JSON beside the typed one was read from it: no difference."""
    has_json = _flags(_whole(log.column(JSON_COLUMN)).is_valid())
    suspects = np.flatnonzero(np.logical_or.reduce(list(differing.values())) & has_json)
    if len(suspects) == 0:
        return
    pairs = [pair for pair in differing if _is_statistic(rows.schema.field(pair.in_part))]
    again = retyped(log.take(pa.array(suspects)))
    still = differing_in(again, rows.take(pa.array(suspects)), pairs)
    for pair in pairs:
        differing[pair][suspects] &= still.get(pair, np.zeros(len(suspects), np.bool_))


def _is_statistic(field: pa.Field) -> bool:
    return field.name in {"num_records", "tight_bounds"} or field_kind(field) in {"min", "max", "null_count"}


def _difference_texts(
    log: pa.Table,
    rows: pa.Table,
    found: Indices,
    differing: dict[ColumnPair, Flags],
    part_names: Sequence[str],
) -> Iterator[tuple[str, str]]:
    for index in found:
        pairs = [pair for pair, flags in differing.items() if flags[index]]
        told = [
            f"{pair.in_part} is {_text(rows.column(pair.in_part)[index])}"
            f" and in the log {_text(log.column(pair.in_log)[index])}"
            for pair in pairs[:_COLUMNS_NAMED_MAX]
        ]
        if len(pairs) > _COLUMNS_NAMED_MAX:
            told.append(f"{len(pairs) - _COLUMNS_NAMED_MAX} more columns differ")
        part = part_names[rows.column(PART_COLUMN)[index].as_py()]
        yield rows.column("path")[index].as_py(), f"in {part}: {'; '.join(told)}"


def _comparable(left: pa.ChunkedArray, right: pa.ChunkedArray) -> tuple[pa.Array | None, pa.Array]:
    """Both columns in the part's type; the first is None where the log's type does not convert."""
    return cast_where_possible(_whole(left), right.type), _whole(right)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _differing_maps(left: pa.MapArray, right: pa.MapArray) -> Flags:
    """Maps by validity and length, then entry by entry; those that differ so are compared without order."""
    left_valid, right_valid = _flags(left.is_valid()), _flags(right.is_valid())
    left_sizes = np.where(left_valid, np.diff(np.asarray(left.offsets)), 0)
    right_sizes = np.where(right_valid, np.diff(np.asarray(right.offsets)), 0)
    differing = (left_valid != right_valid) | (left_sizes != right_sizes)
    same = np.flatnonzero(~differing & (left_sizes > 0))
    if len(same):
        a, b = left.take(pa.array(same)), right.take(pa.array(same))
        entries = differing_rows(_flat(a, "keys"), _flat(b, "keys")) | differing_rows(
            _flat(a, "items"), _flat(b, "items")
        )
        owners = np.repeat(same, left_sizes[same])
        for row in np.unique(owners[entries]):
            differing[row] = dict(left[row].as_py()) != dict(right[row].as_py())
    return np.asarray(differing, np.bool_)


def _flat(maps: pa.MapArray, side: str) -> pa.Array:
    """The keys or items of all maps, one after the other."""
    offsets = np.asarray(maps.offsets)
    entries = maps.keys if side == "keys" else maps.items
    return entries.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _paths(rows: pa.Table, at: Indices) -> Iterator[str]:
    column = rows.column("path")
    return (column[index].as_py() for index in at)


def _parts(rows: pa.Table, at: Indices, part_names: Sequence[str]) -> Iterator[str]:
    column = rows.column(PART_COLUMN)
    return (part_names[column[index].as_py()] for index in at)


def _flags(column: pa.Array) -> Flags:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)


def _text(value: pa.Scalar) -> str:
    text = "null" if not value.is_valid else repr(value.as_py())
    return text if len(text) <= _VALUE_CHARACTERS_MAX else f"{text[:_VALUE_CHARACTERS_MAX]}…"
