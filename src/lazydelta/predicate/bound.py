"""A filter bound to one table: what it needs to know of files, and its verdict on them.

Contract: one-sided both ways. `might_match` says no, and `must_match` says yes, only when proven.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from lazydelta.predicate.evaluate import evaluate
from lazydelta.predicate.expression import ColumnPath, Expression
from lazydelta.predicate.facts import FileFacts
from lazydelta.predicate.nodes import Node
from lazydelta.protocol.statistics import StatsColumn


class BoundPredicate(msgspec.Struct, frozen=True, eq=False):
    """A filter on one table. `str()` of `expression` is stable and parses back."""

    expression: Expression
    root: Node
    columns: tuple[ColumnPath, ...]  # logical, as the schema spells them
    partition_columns: tuple[str, ...]  # physical: those named, and those made from a column that is named
    stats_columns: tuple[StatsColumn, ...]
    decided_by_partitions: bool  # only partition columns are named: a file's rows match all or none
    time_zone: str

    def might_match_partitions(self, facts: FileFacts) -> NDArray[np.bool_]:
        """False only where the partition values prove that no row matches."""
        return self.might_match(msgspec.structs.replace(facts, statistics=None))

    def might_match(self, facts: FileFacts) -> NDArray[np.bool_]:
        """False only where partition values and statistics prove that no row matches."""
        return evaluate(self.root, facts, self.time_zone).can_be_true

    def must_match(self, facts: FileFacts) -> NDArray[np.bool_]:
        """True only where every row is proven to match."""
        outcome = evaluate(self.root, facts, self.time_zone)
        return ~(outcome.can_be_false | outcome.can_be_null)
