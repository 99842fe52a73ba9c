"""Rows of a batch as arrays of JSON: `[1,"a",null]`.

Contract: one text for each row, in order; what a batch takes as text is bounded by the batch, not by the
result.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.serve.kusto.cells import cells


def row_texts(batch: pa.RecordBatch, kinds: Sequence[str]) -> pa.Array:
    """A text for each row; `kinds` are Kusto's types of its columns."""
    if not kinds:
        return pa.repeat("[]", batch.num_rows)
    parts: list[pa.Array | str] = []
    before = "["
    for column, kind in zip(batch.columns, kinds, strict=True):
        found = cells(column, kind)
        parts += [before + found.before, found.texts]
        before = found.after + ","
    return pc.binary_join_element_wise(*parts, before.removesuffix(",") + "]", "")


def joined(rows: pa.Array) -> bytes:
    """All of them, by commas."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
    found: bytes = pc.binary_join(whole, ",")[0].as_buffer().to_pybytes()
    return found


def fitting(rows: pa.Array, bytes_max: int) -> int:
    """How many of the first rows have at most so many bytes together."""
    sizes = pc.cumulative_sum(pc.binary_length(rows).cast(pa.int64()))
    count: int = pc.sum(pc.less_equal(sizes, bytes_max)).as_py() or 0
    return count
