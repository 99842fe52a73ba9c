"""Which columns of a table a scan of rows reads and which it gives out.

Contract: names are logical and as the schema spells them. `fields` has what must be read of data files or
filled in for them: the columns asked for, then those that the filter alone needs. Metadata columns come by
name only, and only where the table has no column of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec
import pyarrow as pa

from lazydelta.errors import InvalidRequestError
from lazydelta.log.snapshot import Snapshot
from lazydelta.predicate import BoundPredicate
from lazydelta.protocol.schema import Field, arrow_field

# Not in the schema; given on request. Without row tracking row ids and commit versions are null.
METADATA_COLUMNS: dict[str, pa.DataType] = {
    "_file_path": pa.string(),
    "_row_index": pa.int64(),
    "_row_id": pa.int64(),
    "_commit_version": pa.int64(),
}
_CLOSE_SHOWN_MAX, _NAMES_SHOWN_MAX = 3, 20  # in an error
_TRACKED = {
    "_row_id": "delta.rowTracking.materializedRowIdColumnName",
    "_commit_version": "delta.rowTracking.materializedRowCommitVersionColumnName",
}


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of one scan of rows."""

    output: tuple[str, ...]  # in this order
    fields: tuple[Field, ...]  # of the schema: those of the output, then those of the filter
    metadata_columns: tuple[str, ...]  # asked for, of `METADATA_COLUMNS`
    partition_columns: frozenset[str]  # logical
    mapping_mode: str  # "none", "name" or "id"
    time_zone: str  # of partition values without one
    # Metadata column → the column of data files that has it for rows that were moved (row tracking).
    tracked: dict[str, str] = msgspec.field(default_factory=dict)
    is_all: bool = False  # every column of the table

    @property
    def schema(self) -> pa.Schema:
        """What comes out."""
        known = {name: pa.field(name, kind) for name, kind in METADATA_COLUMNS.items()}
        known |= {field.name: arrow_field(field) for field in self.fields}
        return pa.schema([known[name] for name in self.output])


def select(
    snapshot: Snapshot, columns: Sequence[str] | None, predicate: BoundPredicate | None, *, time_zone: str
) -> Selection:
    """The selection for these columns (None: every column of the table), or an error that names a column."""
    schema, metadata = snapshot.schema, snapshot.state.metadata
    output, fields, special = [], {}, []
    wanted = column_list(columns)
    for name in [field.name for field in schema.fields] if wanted is None else wanted:
        field = schema.field(name)
        if field is not None:
            fields[field.name] = field
            output.append(field.name)
        elif name in METADATA_COLUMNS:
            special.append(name)
            output.append(name)
        else:
            raise unknown_column(name, [field.name for field in schema.fields], snapshot.storage.root)
    if len(set(output)) != len(output):
        raise InvalidRequestError(f"columns is {wanted!r}", "batches()", "name each column once")
    for path in () if predicate is None else predicate.columns:
        field = schema.field(path[0])
        assert field is not None, "the filter is bound to this schema"
        fields.setdefault(field.name, field)
    return Selection(
        output=tuple(output),
        fields=tuple(fields.values()),
        metadata_columns=tuple(special),
        partition_columns=frozenset(metadata.partition_columns),
        mapping_mode=metadata.mapping_mode,
        time_zone=time_zone,
        tracked={
            name: stored
            for name, key in _TRACKED.items()
            if (stored := metadata.configuration.get(key)) is not None
        },
        is_all=len(fields) == len(schema.fields),
    )


def column_list(columns: Iterable[str] | None) -> list[str] | None:
    """The names, which may come from a generator, to be gone through more than once; None: all columns."""
    if columns is None:
        return None
    given = list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str | bytes) else None
    if given is None or not all(isinstance(name, str) for name in given):
        raise InvalidRequestError(f"columns is {columns!r}", "batches()", "give a list of column names")
    return given


def unknown_column(name: str, names: Sequence[str], where: str) -> InvalidRequestError:
    """What to say where a table with these columns is asked for another one."""
    close = get_close_matches(name, [*names, *METADATA_COLUMNS], _CLOSE_SHOWN_MAX)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    shown = ", ".join(names[:_NAMES_SHOWN_MAX])
    more = f", and {len(names) - _NAMES_SHOWN_MAX:,} more" if len(names) > _NAMES_SHOWN_MAX else ""
    return InvalidRequestError(
        f"the table has no column {name!r}",
        where,
        f"{hint}there are: {shown}{more}; besides, on request: {', '.join(METADATA_COLUMNS)}",
    )
