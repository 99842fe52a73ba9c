"""A part of the sidecar, read back: its rows in file order, without those that are no longer live.

Contract: columns are read only where asked for; of a split part the half that holds none of them stays
closed. Damage, or halves that do not belong together, is `DamagedSidecarError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.log.prefetch import prefetch
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.foreign_part import all_may_be_nan, roles_of
from lazydelta.sidecar.format.layout import VECTOR_COLUMNS
from lazydelta.sidecar.format.manifest import FORMAT, Part
from lazydelta.sidecar.format.memory import SidecarMemory
from lazydelta.sidecar.format.part_encoding import NAN_KEY
from lazydelta.sidecar.format.part_writer import FACTS_KEY, PartFacts
from lazydelta.sidecar.format.tier_file import TierFile
from lazydelta.storage import Storage

# What every row has, whatever a scan asks for: which file it is.
_NEEDED = ("path", *VECTOR_COLUMNS)


class RowGroupRange(msgspec.Struct, frozen=True):
    """A row group's rows within the part."""

    index: int
    first_row: int
    num_rows: int


class PartReader:
    """One part, opened lazily. `folder` is the sidecar's, below the table's root."""

    def __init__(
        self, storage: Storage, folder: str, part: Part, memory: SidecarMemory | None = None
    ) -> None:
        self.part = part
        self._index = TierFile(
            storage,
            f"{folder}/{part.file}",
            part.size_bytes,
            footer_bytes=part.footer_bytes,
            footer_crc32=part.footer_crc32,
            memory=memory,
            roles=roles_of(part),
        )
        self._stats = (
            None
            if part.stats_file is None
            else TierFile(
                storage,
                f"{folder}/{part.stats_file}",
                part.stats_size_bytes,
                footer_bytes=part.stats_footer_bytes,
                footer_crc32=part.stats_footer_crc32,
                memory=memory,
            )
        )
        self._facts: PartFacts | None = None

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer (of the index, where the part is split); checked against the manifest's entry."""
        footer = self._index.metadata
        if footer.num_rows != self.part.num_rows or footer.num_row_groups != self.part.num_row_groups:
            raise damaged("a part has not the rows that the manifest tells", self._index.where)
        return footer

    @property
    def stats_metadata(self) -> pq.FileMetaData:
        """The footer that the statistics' columns are found in."""
        footer, index = self._stats_tier.metadata, self.metadata
        if [footer.row_group(at).num_rows for at in range(footer.num_row_groups)] != [
            index.row_group(at).num_rows for at in range(index.num_row_groups)
        ]:
            raise damaged("the halves of a part have different rows", self._stats_tier.where)
        return footer

    @property
    def facts(self) -> PartFacts:
        """What the part says of itself."""
        if self._facts is None:
            self._facts = facts_of(self._index)
        return self._facts

    @property
    def schema(self) -> pa.Schema:
        """All columns, each with its role and path; of a split part the index's first."""
        if self._stats is None:
            return self.index_schema
        return pa.schema([*self.index_schema, *self._stats.schema])

    @property
    def index_schema(self) -> pa.Schema:
        """The columns that are there without the half that holds the statistics of a split part."""
        _ = self.metadata
        schema = self._index.schema
        for name in _NEEDED:
            if name not in schema.names:
                raise damaged(f"a part has no column {name!r}", self._index.where)
        return schema

    @property
    def nan_counts(self) -> dict[str, list[int]]:
        """NaNs per row group of the columns that have any, or may have."""
        if roles_of(self.part) is not None:
            return dict(all_may_be_nan(self.metadata, self.schema))
        with self._index.damage_named():
            raw = self._index.keys.get(NAN_KEY, b"{}")
            return msgspec.json.decode(raw, type=dict[str, list[int]])

    def row_groups(self) -> list[RowGroupRange]:
        """The rows of each row group."""
        found, first = [], 0
        for index in range(self.metadata.num_row_groups):
            count = self.metadata.row_group(index).num_rows
            found.append(RowGroupRange(index, first, count))
            first += count
        return found

    def batches(
        self,
        columns: Sequence[str] | None = None,
        row_groups: Sequence[int] | None = None,
        *,
        live_only: bool = True,
        batch_rows: int = limits.BATCH_ROWS,
        read_ahead: bool = False,
    ) -> Batches:
        """The rows in slices, with these columns (None: all, in the schema's order).

        Row groups come in the order given (None: all, in file order); no slice spans two of them. With
        `read_ahead` a thread reads on while the caller works.
        """
        names = self.schema.names if columns is None else list(columns)
        ranges = self.row_groups()
        wanted = ranges if row_groups is None else [ranges[index] for index in row_groups]
        live = self._live(wanted) if live_only else None
        done = 0
        stream = self._joined(names, [group.index for group in wanted], batch_rows)
        with closing(prefetch(stream) if read_ahead else stream) as batches:
            for rows in batches:
                mask = None if live is None else live[done : done + rows.num_rows]
                done += rows.num_rows
                if mask is None or mask.all():
                    yield rows
                elif mask.any():
                    yield rows.filter(pa.array(mask))

    def preload(self, columns: Sequence[str], row_groups: Sequence[int]) -> None:
        """Fetch what `batches` will decode first; it then need not ask for it."""
        for tier, found in self._sources(columns):
            tier.preload(found, row_groups)

    def close(self) -> None:
        """Stop reads and drop buffers."""
        for tier in self._tiers:
            tier.close()

    @property
    def _tiers(self) -> list[TierFile]:
        return [self._index] if self._stats is None else [self._index, self._stats]

    @property
    def _stats_tier(self) -> TierFile:
        return self._index if self._stats is None else self._stats

    def _live(self, groups: Sequence[RowGroupRange]) -> npt.NDArray[np.bool_] | None:
        """Which of the groups' rows are live; None where all are."""
        removed = self.part.removed
        if not removed:
            return None
        live = np.ones(self.part.num_rows, np.bool_)
        for first, count in zip(removed[::2], removed[1::2], strict=True):
            live[first : first + count] = False
        return np.concatenate(
            [live[:0], *(live[group.first_row : group.first_row + group.num_rows] for group in groups)]
        )

    def _joined(self, names: Sequence[str], groups: Sequence[int], batch_rows: int) -> Batches:
        """The columns out of whichever halves hold them."""
        with ExitStack() as stack:
            streams = [
                stack.enter_context(closing(tier.batches(found, groups, batch_rows)))
                for tier, found in self._sources(names)
            ]
            for pieces in zip(*streams, strict=True):
                yield pieces[0] if len(pieces) == 1 else self._side_by_side(pieces, names)

    def _sources(self, names: Sequence[str]) -> list[tuple[TierFile, list[str]]]:
        """The halves that hold these columns, and which of them."""
        in_index = [name for name in names if name in self._index.schema.names]
        sources = [(self._index, in_index)] if in_index else []
        if len(in_index) < len(names):
            _ = self.stats_metadata
            in_stats = [name for name in names if name in self._stats_tier.schema.names]
            sources.append((self._stats_tier, [name for name in in_stats if name not in in_index]))
            if absent := [name for name in names if name not in {*in_index, *in_stats}]:
                raise damaged(f"a part has no column {absent[0]!r}", self._index.where)
        return sources

    def _side_by_side(self, pieces: Sequence[pa.RecordBatch], names: Sequence[str]) -> pa.RecordBatch:
        assert len({piece.num_rows for piece in pieces}) == 1, "both halves are cut alike"
        by_name = {
            field.name: (field, piece.column(field.name)) for piece in pieces for field in piece.schema
        }
        schema = pa.schema([by_name[name][0] for name in names])
        return pa.RecordBatch.from_arrays([by_name[name][1] for name in names], schema=schema)


def facts_of(tier: TierFile) -> PartFacts:
    """What an opened file of a part says of itself."""
    with tier.damage_named():
        raw = tier.keys.get(FACTS_KEY)
        if raw is None:
            raise damaged("the file is no part of a sidecar", tier.where)
        facts = msgspec.json.decode(raw, type=PartFacts)
    if facts.format != FORMAT:
        raise damaged(f"the part has format {facts.format}, this reader knows {FORMAT}", tier.where)
    return facts
