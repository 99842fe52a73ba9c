"""A part whose file does not tell what its columns stand for: the roles travel with its entry instead.

Why: the seeds' plain `vN.parquet` has columns by name alone; once they have roles, every reader of parts can
read it.
Contract: fixed columns come in the types of a part, lacking ones as null; `tight_bounds` as false, because a
file that does not tell may have wide bounds. How many values are NaN nobody knows: all may be.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.sidecar.format.layout import FIXED_FIELDS, described
from lazydelta.sidecar.format.manifest import Part

_Roles = tuple[tuple[str, ...], ...]
_NOT_TOLD = {"tight_bounds": False}


class ForeignPart(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A single file without roles of its own. Never written to a manifest."""

    roles: _Roles = ()  # (column, kind, *path), for columns that stand for the table's


def roles_of(part: Part) -> _Roles | None:
    """The roles that travel with the entry; None where the file tells them."""
    return part.roles if isinstance(part, ForeignPart) else None


def foreign_schema(found: pa.Schema, roles: _Roles) -> pa.Schema:
    """A part's columns out of the file's: the fixed ones, then those that have a role."""
    named = [
        described(pa.field(name, plain_type(found.field(name).type)), kind, path)
        for name, kind, *path in roles
    ]
    return pa.schema([*FIXED_FIELDS, *named])


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Texts come in many clothes; everything else as it is."""
    if pa.types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    return type_


def lacking_column(field: pa.Field, row_count: int) -> pa.Array:
    """What a column is that the file does not have."""
    value = _NOT_TOLD.get(field.name)
    return pa.nulls(row_count, field.type) if value is None else pa.repeat(pa.scalar(value), row_count)


def all_may_be_nan(footer: pq.FileMetaData, schema: pa.Schema) -> Mapping[str, list[int]]:
    """NaNs per row group at most."""
    counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    return {field.name: counts for field in schema if pa.types.is_floating(field.type)}
