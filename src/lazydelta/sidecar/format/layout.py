"""The columns of a sidecar part: which there are, what they are called, what each one means.

Why: builders, readers and the Spark feeder must agree on names and types, so one function decides them.
Contract: pure. Every column that stands for one of the table's carries its role and exact physical path in
its field's metadata (`lazydelta.kind`, `lazydelta.path`); names are for people and other Parquet readers.
Nested names are joined by dots, dots and backslashes inside a name are escaped by a backslash; a name that is
taken already, judged without case, gets a prefix.
Spec: PROTOCOL.md, "Column Mapping", "Per-file Statistics".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.protocol.actions import Metadata
from lazydelta.protocol.schema import DeltaType, Field, PrimitiveType, StructType, arrow_type
from lazydelta.protocol.statistics import StatsColumn
from lazydelta.sidecar.format.column_paths import Path, physical_leaves
from lazydelta.sidecar.format.manifest import FORMAT

TIME_COLUMN_PROPERTY = "lazydelta.time.column"
TIME_COLUMN_DEFAULT = "_event_hour"
PATH_KEY, KIND_KEY = b"lazydelta.path", b"lazydelta.kind"

_TAGS_TYPE = pa.map_(pa.string(), pa.string())
_FIRST = [
    pa.field("path", pa.string(), nullable=False),
    pa.field("size", pa.int64()),
    pa.field("modification_time", pa.int64()),
]
_COUNTS = [pa.field("num_records", pa.int64()), pa.field("tight_bounds", pa.bool_())]
_LAST = [
    pa.field("dv.storageType", pa.string()),
    pa.field("dv.pathOrInlineDv", pa.string()),
    pa.field("dv.offset", pa.int32()),
    pa.field("dv.sizeInBytes", pa.int32()),
    pa.field("dv.cardinality", pa.int64()),
    pa.field("base_row_id", pa.int64()),
    pa.field("default_row_commit_version", pa.int64()),
    pa.field("clustering_provider", pa.string()),
    pa.field("tags", _TAGS_TYPE),
]
FIXED_FIELDS = (*_FIRST, *_COUNTS, *_LAST)
VECTOR_COLUMNS = tuple(field.name for field in FIXED_FIELDS if field.name.startswith("dv."))
# Fixed columns that no filter compares: their Parquet statistics would only fatten the footer.
UNCOMPARED_COLUMNS = frozenset(
    {"modification_time", "tight_bounds", "tags", *(field.name for field in _LAST)}
)
_UNTYPED = frozenset({"void", "variant"})
_TEXT = PrimitiveType("string")


class PartitionColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A partition column of the table and where a part holds it."""

    physical_name: str
    type: PrimitiveType
    column: str  # the typed one
    raw_column: str | None  # what the writer wrote; None where the typed column is that
    is_text_only: bool = False  # of a type that Parquet or this reader cannot type


class StatisticsColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column with statistics and where a part holds them."""

    wanted: StatsColumn
    min_column: str | None  # None where the type has no bounds
    max_column: str | None
    null_count_column: str

    @property
    def path(self) -> Path:
        """Its physical path."""
        return self.wanted.path


class ZoneColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column whose bounds the manifest tells per part."""

    path: Path
    type_name: str
    min_column: str
    max_column: str
    raw_column: str | None = None  # of a partition column
    is_partition: bool = False


