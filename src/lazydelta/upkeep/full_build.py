"""The whole checkpoint as parts: read, typed, sorted on disk, written in balanced parts.

Contract: memory is bounded by `sort_memory_bytes` and one part, whatever the checkpoint's size.
"""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.checkpoint import CheckpointReader, RowRequest
from lazydelta.log.file_rows import Batches
from lazydelta.log.prefetch import prefetch
from lazydelta.sidecar.format.layout import sort_keys
from lazydelta.sidecar.format.part_writer import rows_per_part
from lazydelta.sidecar.format.typed_rows import BUILD_COLUMNS, typed_rows
from lazydelta.sidecar.order.external_sort import ExternalSorter
from lazydelta.upkeep.build_plan import BuildPlan
from lazydelta.upkeep.levels import balanced, full_part_count
from lazydelta.upkeep.part_sink import PartSink
from lazydelta.upkeep.progress import Progress

_PROGRESS_ROWS = 20_000


def write_full(plan: BuildPlan, sink: PartSink, progress: Progress) -> None:
    """Write every file of the checkpoint to parts."""
    keys = [name for name, _ in sort_keys(plan.layout)]
    sample: pa.RecordBatch | None = None
    total_bytes = 0
    with closing(ExternalSorter(plan.layout.schema, keys, plan.config.sort_memory_bytes)) as sorter:
        # Statistics are decoded ahead while rows are sorted and go to disk.
        with closing(prefetch(_checkpoint_rows(plan), batches_max=2)) as stream:
            for rows in stream:
                sample = rows if sample is None else sample
                total_bytes += pc.sum(rows.column("size"), min_count=0).as_py()
                sorter.add(rows)
                if sorter.row_count // _PROGRESS_ROWS > (sorter.row_count - rows.num_rows) // _PROGRESS_ROWS:
                    progress("reading", rows=sorter.row_count, total=plan.num_files)
        if sample is None:
            return
        shape = rows_per_part(plan.layout, sample, plan.config)
        counts = balanced(sorter.row_count, full_part_count(sorter.row_count, shape.rows))
        progress("writing", rows=sorter.row_count, parts=len(counts))
        with closing(prefetch(sorter.sorted_batches(plan.config.row_group_rows))) as stream:
            sink.write(stream, counts, binding=plan.binding(total_bytes), shape=shape, is_whole_build=True)


def _checkpoint_rows(plan: BuildPlan) -> Batches:
    request = RowRequest(
        columns=BUILD_COLUMNS,
        # An empty path asks for numRecords alone.
        stats_paths=plan.layout.stats_paths or ((),),
    )
    with (
        closing(CheckpointReader(plan.storage, plan.checkpoint)) as reader,
        closing(reader.rows(request)) as stream,
    ):
        for rows in stream:
            yield typed_rows(rows, plan.layout)
