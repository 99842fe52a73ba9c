"""How the columns of one Parquet file become the columns of the table.

Why: a file holds what its writer knew: physical names or field ids, narrower types, fewer columns.
Contract: `leaves` are the file's own leaf columns to read; `table_columns` turns a batch of them into one
array per field of the selection, in the table's types, by position; a column that the file does not have is
null. A file whose types contradict the schema is a `CorruptDataError` that names the column.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.errors import CorruptDataError
from lazydelta.protocol.schema import Field, arrow_type
from lazydelta.rows.selection import Selection


class FileShape:
    """One file's schema against one selection."""

    def __init__(self, selection: Selection, metadata: pq.FileMetaData, where: str) -> None:
        self._where = where
        self._arrow = metadata.schema.to_arrow_schema()
        stored = [field for field in selection.fields if field.name not in selection.partition_columns]
        self._names = {field.name: self._name_in_file(field) for field in stored}
        self._fields: Sequence[Field] = stored

    @property
    def columns(self) -> list[str]:
        """Top-level columns of the file to read."""
        return [name for name in self._names.values() if name is not None]

    def table_columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """By logical name, in the table's types."""
        found = {}
        for field in self._fields:
            name, wanted = self._names[field.name], arrow_type(field.type)
            if name is None:
                found[field.name] = pa.nulls(batch.num_rows, wanted)
                continue
            found[field.name] = self._cast(batch.column(name), wanted, field)
        return found

    def _name_in_file(self, field: Field) -> str | None:
        return field.physical_name if field.physical_name in self._arrow.names else None

    def _cast(self, values: pa.Array, wanted: pa.DataType, field: Field) -> pa.Array:
        if values.type.equals(wanted):
            return values
        try:
            return values.cast(wanted)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as clash:
            raise CorruptDataError(
                f"the column {field.name!r} is {values.type} in the file and {wanted} in the table: {clash}",
                self._where,
                "the file does not belong to this table's schema; restore or rewrite it",
            ) from clash