class SidecarLayout(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The columns of a part, in order, and the roles they play."""

    schema: pa.Schema
    partitions: tuple[PartitionColumn, ...]
    statistics: tuple[StatisticsColumn, ...]
    zone_columns: tuple[ZoneColumn, ...]  # the order column, then partition columns, then statistics
    order_column: str | None  # the part's column that rows are sorted by; None: by path alone
    order_max_column: str | None  # the same, but `max.<col>` where the order column is `min.<col>`
    order_type: str | None  # Delta's name of its type
    schema_hash: str
    index_columns: tuple[str, ...]  # of a part that is split in two: what every scan needs
    stats_columns: tuple[str, ...]  # and what only a filter needs

    @property
    def stats_paths(self) -> tuple[Path, ...]:
        """The physical paths whose statistics a part holds; what to ask a checkpoint for."""
        return tuple(column.path for column in self.statistics)

    @property
    def order_path(self) -> Path | None:
        """The physical path of the table's column that orders the rows."""
        if self.order_column is None:
            return None
        return field_path(self.schema.field(self.order_column))


def layout_of(
    metadata: Metadata,
    schema: StructType,
    *,
    stats_paths: Iterable[Path],
    time_column: str | None,
) -> SidecarLayout:
    """The layout for a table as it is now; `stats_paths` are physical and may name what is gone.

    `time_column` is a logical name. None: the table's property, else `_event_hour` where that is a
    partition column, else the first partition column, else none.
    """
    leaves = dict(physical_leaves(schema))
    partitions = _partition_fields(metadata, schema)
    order = _order_path(metadata, schema, time_column, leaves)
    partition_paths = {(field.physical_name,) for field in partitions}
    wanted = [path for path in dict.fromkeys(stats_paths) if path in leaves and path not in partition_paths]
    if order is not None and order not in partition_paths and order not in wanted:
        wanted.insert(0, order)
    names = {field.name.lower() for field in FIXED_FIELDS}
    partition_columns = tuple(_partition_column(field, names) for field in partitions)
    statistics = tuple(_statistics_column(path, leaves[path], names) for path in wanted)
    fields = [
        # What most scans ask for lies side by side, so that one request brings it; statistics come last.
        *_FIRST,
        *(field for column in partition_columns for field in _partition_columns(column)),
        *_LAST,
        *_COUNTS,
        *(field for column in statistics for field in _statistics_columns(column)),
    ]
    return _assembled(pa.schema(fields), partition_columns, statistics, order)


def configured_stats_paths(metadata: Metadata, schema: StructType) -> list[Path]:
    """Physical paths of the leaves that Delta collects statistics for, without partition columns."""
    partition_columns = set(metadata.partition_columns)
    data = StructType(tuple(field for field in schema.fields if field.name not in partition_columns))
    leaves = [path for path, _ in physical_leaves(data)]
    named = metadata.configuration.get("delta.dataSkippingStatsColumns")
    if named is not None:
        prefixes = {path for text in _column_list(named) if (path := _physical_path(data, text)) is not None}
        return [leaf for leaf in leaves if any(leaf[: len(path)] == path for path in prefixes)]
    try:
        count = int(metadata.configuration.get("delta.dataSkippingNumIndexedCols") or 32)
    except ValueError:
        count = 32
    return leaves if count < 0 else leaves[:count]


def sort_keys(layout: SidecarLayout) -> list[tuple[str, str]]:
    """How rows are sorted, for Arrow's `sort_by`; nulls come first."""
    order = [] if layout.order_column is None else [(layout.order_column, "ascending")]
    return [*order, ("path", "ascending")]


def field_path(field: pa.Field) -> Path | None:
    """The physical path in a part's field; None for a column that stands for none of the table's."""
    raw = (field.metadata or {}).get(PATH_KEY)
    return None if raw is None else tuple(msgspec.json.decode(raw, type=list[str]))


def field_kind(field: pa.Field) -> str | None:
    """`min`, `max`, `null_count`, `partition`, `raw_partition`; None for a fixed column."""
    raw = (field.metadata or {}).get(KIND_KEY)
    return None if raw is None else str(raw.decode())


def described(field: pa.Field, kind: str, path: Sequence[str]) -> pa.Field:
    """The field with its role and path."""
    return field.with_metadata({KIND_KEY: kind.encode(), PATH_KEY: msgspec.json.encode(list(path))})


def free_name(name: str, prefix: str, taken: set[str]) -> str:
    """The name, with as many prefixes as it takes to be free without regard to case; taken from then on."""
    while name.lower() in taken:
        name = prefix + name
    taken.add(name.lower())
    return name


# --- which columns -------------------------------------------------------------


def _partition_fields(metadata: Metadata, schema: StructType) -> list[Field]:
    """Partition columns; one that the schema lacks keeps its values as text."""
    return [
        schema.field(name) or Field(name=name, type=PrimitiveType("void"), nullable=True, metadata={})
        for name in metadata.partition_columns
    ]


def _order_path(
    metadata: Metadata, schema: StructType, time_column: str | None, leaves: dict[Path, Field]
) -> Path | None:
    if time_column is not None:
        path = _physical_path(schema, time_column)
        if path is None or not _has_bounds(leaves.get(path)):
            raise InvalidRequestError(
                f"the sidecar cannot be sorted by {time_column!r}: "
                + ("the table has no such column" if path is None else "it has no bounds to sort by"),
                f"columns: {', '.join(field.name for field in schema.fields)}",
                "name a partition column, or a column that has minimum and maximum statistics",
            )
        return path
    named = metadata.configuration.get(TIME_COLUMN_PROPERTY)
    path = None if named is None else _physical_path(schema, named)
    if path is not None and _has_bounds(leaves.get(path)):
        return path
    partitions = [field for field in _partition_fields(metadata, schema) if _is_storable(field.type)]
    partitions.sort(
        key=lambda field: field.name != TIME_COLUMN_DEFAULT
    )  # stable: the others keep their order
    return (partitions[0].physical_name,) if partitions else None


def _has_bounds(field: Field | None) -> bool:
    return field is not None and _wanted((field.physical_name,), field).has_bounds


def _physical_path(schema: StructType, text: str) -> Path | None:
    """The physical path of a column by its logical name: a top-level name first, else dots lead inside."""
    whole = schema.field(text)
    if whole is not None:
        return (whole.physical_name,)
    path: list[str] = []
    inside: StructType | None = schema
    for name in _dotted_names(text):
        field = None if inside is None else inside.field(name)
        if field is None:
            return None
        path.append(field.physical_name)
        inside = field.type if isinstance(field.type, StructType) else None
    return tuple(path)


def _column_list(text: str) -> list[str]:
    """Names between commas; inside backticks a comma is part of the name."""
    return [name for raw in _split(text, ",") if (name := raw.strip())]


def _dotted_names(text: str) -> list[str]:
    """`a.b` as two names; "`a.b`.c" too, the first of them with a dot."""
    return [
        name[1:-1].replace("``", "`") if len(name) > 1 and name[0] == name[-1] == "`" else name
        for name in _split(text, ".")
    ]


def _split(text: str, separator: str) -> Iterator[str]:
    start, is_quoted = 0, False
    for at, character in enumerate(text):
        if character == "`":
            is_quoted = not is_quoted
        elif character == separator and not is_quoted:
            yield text[start:at]
            start = at + 1
    yield text[start:]


# --- their names and fields ----------------------------------------------------


def _partition_column(field: Field, names: set[str]) -> PartitionColumn:
    typed = field.type if isinstance(field.type, PrimitiveType) and _is_storable(field.type) else None
    column = free_name(field.physical_name, "partition.", names)
    has_raw = typed is not None and typed != _TEXT
    return PartitionColumn(
        physical_name=field.physical_name,
        type=typed or _TEXT,
        column=column,
        raw_column=free_name(f"raw.{field.physical_name}", "partition.", names) if has_raw else None,
        is_text_only=typed is None,
    )


def _partition_columns(column: PartitionColumn) -> Iterator[pa.Field]:
    path = (column.physical_name,)
    yield described(pa.field(column.column, arrow_type(column.type)), "partition", path)
    if column.raw_column is not None:
        yield described(pa.field(column.raw_column, pa.string()), "raw_partition", path)


def _statistics_column(path: Path, field: Field, names: set[str]) -> StatisticsColumn:
    wanted = _wanted(path, field)
    dotted = ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in path)
    low = free_name(f"min.{dotted}", "stats.", names) if wanted.has_bounds else None
    high = free_name(f"max.{dotted}", "stats.", names) if wanted.has_bounds else None
    nulls = free_name(f"null_count.{dotted}", "stats.", names)
    return StatisticsColumn(wanted=wanted, min_column=low, max_column=high, null_count_column=nulls)


