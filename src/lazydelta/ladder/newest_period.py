"""A filter for the newest period of a table: what most queries about telemetry ask for.

Contract: found from the newest files, never from the whole list; a partition column of time, or else a column
of times by its statistics. None where the table tells no time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import islice

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.predicate.expression import column_sql
from lazydelta.protocol.schema import PrimitiveType, table_schema
from lazydelta.sidecar.read.traversal import traversal_by_rule
from lazydelta.table import Table

_LOOKED_AT = 100
_TIME_TYPES = ("timestamp", "timestamp_ntz")


class NewestPeriod(msgspec.Struct, frozen=True):
    """The filter, and where it comes from."""

    where: str
    told_by: str


def newest_period(table: Table) -> NewestPeriod | None:
    """The filter that asks for the newest period."""
    paths = [file.path for file in islice(table.scan(limit=_LOOKED_AT).files(), _LOOKED_AT)]
    if not paths:
        return None
    for name in _candidates(table):
        found = table.get_stats_for_files(paths, [name])
        newest = pc.max(found.column(f"max.{name}"))
        if newest.is_valid:
            return NewestPeriod(_filter(name, newest), _told_by(len(paths)))
    return None


def _told_by(files: int) -> str:
    return (
        "the newest period, by the newest file"
        if files == 1
        else f"the newest period, by the newest {files} files"
    )


def _candidates(table: Table) -> Iterator[str]:
    """The column that a sidecar would be sorted by, then columns of times."""
    schema = table_schema(table.metadata, table.url)
    order = traversal_by_rule(table.metadata, schema, descending=True).column
    if order is not None and len(order.path) == 1:
        field = next((field for field in schema.fields if field.physical_name == order.path[0]), None)
        if field is not None:
            yield column_sql((field.name,))
    for field in schema.fields:
        if isinstance(field.type, PrimitiveType) and field.type.name in _TIME_TYPES:
            yield column_sql((field.name,))


def _filter(name: str, newest: pa.Scalar) -> str:
    """The period itself, or the last hour of times."""
    if pa.types.is_timestamp(newest.type):
        value = newest.cast(pa.timestamp("us", newest.type.tz)).as_py()
        since = value - dt.timedelta(hours=1)
        return f"{name} >= '{since.isoformat()}'"
    value = newest.as_py()
    text = str(value).replace("'", "''")
    return f"{name} >= {value}" if isinstance(value, int | float) else f"{name} >= '{text}'"
