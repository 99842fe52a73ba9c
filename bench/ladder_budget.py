"""What the last hour may cost in bytes, by what lies on the disk.

Contract: reads the manifest and the footers of the parts that can match, nothing else. Matching row groups
are those whose range of hours reaches into the last one; their projected columns are path, size, the hour and
the deletion vector.
"""

from __future__ import annotations

import pyarrow.parquet as pq

from bench.growing import hour_text
from bench.ladder_promises import Budget
from bench.ladder_tables import LadderTable, since_ms
from lazydelta.sidecar import LAZY_FOLDER

_COLUMNS = ("path", "size")
_VECTOR = "dv."


def hour_budget(table: LadderTable) -> Budget:
    """The last hour of this table."""
    return Budget(
        projected_bytes=projected_bytes(table, hour_text(since_ms(1))),
        manifest_bytes=table.manifest_path.stat().st_size,
        tail_bytes=table.table.expected.tail_bytes,
    )


def projected_bytes(table: LadderTable, since_hour: str) -> int:
    """The columns that the query needs, in the row groups that can hold that hour or a later one."""
    manifest = table.manifest
    wanted = {*_COLUMNS, manifest.order_column}
    assert manifest.row_groups, "the manifest lists its row groups"
    total = 0
    for number, part in enumerate(manifest.parts):
        groups = [group for group in manifest.row_groups if group.part == number]
        matching = [at for at, group in enumerate(groups) if (group.event_hour_max or "") >= since_hour]
        if matching:
            about = pq.ParquetFile(table.table.path / LAZY_FOLDER / part.file).metadata
            chunks = [about.row_group(at).column(n) for at in matching for n in range(about.num_columns)]
            total += sum(
                chunk.total_compressed_size
                for chunk in chunks
                if chunk.path_in_schema in wanted or chunk.path_in_schema.startswith(_VECTOR)
            )
    return total
