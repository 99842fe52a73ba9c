"""Delta files of the sidecar: the actions of commits since a checkpoint, in one Parquet file.

Why: a tail of hundreds of small commits costs hundreds of requests; one file of them costs a few.
Contract: `vC_V.delta.parquet` holds every add, remove, protocol and metaData of the commits after `after` up
to `until`, ascending, in the order of the lines; other actions are counted. Adds and removes have a part's
columns (of a remove only path, deletion vector and, where the log has them, partition values). The file is
bound to `V.json` as a manifest is to `N.json`; its footer is sealed (sidecar/format/footer_seal.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.log.file_rows import RAW_PATH, Batches, rows_from_adds
from lazydelta.protocol.actions import ActionLine, Add, Metadata, Protocol, Remove
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.footer_seal import sealed
from lazydelta.sidecar.format.layout import SidecarLayout, free_name
from lazydelta.sidecar.format.manifest import FORMAT, BoundFile
from lazydelta.sidecar.format.memory import SidecarMemory
from lazydelta.sidecar.format.names import delta_name
from lazydelta.sidecar.format.part_encoding import open_writer, row_groups_of
from lazydelta.sidecar.format.sealed_file import SealedFile
from lazydelta.sidecar.format.typed_rows import BUILD_COLUMNS, typed_rows
from lazydelta.storage import Storage

DELTA_KEY = b"lazydelta.delta"
ACTIONS = ("add", "remove", "protocol", "metaData")
_COLUMNS = (*(name for name in BUILD_COLUMNS if name != RAW_PATH), RAW_PATH, "stats")


class DeltaFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a delta file says of itself, in its footer."""

    checkpoint_version: int  # C
    after: int  # the last version before those in it
    until: int  # V
    table_id: str
    commit: BoundFile  # V.json
    commit_sizes: tuple[int, ...] = ()  # in bytes, of every commit in it, oldest first
    other_actions: dict[str, int] = {}  # by their names in the log
    num_rows: int = 0
    schema_hash: str = ""
    format: int = FORMAT


def delta_schema(layout: SidecarLayout) -> pa.Schema:
    """The columns of a delta file; a column of the table that has one of its own names gets a prefix."""
    first = [pa.field("version", pa.int64(), nullable=False), pa.field("action", pa.string(), nullable=False)]
    last = [pa.field("protocol", pa.string()), pa.field("metadata", pa.string())]
    own = {field.name for field in (*first, *last)}
    taken = {name.lower() for name in layout.schema.names} | own
    middle = []
    for field in layout.schema:
        is_free = field.name.lower() not in own
        name = field.name if is_free else free_name(field.name, "partition.", taken)
        middle.append(field.with_nullable(True).with_name(name))
    return pa.schema([*first, *middle, *last])


def delta_rows(lines: Sequence[tuple[int, ActionLine]], layout: SidecarLayout, root: str) -> pa.RecordBatch:
    """The file, protocol and metadata actions of these (version, line), in their order."""
    adds: list[tuple[int, Add]] = []
    removes: list[tuple[int, Remove]] = []
    states: list[tuple[int, Protocol | Metadata]] = []
    for at, (_, line) in enumerate(lines):
        states += [(at, state) for state in (line.protocol, line.meta_data) if state is not None]
        if line.remove is not None:
            removes.append((at, line.remove))
        if line.add is not None:
            adds.append((at, line.add))
    rows = pa.concat_batches(
        [
            _state_rows([state for _, state in states], layout),
            _file_rows([_as_add(remove) for _, remove in removes], "remove", layout, root),
            _file_rows([add for _, add in adds], "add", layout, root),
        ]
    )
    places = np.array([at for at, _ in (*states, *removes, *adds)], np.int64)
    versions = np.array([version for version, _ in lines], np.int64)
    rows = rows.set_column(0, rows.schema.field(0), pa.array(versions[places]))
    return rows.take(pa.array(np.argsort(places, kind="stable")))


