"""What one Spark task does: sorted rows of a checkpoint in, stored parts of a sidecar out.

Contract: runs on an executor. Rows are decoded by `typed_rows` and written by the part writer that the
local feeder uses. A task writes one part, more only where its range came out larger than a part may be. Names
differ between attempts, so that a task that is tried again, or run twice, never meets its own file; only
parts that are reported count. Rows that are not in the order of the sidecar are `UnsortedRowsError`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.settings import Settings
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.folder import list_sidecars
from lazydelta.sidecar.format.layout import SidecarLayout
from lazydelta.sidecar.format.manifest import Part, RowGroup
from lazydelta.sidecar.format.part_writer import PartFacts, PartShape, store_part, write_part
from lazydelta.sidecar.format.typed_rows import typed_rows
from lazydelta.spark.sidecar_frame import HAS_TAGS
from lazydelta.spark.sidecar_ranges import RANGE
from lazydelta.storage import Storage, open_storage

REPORT_COLUMN = "report"
_NUMBERS_MAX = 100_000  # a part's name has five digits
_ATTEMPTS_MAX = 16


class UnsortedRowsError(Exception):
    """Spark's reading of the order column differs from ours, so the rows came in another order."""


class PartTask(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything a task must know; it travels to the executors."""

    url: str
    settings: Settings
    config: SidecarConfig
    layout: SidecarLayout
    facts: PartFacts  # of the build; the number is the task's own
    shape: PartShape
    task_count: int


class PartReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a task tells the driver of a part that it stored."""

    part: Part
    row_groups: tuple[RowGroup, ...]


def write_parts(batches: Iterator[pa.RecordBatch], task: PartTask) -> Iterator[pa.RecordBatch]:
    """Write the rows of one partition; one row of JSON for each part."""
    told = (typed_rows(public_rows(rows), task.layout) for rows in _of_one_range(batches))
    rows = _Portions(_in_order(told, task.layout))
    if rows.is_empty():
        return
    storage = open_storage(task.url, task.settings)
    for number in _numbers(storage, task):
        facts = msgspec.structs.replace(task.facts, number=number)
        made = write_part(
            rows.take(task.shape.rows), layout=task.layout, facts=facts, config=task.config, shape=task.shape
        )
        store_part(storage, task.config, made)
        report = PartReport(part=made.part, row_groups=tuple(made.row_groups))
        yield pa.RecordBatch.from_pydict({REPORT_COLUMN: [msgspec.json.encode(report).decode()]})
        if rows.is_empty():
            return


def _of_one_range(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, of which every one must be of this task's range."""
    for rows in batches:
        if RANGE not in rows.schema.names:
            yield rows
            continue
        ranges = pc.unique(rows.column(RANGE)).to_pylist()
        assert ranges in ([], [_partition()]), f"rows of the ranges {ranges} in task {_partition()}"
        yield rows.drop_columns([RANGE])


def public_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as the log room gives them: tags that were filled in for Spark are null again."""
    if HAS_TAGS not in rows.schema.names:
        return rows
    has_tags = rows.column(HAS_TAGS)
    tags = pc.if_else(has_tags, rows.column("tags"), pa.scalar(None, rows.schema.field("tags").type))
    rest = rows.drop_columns([HAS_TAGS])
    return rest.set_column(rest.schema.get_field_index("tags"), "tags", tags)


def _numbers(storage: Storage, task: PartTask) -> Iterator[int]:
    """Numbers for the parts of this attempt: no other attempt and no other task takes them."""
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = _partition()
    attempt = 0 if context is None else context.attemptNumber()
    listed = list_sidecars(storage, task.config.folder).parts.values()
    # A stage that runs again counts its attempts from 0 again, and so does a build that is resumed.
    taken = {file.parsed.number for file in listed if file.parsed.build == task.facts.build}
    for round_ in range(_NUMBERS_MAX):
        number = partition + task.task_count * (attempt % _ATTEMPTS_MAX + _ATTEMPTS_MAX * round_)
        assert number < _NUMBERS_MAX, f"part {number} of {task.task_count} tasks"
        if number not in taken:
            yield number


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _in_order(batches: Iterator[pa.RecordBatch], layout: SidecarLayout) -> Iterator[pa.RecordBatch]:
    """The same batches, checked; empty ones are left out."""
    last: pa.RecordBatch | None = None
    keys = ["path"] if layout.order_column is None else [layout.order_column, "path"]
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch.select(keys)
        for piece in (rows,) if last is None else (_joined(last, rows.slice(0, 1)), rows):
            if not is_in_order(piece):
                raise UnsortedRowsError(f"rows are not sorted by {', '.join(keys)}")
        last = rows.slice(rows.num_rows - 1)
        yield batch


def is_in_order(keys: pa.RecordBatch) -> bool:
    """Whether rows ascend by (order column, path), nulls first; the path is the last column."""
    above, below = keys.slice(0, keys.num_rows - 1), keys.slice(1)
    paths = pc.less_equal(above.column(keys.num_columns - 1), below.column(keys.num_columns - 1))
    if keys.num_columns == 1:
        return bool(pc.all(paths, min_count=0).as_py())
    first, second = above.column(0), below.column(0)
    ascends = pc.or_(pc.fill_null(pc.less(first, second), False), pc.and_(first.is_null(), second.is_valid()))
    ties = pc.or_(pc.fill_null(pc.equal(first, second), False), pc.and_(first.is_null(), second.is_null()))
    return bool(pc.all(pc.or_(ascends, pc.and_(ties, paths)), min_count=0).as_py())


def _joined(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    return pa.Table.from_batches([one, other]).combine_chunks().to_batches()[0]


class _Portions:
    """A stream of batches that is taken in portions of at most so many rows."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left = next(batches, None)

    def is_empty(self) -> bool:
        return self._left is None

    def take(self, rows_max: int) -> Iterator[pa.RecordBatch]:
        while rows_max and self._left is not None:
            piece = self._left.slice(0, rows_max)
            rest = self._left.slice(rows_max)
            rows_max -= piece.num_rows
            self._left = rest if rest.num_rows else next(self._batches, None)
            yield piece
