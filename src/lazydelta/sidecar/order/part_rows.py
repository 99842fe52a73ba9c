"""One part of a sidecar as a source of ordered rows: a row group at a time, when the order reaches it.

Contract: rows come in the direction of the traversal. What contradicts the order that the part or its
manifest promises is `DamagedSidecarError`: a merge that trusted it would give files out of order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from itertools import groupby

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.order.anchor import Anchor
from lazydelta.sidecar.order.order_bounds import footer_before, footer_bounds
from lazydelta.sidecar.order.sort_keys import SortKey, backwards, before_all, is_ascending, key_at
from lazydelta.sidecar.read.pruner import Pruner
from lazydelta.sidecar.read.public_rows import RowShape
from lazydelta.sidecar.read.read_ahead import ReadAhead
from lazydelta.sidecar.read.row_group_loader import Piece, RowGroupLoader
from lazydelta.sidecar.read.row_group_plan import RowUnit, Run, runs_of
from lazydelta.sidecar.read.traversal import Traversal

_RUNS_AHEAD = 1
# The rows that are wanted, of those that are live, with the same columns each time: they are merged.
RowJudge = Callable[[pa.RecordBatch], pa.RecordBatch]


class OrderedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a sidecar, in which order, and what of them."""

    shape: RowShape  # with the keys of the traversal
    traversal: Traversal
    judge: RowJudge
    pruner: Pruner | None = None
    anchor: Anchor | None = None  # rows before it are not wanted; the judge drops them exactly
    is_limited: bool = False  # the caller may stop after a few rows: nothing is read ahead


class PartRows:
    """The rows of one part; `units_read` grows as row groups are read."""

    def __init__(
        self,
        loader: RowGroupLoader,
        request: OrderedRequest,
        *,
        part: int,
        row_groups: Sequence[int],
        begins: Mapping[int, SortKey],
        units_read: list[RowUnit],
    ) -> None:
        """`row_groups` come in the direction of the traversal; `begins` has bounds of some of them."""
        self.row_groups_skipped = 0
        self._loader = loader
        self._request = request
        self._part = part
        self._left = list(row_groups)
        self._begins = begins
        self._units_read = units_read
        self._is_open = False
        self._last_key = before_all((), descending=request.traversal.descending)
        self._ahead: ReadAhead[Run, list[Piece]] | None = None
        self._loaded: Generator[tuple[int, list[Piece]], None, None] | None = None

    @property
    def bound(self) -> SortKey | None:
        """What is not read yet does not come before this."""
        if not self._left:
            return None
        begin = self._begins.get(self._left[0], self._last_key)
        return begin if self._last_key < begin else self._last_key

    def read_on(self) -> pa.RecordBatch | None:
        """The next row group; at first the footer alone, which may rule some out."""
        if not self._is_open:
            self.open()
            return None
        if self._loaded is None:
            self._loaded = self._load()
        bound = self.bound
        row_group, pieces = next(self._loaded)
        assert row_group == self._left[0]
        rows = self._ordered(_whole(pieces), bound)
        del self._left[0]
        self._units_read.append(RowUnit(self._part, row_group))
        return self._request.judge(rows) if rows.num_rows else None

    def open(self) -> None:
        """Read the footer: it may rule row groups out, and may tell where those that are left begin."""
        if self._is_open:
            return
        traversal, manifest = self._request.traversal, self._loader.source.manifest
        with closing(self._loader.part(self._part)) as reader:
            possible = np.ones(reader.metadata.num_row_groups, np.bool_)
            if self._request.pruner is not None:
                possible = self._request.pruner.by_footer(reader)
            if self._request.anchor is not None:
                before = footer_before(reader, manifest.order_type, self._request.anchor, traversal)
                possible &= ~np.array(before, np.bool_)
            left = [row_group for row_group in self._left if possible[row_group]]
            self.row_groups_skipped = len(self._left) - len(left)
            self._left = left
            if left and not self._knows_begins:
                begins = footer_bounds(reader, manifest.order_type, traversal)
                self._begins = self._begins if begins is None else dict(enumerate(begins))
        self._is_open = True

    def start(self) -> None:
        """Open the part and, unless the caller may stop after a few rows, begin to read it."""
        self.open()
        if self._left and not self._request.is_limited and self._ahead is None:
            self._ahead = self._read_ahead()
            self._ahead.start()

    def close(self) -> None:
        """Stop what is under way."""
        if self._loaded is not None:
            self._loaded.close()
        if self._ahead is not None:
            self._ahead.close()

    @property
    def _knows_begins(self) -> bool:
        """Whether the manifest tells as much as the footer: row groups, and the very values of the rows."""
        traversal = self._request.traversal
        if traversal.column is None or not self._loader.source.manifest.row_groups:
            return False
        return traversal.column.is_partition or not traversal.descending

    def _load(self) -> Generator[tuple[int, list[Piece]], None, None]:
        if self._request.is_limited:
            for row_group in list(self._left):
                yield row_group, self._pieces(Run(self._part, (row_group,)))
            return
        self._ahead = self._ahead or self._read_ahead()
        for pieces in self._ahead.results():
            for row_group, own in groupby(pieces, lambda piece: piece.unit.row_group):
                yield row_group, list(own)

    def _read_ahead(self) -> ReadAhead[Run, list[Piece]]:
        units = [RowUnit(self._part, row_group) for row_group in self._left]
        runs = runs_of(units, self._loader.reading.row_groups_per_batch)
        return ReadAhead(runs, self._pieces, _RUNS_AHEAD, is_quick=self._loader.is_known)

    def _pieces(self, run: Run) -> list[Piece]:
        return list(self._loader.pieces(run, self._request.shape))

    def _ordered(self, piece: Piece, bound: SortKey | None) -> pa.RecordBatch:
        """The live rows, in order and behind the bound, or damage."""
        rows = self._loader.live_rows(piece)
        if rows.num_rows == 0:
            return rows
        keys, down = self._request.traversal.keys, self._request.traversal.descending
        if not is_ascending(rows, keys):
            raise damaged("the rows of a part are not sorted", self._where)
        if down:
            rows = backwards(rows)
        if bound is not None and key_at(rows, 0, keys, descending=down) < bound:
            raise damaged("a row group has rows outside the range that is told of it", self._where)
        self._last_key = key_at(rows, rows.num_rows - 1, keys, descending=down)
        return rows

    @property
    def _where(self) -> str:
        source = self._loader.source
        return f"{self._loader.root}/{source.folder}/{source.manifest.parts[self._part].file}"


def _whole(pieces: Sequence[Piece]) -> Piece:
    """The pieces of one row group as one."""
    if len(pieces) == 1:
        return pieces[0]
    return msgspec.structs.replace(pieces[0], rows=pa.concat_batches([piece.rows for piece in pieces]))
