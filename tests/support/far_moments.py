"""A table of moments in the year 10183, which Python has no words for, with typed bounds as of Spark.

Why: bounds that are text cannot be read so far out; those that a checkpoint has in their own type can.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

FAR_KINDS = (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32())
_DAY, _DAY_US = 3_000_000, 86_400_000_000


def far_table(folder: Path, kind: pa.DataType, *, files: int) -> None:
    """As many files of one row each, `moment` ascending by `id`, in a checkpoint."""
    is_date = pa.types.is_date(kind)
    first = _DAY if is_date else _DAY * _DAY_US
    ticks = pa.array(range(first, first + files), pa.int32() if is_date else pa.int64())
    rows = pa.table({"id": range(files), "file": range(files), "moment": ticks.view(kind)})
    write_deltalake(str(folder), rows, partition_by=["file"])
    DeltaTable(str(folder)).create_checkpoint()
    (checkpoint,) = folder.glob("_delta_log/*.checkpoint.parquet")
    _type_bounds(checkpoint, rows.column("moment").combine_chunks())
    checkpoint.with_name("_last_checkpoint").unlink()  # it tells the size of what was there


def _type_bounds(checkpoint: Path, moments: pa.Array) -> None:
    """Typed statistics in the place of text; the partition of a file is its row."""
    table = pq.read_table(checkpoint)
    adds = table.column("add").combine_chunks()
    rows = pa.array([int(dict(add["partitionValues"])["file"]) if add else None for add in adds.to_pylist()])
    moment = pa.StructArray.from_arrays([moments.take(rows)], ["moment"])
    counts = pc.if_else(rows.is_valid(), pa.scalar(1, pa.int64()), None)
    typed = pa.StructArray.from_arrays([counts, moment, moment], ["numRecords", "minValues", "maxValues"])
    columns = {field.name: pc.struct_field(adds, field.name) for field in adds.type if field.name != "stats"}
    columns["stats_parsed"] = typed
    told = pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=adds.is_null())
    pq.write_table(table.set_column(table.schema.get_field_index("add"), "add", told), checkpoint)
