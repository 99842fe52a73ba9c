"""Live-file candidates as Arrow rows: one layout, whether they come from a commit or from a checkpoint.

Contract: `path` is canonical (protocol/paths.py) and is always there; other columns are those asked for.
`deletion_vector` may be left out of a batch where no row has one. `stats_parsed` keeps Delta's own field
names and is there only where the source is typed. `raw_path` is the path as the log spells it, for
builders of sidecars: what they copy must mean the same under another root.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import reduce
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.protocol.actions import DV_STORAGE_TYPES, Add, DeletionVector, check_storage_type
from lazydelta.protocol.paths import canonical_paths

Mask = npt.NDArray[np.bool_]
# Which rows of a batch are wanted, of those that the mask (None: all) leaves.
RowFilter = Callable[[pa.RecordBatch, Mask | None], Mask]
# A stage of the pipeline: batches as they are pulled; closing it stops the reads below.
Batches = Generator[pa.RecordBatch, None, None]

_STRING_MAP = pa.map_(pa.string(), pa.string())
DELETION_VECTOR_TYPE = pa.struct(
    [
        pa.field("storage_type", pa.string()),
        pa.field("path_or_inline_dv", pa.string()),
        pa.field("offset", pa.int32()),
        pa.field("size_in_bytes", pa.int32()),
        pa.field("cardinality", pa.int64()),
    ]
)
# Public column -> its Arrow type, in the order of the output.
FILE_COLUMNS: dict[str, pa.DataType] = {
    "path": pa.string(),
    "size": pa.int64(),
    "modification_time": pa.int64(),
    "partition_values": _STRING_MAP,
    "deletion_vector": DELETION_VECTOR_TYPE,
    "stats": pa.string(),
    "tags": _STRING_MAP,
    "base_row_id": pa.int64(),
    "default_row_commit_version": pa.int64(),
    "clustering_provider": pa.string(),
}
DEFAULT_COLUMNS = ("path", "size", "modification_time", "partition_values", "deletion_vector")
STATS_PARSED = "stats_parsed"
RAW_PATH = "raw_path"
# Public column -> the field of Delta's `add` action.
DELTA_FIELDS = {
    name: "".join(word if i == 0 else word.capitalize() for i, word in enumerate(name.split("_")))
    for name in FILE_COLUMNS
}
_DV_FIELDS = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")


def rows_from_adds(adds: Sequence[Add], columns: Sequence[str], root: str) -> pa.RecordBatch:
    """The adds of a commit's slice as rows."""
    raw_paths = pa.array([add.path for add in adds], pa.string())
    arrays: dict[str, pa.Array] = {"path": canonical_paths(raw_paths, root)}
    for name in columns:
        if name in {"path", STATS_PARSED}:
            continue
        if name == RAW_PATH:
            arrays[name] = raw_paths
            continue
        values = list(map(attrgetter(name), adds))
        if name == "deletion_vector":
            vectors = vector_structs(values)
            if vectors is not None:
                arrays[name] = vectors
        elif name in {"partition_values", "tags"}:
            arrays[name] = _string_maps(values)
        else:
            arrays[name] = pa.array(values, FILE_COLUMNS[name])
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def rows_from_struct(
    adds: pa.StructArray, columns: Sequence[str], root: str, keep: RowFilter | None = None
) -> pa.RecordBatch:
    """The `add` column of a checkpoint's batch as rows; rows of other actions are left out.

    `keep` judges the rows before anything else is done with them: what it drops is never copied.
    """
    wanted = adds.is_valid().to_numpy(zero_copy_only=False) if adds.null_count else None
    if keep is not None:
        wanted = keep(_public(adds, ["path", *(name for name in columns if name != "path")]), wanted)
    if wanted is not None and not wanted.all():
        adds = adds.filter(pa.array(wanted))
    raw_paths = _cast(adds.field("path"), pa.string())
    if raw_paths.null_count:
        raise pa.ArrowInvalid("an add has no path")
    paths = canonical_paths(raw_paths, root)
    rest = _public(adds, [name for name in columns if name != "path"])
    if "size" in rest.schema.names and rest.column("size").null_count:
        raise pa.ArrowInvalid("an add has no size")
    if "deletion_vector" in rest.schema.names:
        _check_vectors(rest.column("deletion_vector"))
    return pa.RecordBatch.from_arrays([paths, *rest.columns], names=["path", *rest.schema.names])