def write_delta_file(
    batches: Iterable[pa.RecordBatch],
    *,
    layout: SidecarLayout,
    facts: DeltaFacts,
    row_group_rows: int = limits.SIDECAR_ROW_GROUP_ROWS,
) -> bytes:
    """The file of these rows."""
    sink = pa.BufferOutputStream()
    count = 0
    with open_writer(sink, delta_schema(layout)) as writer:
        for rows in row_groups_of(batches, row_group_rows):
            count += rows.num_rows
            writer.write_table(rows, row_group_size=row_group_rows)
        said = msgspec.structs.replace(facts, num_rows=count, schema_hash=layout.schema_hash)
        writer.add_key_value_metadata({DELTA_KEY: msgspec.json.encode(said)})
    return sealed(sink.getvalue().to_pybytes())


def store_delta_file(storage: Storage, config: SidecarConfig, facts: DeltaFacts, body: bytes) -> bool:
    """Put the file; False where another writer was first."""
    name = delta_name(facts.checkpoint_version, facts.until)
    return storage.put_if_absent(f"{config.folder}/{name}", body)


class DeltaFileReader:
    """A delta file, opened lazily; `name` is below the table's root."""

    def __init__(
        self, storage: Storage, name: str, size_bytes: int, memory: SidecarMemory | None = None
    ) -> None:
        self._tier = SealedFile(storage, name, size_bytes, memory=memory)

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        return self._tier.metadata

    @property
    def facts(self) -> DeltaFacts:
        """What the file says of itself."""
        with self._tier.damage_named():
            raw = self._tier.keys.get(DELTA_KEY)
            if raw is None:
                raise damaged("the file is no delta file of a sidecar", self._tier.where)
            facts = msgspec.json.decode(raw, type=DeltaFacts)
        if facts.format != FORMAT:
            raise damaged(f"the file has format {facts.format}, this reader knows {FORMAT}", self._tier.where)
        if facts.num_rows != self._tier.metadata.num_rows:
            raise damaged("the file has not the rows that it tells", self._tier.where)
        return facts

    @property
    def schema(self) -> pa.Schema:
        """The columns, each with its role and path."""
        return self._tier.schema

    def batches(
        self,
        columns: Sequence[str] | None = None,
        row_groups: Sequence[int] | None = None,
        *,
        batch_rows: int = limits.BATCH_ROWS,
    ) -> Batches:
        """The rows in order, or those of some row groups in the order given; no slice spans two of them."""
        _ = self.facts
        names = self.schema.names if columns is None else list(columns)
        groups = range(self._tier.metadata.num_row_groups) if row_groups is None else row_groups
        yield from self._tier.batches(names, groups, batch_rows)

    def close(self) -> None:
        """Stop reads and drop buffers."""
        self._tier.close()


def _as_add(remove: Remove) -> Add:
    return Add(
        path=remove.path,
        size=0,
        partition_values=remove.partition_values,
        deletion_vector=remove.deletion_vector,
    )


def _file_rows(adds: list[Add], action: str, layout: SidecarLayout, root: str) -> pa.RecordBatch:
    rows = typed_rows(rows_from_adds(adds, _COLUMNS, root), layout)
    arrays = list(rows.columns)
    if action == "remove":  # it has no size
        arrays[rows.schema.get_field_index("size")] = pa.nulls(rows.num_rows, pa.int64())
    nothing = pa.nulls(rows.num_rows, pa.string())
    return pa.RecordBatch.from_arrays(
        [*_head([action] * rows.num_rows), *arrays, nothing, nothing], schema=delta_schema(layout)
    )


def _state_rows(states: Sequence[Protocol | Metadata], layout: SidecarLayout) -> pa.RecordBatch:
    texts = [msgspec.json.encode(state).decode() for state in states]
    is_protocol = [isinstance(state, Protocol) for state in states]
    actions = ["protocol" if flag else "metaData" for flag in is_protocol]
    arrays = [pa.nulls(len(states), field.type) for field in layout.schema]
    protocols = [text if flag else None for text, flag in zip(texts, is_protocol, strict=True)]
    metadatas = [None if flag else text for text, flag in zip(texts, is_protocol, strict=True)]
    return pa.RecordBatch.from_arrays(
        [*_head(actions), *arrays, pa.array(protocols, pa.string()), pa.array(metadatas, pa.string())],
        schema=delta_schema(layout),
    )


def _head(actions: list[str]) -> list[pa.Array]:
    """Versions are put in once all rows are in order."""
    return [pa.array([0] * len(actions), pa.int64()), pa.array(actions, pa.string())]
