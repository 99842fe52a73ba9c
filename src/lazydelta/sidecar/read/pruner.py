"""What may be asked of a sidecar: which of its parts and row groups are worth reading.

Why: a filter and a list of paths rule out row groups by other facts, and everything behind them is the same.
Contract: a pruner answers at three stages, each with one flag per part or row group. What it says of the
manifest costs nothing; a footer is read for the third.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lazydelta.log.file_rows import Mask
from lazydelta.predicate import BoundPredicate
from lazydelta.sidecar.format.manifest import Manifest, RowGroup
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.read.footer_pruning import possible_by_footer
from lazydelta.sidecar.read.pruning import possible_parts, possible_row_groups


class Pruner(Protocol):
    """Says which rows of a sidecar are not worth reading."""

    def parts(self, manifest: Manifest) -> Mask:
        """The parts to read, by what the manifest tells of each."""
        ...

    def row_groups(self, manifest: Manifest, row_groups: Sequence[RowGroup]) -> Mask:
        """The row groups to read, by what the manifest tells of each."""
        ...

    def by_footer(self, part: PartReader) -> Mask:
        """The row groups of one part to read, by its own statistics."""
        ...


class PredicatePruner(msgspec.Struct, frozen=True):
    """Leaves out what cannot hold a file with a matching row."""

    predicate: BoundPredicate

    def parts(self, manifest: Manifest) -> Mask:
        """By the bounds of every zone-map column."""
        return possible_parts(manifest, self.predicate)

    def row_groups(self, manifest: Manifest, row_groups: Sequence[RowGroup]) -> Mask:
        """By the range of the order column."""
        return possible_row_groups(manifest, row_groups, self.predicate)

    def by_footer(self, part: PartReader) -> Mask:
        """By the statistics of every column."""
        return possible_by_footer(part, self.predicate)


def pruners_of(predicate: BoundPredicate | None) -> tuple[Pruner, ...]:
    """The one pruner of a filter; none without a filter."""
    return () if predicate is None else (PredicatePruner(predicate),)