def _check_vectors(vectors: pa.StructArray) -> None:
    """A struct of nulls is no vector; one that lacks what names it must not be taken for none."""
    if vectors.null_count == len(vectors):
        return
    vectors.validate(full=True)  # texts that are none
    kind, name, *others = (pc.struct_field(vectors, [at]).is_valid() for at in range(vectors.type.num_fields))
    is_there = reduce(pc.or_, others, pc.or_(kind, name))
    if pc.any(pc.and_not(is_there, pc.and_(kind, name))).as_py():
        raise pa.ArrowInvalid("a deletion vector has no storage type or no path")


def deletion_vectors(rows: pa.RecordBatch) -> pa.StructArray | None:
    """The deletion vectors of a batch; None where no row has one. An unknown kind of one is an error."""
    if "deletion_vector" not in rows.schema.names:
        return None
    vectors = rows.column("deletion_vector")
    kinds = pc.struct_field(vectors, ["storage_type"])
    for kind in pc.unique(kinds.drop_null()).to_pylist():
        if kind not in DV_STORAGE_TYPES:
            first = pc.index(kinds, pa.scalar(kind, kinds.type)).as_py()
            check_storage_type(kind, where=_shown(rows.column("path")[first]))
    return vectors


def _shown(text: pa.Scalar) -> str:
    """For an error; a damaged log may have anything for a text."""
    body: bytes = text.cast(pa.binary()).as_py()
    return body.decode(errors="replace")


def vector_structs(vectors: Iterable[DeletionVector | None]) -> pa.StructArray | None:
    """Deletion vectors of actions as an Arrow column; None where there are none."""
    vectors = list(vectors)
    there = [(row, vector) for row, vector in enumerate(vectors) if vector is not None]
    if not there:
        return None
    values = [
        (v.storage_type, v.path_or_inline_dv, v.offset, v.size_in_bytes, v.cardinality) for _, v in there
    ]
    at = np.full(len(vectors), -1, np.int64)
    at[[row for row, _ in there]] = np.arange(len(there))
    return pa.array(values, DELETION_VECTOR_TYPE).take(pa.array(at, mask=at < 0))


def _string_maps(maps: Sequence[Mapping[str, str | None] | None]) -> pa.MapArray:
    """Dictionaries of texts as an Arrow column, by way of all their keys and values at once."""
    if not any(maps):
        return pa.array([None if each is None else [] for each in maps], _STRING_MAP)
    there = [each or {} for each in maps]
    offsets = np.zeros(len(there) + 1, np.int32)
    np.cumsum([len(each) for each in there], out=offsets[1:])
    ends = pa.array(offsets, mask=np.array([*(each is None for each in maps), False], np.bool_))
    keys = pa.array([key for each in there for key in each], pa.string())
    values = pa.array([value for each in there for value in each.values()], pa.string())
    return pa.MapArray.from_arrays(ends, keys, values)


def _public(adds: pa.StructArray, columns: Sequence[str]) -> pa.RecordBatch:
    """These columns of the struct under their public names, without copying."""
    present = {field.name for field in adds.type}
    arrays: dict[str, pa.Array] = {}
    for name in columns:
        field = "path" if name == RAW_PATH else DELTA_FIELDS.get(name, name)
        if field in present:
            arrays[name] = _as_public(name, adds.field(field))
        elif name not in {"deletion_vector", STATS_PARSED}:
            arrays[name] = pa.nulls(len(adds), FILE_COLUMNS[name])
    return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _as_public(name: str, column: pa.Array) -> pa.Array:
    if name == STATS_PARSED:
        return column
    if name == "deletion_vector":
        fields = [
            _cast(column.field(field), public.type)
            if column.type.get_field_index(field) >= 0
            else pa.nulls(len(column), public.type)
            for field, public in zip(_DV_FIELDS, DELETION_VECTOR_TYPE, strict=True)
        ]
        return pa.StructArray.from_arrays(
            fields, fields=list(DELETION_VECTOR_TYPE), mask=pc.invert(column.is_valid())
        )
    return _cast(column, FILE_COLUMNS["path" if name == RAW_PATH else name])


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)