def _statistics_columns(column: StatisticsColumn) -> Iterator[pa.Field]:
    if column.min_column is not None and column.max_column is not None:
        bound = arrow_type(column.wanted.type)
        yield described(pa.field(column.min_column, bound), "min", column.path)
        yield described(pa.field(column.max_column, bound), "max", column.path)
    yield described(pa.field(column.null_count_column, pa.int64()), "null_count", column.path)


def _wanted(path: Path, field: Field) -> StatsColumn:
    """What is read of the leaf's statistics."""
    if not isinstance(field.type, PrimitiveType):
        return StatsColumn(path, PrimitiveType("void"), null_count_only=True)
    has_type = _is_storable(field.type)
    return StatsColumn(
        path,
        field.type,
        is_collated=field.is_collated,
        null_count_only=not has_type,
        was_float=field.was_float,
    )


def _is_storable(type_: DeltaType) -> bool:
    """Whether a part can have a column of the type. Parquet has no decimals of negative scale."""
    if not isinstance(type_, PrimitiveType) or type_.name in _UNTYPED:
        return False
    arrow = arrow_type(type_)
    return not (pa.types.is_decimal(arrow) and arrow.scale < 0)


# --- the whole -----------------------------------------------------------------


def _assembled(
    schema: pa.Schema,
    partitions: tuple[PartitionColumn, ...],
    statistics: tuple[StatisticsColumn, ...],
    order: Path | None,
) -> SidecarLayout:
    zones = _zone_columns(partitions, statistics)
    ordering = next((zone for zone in zones if zone.path == order), None)
    zones.sort(key=lambda zone: (zone is not ordering, not zone.is_partition))  # else as in the schema
    # The order column's statistics stay with the index: row groups are chosen by them.
    kept = {"min", "max", "null_count"}
    stats = tuple(
        field.name
        for field in schema
        if field.name == "tight_bounds" or (field_kind(field) in kept and field_path(field) != order)
    )
    shape = [FORMAT, [[f.name, str(f.type), field_kind(f), field_path(f)] for f in schema], order]
    return SidecarLayout(
        schema=schema,
        partitions=partitions,
        statistics=statistics,
        zone_columns=tuple(zones[: limits.SIDECAR_ZONE_COLUMNS_MAX]),
        order_column=None if ordering is None else ordering.min_column,
        order_max_column=None if ordering is None else ordering.max_column,
        order_type=None if ordering is None else ordering.type_name,
        schema_hash=hashlib.sha256(msgspec.json.encode(shape)).hexdigest()[:32],
        index_columns=tuple(field.name for field in schema if field.name not in stats),
        stats_columns=stats,
    )


def _zone_columns(
    partitions: Sequence[PartitionColumn], statistics: Sequence[StatisticsColumn]
) -> list[ZoneColumn]:
    zones = [
        ZoneColumn(
            path=(column.physical_name,),
            type_name=column.type.name,
            min_column=column.column,
            max_column=column.column,
            raw_column=column.raw_column or column.column,
            is_partition=True,
        )
        for column in partitions
        if not column.is_text_only
    ]
    zones += [
        ZoneColumn(
            path=column.path,
            type_name=column.wanted.type.name,
            min_column=column.min_column,
            max_column=column.max_column,
        )
        for column in statistics
        if column.min_column is not None and column.max_column is not None
    ]
    return zones
