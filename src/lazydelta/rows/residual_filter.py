"""ResidualFilter: the rows that match, exactly. Decides nothing else: no order, no count."""

from __future__ import annotations

import pyarrow as pa

from lazydelta.predicate import BoundPredicate
from lazydelta.predicate.rows import matches


def matching(rows: pa.RecordBatch, predicate: BoundPredicate | None) -> pa.RecordBatch:
    """The rows for which the filter is true, in their order."""
    return rows if predicate is None else rows.filter(matches(predicate, rows))
