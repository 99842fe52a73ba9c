"""Whether the target can take the batch: a table of this layout, or none yet; says which part differs.

Contract: `prepare_target` gives the table as it is afterwards. It makes the table where there is none,
with the properties that tell readers how the time column came about, and changes nothing that is there,
but adds those properties to a table that is laid out this way and lacks them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.delta_table import create_table, set_properties, table_state
from lazydelta.spark.known_schema import PROPERTY as SCHEMA_PROPERTY
from lazydelta.spark.known_schema import new_fields
from lazydelta.spark.time_column import PERIODS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from lazydelta.spark.config import IngestConfig
    from lazydelta.spark.delta_table import TableState

_FIXES = {
    "lazydelta.time.source": "give --event-time {found}",
    "lazydelta.time.column": "give --time-column {found}",
    "lazydelta.time.format": "give the --granularity of {found}",
    "lazydelta.time.zone": "give --time-zone {found}",
}
_ELSEWHERE = "or write to another target"


def time_properties(config: IngestConfig, event_time: str) -> dict[str, str]:
    """How the time column is derived, for readers."""
    return {
        "lazydelta.time.source": event_time,
        # Before the column, whose name follows the granularity unless it is given.
        "lazydelta.time.format": PERIODS[config.granularity][0],
        "lazydelta.time.column": config.time_column_name,
        "lazydelta.time.zone": config.time_zone,
    }


def prepare_target(
    spark: SparkSession,
    config: IngestConfig,
    *,
    schema: StructType,
    source_schema: StructType,
    event_time: str,
) -> TableState:
    """The target, made where there is none; `schema` is that of the rows to be written."""
    wanted = time_properties(config, event_time)
    state = table_state(spark, config.target)
    if state is None:
        check_free(spark, config.target)
        kept = {SCHEMA_PROPERTY: source_schema.json()}
        state = _created(spark, config, schema, config.properties | wanted | kept)
    check_layout(state, config, wanted)
    _check_columns(state, config, schema, event_time)
    lacking = {name: value for name, value in wanted.items() if name not in state.properties}
    if SCHEMA_PROPERTY not in state.properties:
        lacking[SCHEMA_PROPERTY] = source_schema.json()
    if lacking:
        set_properties(spark, config.target, lacking)
        state = table_state(spark, config.target)
        assert state is not None
    return state


def check_layout(state: TableState, config: IngestConfig, wanted: dict[str, str]) -> None:
    """Raise unless the table is laid out as the config says."""
    for name, value in wanted.items():
        found = state.properties.get(name, value)
        if found != value:
            raise _other(config, f"{name} is {found!r}, not {value!r}", _FIXES[name].format(found=found))
    column = wanted["lazydelta.time.column"]
    if [name.lower() for name in state.partition_columns] != [column.lower()]:
        by = ", ".join(state.partition_columns) or "nothing"
        raise _other(config, f"it is partitioned by {by}, not by {column}", "rewrite it in this layout")
    kind = next(
        field.dataType.simpleString() for field in state.schema.fields if field.name.lower() == column.lower()
    )
    if kind != "string":
        raise _other(config, f"its column {column} is {kind}, not string", "give another --time-column")


def check_free(spark: SparkSession, target: str) -> None:
    """Raise where something that is no Delta table is in the way.

    An empty log is not: a writer was killed before the first commit, or is about to make it.
    """
    jvm: Any = spark._jvm  # Any: objects of the JVM
    path = jvm.org.apache.hadoop.fs.Path(target)
    store = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not store.exists(path):
        return
    if store.getFileStatus(path).isDirectory():
        names = {status.getPath().getName() for status in store.listStatus(path)}
        if names <= {"_delta_log"} or table_state(spark, target) is not None:  # made just now
            return
    raise InvalidRequestError(
        "the target exists and is no Delta table",
        target,
        "name an empty or new folder, or convert it to Delta first",
    )


def _created(
    spark: SparkSession, config: IngestConfig, schema: StructType, properties: dict[str, str]
) -> TableState:
    """A new table, or the one that another writer made meanwhile."""
    create_table(
        spark, config.target, schema=schema, partition_by=config.time_column_name, properties=properties
    )
    state = table_state(spark, config.target)
    assert state is not None
    return state


def _check_columns(state: TableState, config: IngestConfig, schema: StructType, event_time: str) -> None:
    _check_event_time(state, config, schema, event_time)
    new = new_fields(state.schema, schema)
    if new and not config.merge_schema:
        raise InvalidRequestError(
            f"the target has no columns {', '.join(new[:10])}",
            config.target,
            "run it with --merge-schema to add them",
        )


def _check_event_time(state: TableState, config: IngestConfig, schema: StructType, name: str) -> None:
    """The target's event time must be what is derived from: a text column would take anything."""
    ours = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    theirs = {field.name.lower(): field.dataType.simpleString() for field in state.schema.fields}
    key = name.lower()
    if key in ours and key in theirs and ours[key] != theirs[key]:
        raise _other(
            config, f"its column {name} is {theirs[key]}, not {ours[key]}", "give another --event-time"
        )


def _other(config: IngestConfig, what: str, fix: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the target has another layout: {what}", config.target, f"{fix}, {_ELSEWHERE}"
    )
