"""The schema of the source, inferred once and kept: what a later batch may bring, and what the user is told.

Why kept: inference on another day's data would flip a type. Contract: the schema is kept as JSON in the
table property `lazydelta.source.schema`; columns of the target that it lacks (added by hand) are known
too. A new column is an error that names it, or with `merge_schema` joins the end. A type may only arrive
narrower than it is kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.quoting import quoted
from lazydelta.spark.record_columns import INTERNAL_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

    from lazydelta.spark.config import IngestConfig
    from lazydelta.spark.delta_table import TableState

PROPERTY = "lazydelta.source.schema"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
# Kinds whose text says all that they held.
_TEXTUAL = (*_WHOLE, "boolean", "date", "float", "double")


def kept_schema(state: TableState | None, config: IngestConfig) -> StructType | None:
    """What the table knows of its source, or None where it knows nothing."""
    from pyspark.sql.types import StructType, _parse_datatype_json_string

    if state is None or PROPERTY not in state.properties:
        return None
    kept = _parse_datatype_json_string(state.properties[PROPERTY])
    assert isinstance(kept, StructType)
    names = {name.lower() for name in kept.names} | {config.time_column_name.lower()}
    more = [field for field in state.schema.fields if field.name.lower() not in names]
    return StructType([*kept.fields, *more])


def given_schema(config: IngestConfig) -> StructType | None:
    """The schema that the caller wrote: DDL, or a file of DDL or of Spark's JSON."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType, _parse_datatype_json_string

    if config.schema is None:
        return None
    text, where = _schema_text(config.schema)
    try:
        if text.lstrip().startswith("{"):
            schema = _parse_datatype_json_string(text)
        else:
            schema = StructType.fromDDL(text)
    except (PySparkException, ValueError, KeyError, TypeError) as problem:
        raise _bad_schema(str(problem).strip().splitlines()[0], where) from problem
    if not isinstance(schema, StructType):
        raise _bad_schema("it is no list of columns", where)
    return schema


def reconciled(kept: StructType | None, found: StructType, config: IngestConfig) -> StructType:
    """The schema to read with: the kept types, and new columns where merging was asked for."""
    if kept is None:
        return found
    new = new_fields(kept, found)
    if new and not config.merge_schema:
        names = ", ".join(new[:10]) + (", …" if len(new) > 10 else "")
        raise InvalidRequestError(
            f"the source has columns that the table does not know: {names}",
            config.source or config.target,
            "run it with --merge-schema to add them, or leave them out of the source",
        )
    return merged(kept, found) if new else kept


def checked_names(found: StructType, where: str, prefix: str = "") -> StructType:
    """The same schema, or an error for names that a table cannot have, or that the pipeline keeps."""
    seen: dict[str, str] = {}
    for field in found.fields:
        key, name = field.name.lower(), prefix + field.name
        if not prefix and key.startswith(INTERNAL_PREFIX):
            raise InvalidRequestError(
                f"the source has a column {name}, a name that the pipeline keeps for itself",
                where,
                "rename it, or leave it out of the source",
            )
        if key in seen:
            raise InvalidRequestError(
                f"the source has the columns {seen[key]} and {name}, and a table tells no cases apart",
                where,
                "spell them alike if they are one; else rename one, or give --schema with the one to read",
            )
        seen[key] = name
        inner = _inner_structs(field.dataType, field.dataType)
        if inner is not None:
            checked_names(inner[0], where, f"{name}.")
    return found


def respelled(schema: StructType, found: StructType) -> StructType:
    """`schema` with its names as `found` spells them: readers of JSON and XML tell cases apart."""
    from pyspark.sql.types import StructField, StructType

    theirs = {field.name.lower(): field for field in found.fields}
    fields = []
    for field in schema.fields:
        own = theirs.get(field.name.lower(), field)
        fields.append(StructField(own.name, _respelled_type(field.dataType, own.dataType), field.nullable))
    return StructType(fields)


def new_fields(kept: StructType, found: StructType, prefix: str = "") -> list[str]:
    """The dotted names of fields in `found` that `kept` lacks, at any depth."""
    known = {field.name.lower(): field for field in kept.fields}
    new = []
    for field in found.fields:
        name = prefix + field.name
        if field.name.lower() not in known:
            new.append(name)
            continue
        pair = _inner_structs(known[field.name.lower()].dataType, field.dataType)
        if pair is not None:
            new += new_fields(*pair, prefix=f"{name}.")
    return new


def merged(kept: StructType, found: StructType) -> StructType:
    """`kept` with the fields it lacks at the end of their struct; kept types stay."""
    from pyspark.sql.types import StructField, StructType

    by_name = {field.name.lower(): field for field in found.fields}
    fields = [
        StructField(field.name, _merged_type(field.dataType, by_name[field.name.lower()].dataType), True)
        if field.name.lower() in by_name
        else field
        for field in kept.fields
    ]
    names = {field.name.lower() for field in kept.fields}
    more = [
        StructField(field.name, field.dataType, True)
        for field in found.fields
        if field.name.lower() not in names
    ]
    return StructType([*fields, *more])


def conformed(frame: DataFrame, schema: StructType, *, keep: tuple[str, ...], where: str) -> DataFrame:
    """`frame` with exactly the columns of `schema`, by name, and those of `keep`; what it lacks is null."""
    from pyspark.sql import functions as fn

    by_name = {field.name.lower(): field for field in frame.schema.fields}
    columns = []
    for field in schema.fields:
        own = by_name.get(field.name.lower())
        if own is None:
            columns.append(fn.lit(None).cast(field.dataType).alias(field.name))
            continue
        column = _conformed(fn.col(quoted(own.name)), own.dataType, field.dataType, where, field.name)
        columns.append(column.alias(field.name))
    return frame.select(*columns, *[fn.col(quoted(name)) for name in keep if name in frame.columns])


def _schema_text(given: str) -> tuple[str, str]:
    looks_like_file = "\n" not in given and " " not in given.strip()
    if not looks_like_file and not (len(given) < 4096 and "\n" not in given and Path(given).is_file()):
        return given, "--schema"
    try:
        return Path(given).read_text("utf-8"), given
    except (OSError, UnicodeDecodeError) as problem:
        raise _bad_schema(f"the file cannot be read: {problem}", given) from problem


def _bad_schema(what: str, where: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the schema cannot be read: {what}",
        where,
        'write "ts timestamp, device_id string", or name a file of that',
    )


def _inner_structs(kept: DataType, found: DataType) -> tuple[StructType, StructType] | None:
    from pyspark.sql import types as ty

    match kept, found:
        case ty.StructType(), ty.StructType():
            return kept, found
        case ty.ArrayType(), ty.ArrayType():
            return _inner_structs(kept.elementType, found.elementType)
        case ty.MapType(), ty.MapType():
            return _inner_structs(kept.valueType, found.valueType)
    return None


def _respelled_type(kept: DataType, found: DataType) -> DataType:
    from pyspark.sql import types as ty

    match kept, found:
        case ty.StructType(), ty.StructType():
            return respelled(kept, found)
        case ty.ArrayType(), ty.ArrayType():
            return ty.ArrayType(_respelled_type(kept.elementType, found.elementType), kept.containsNull)
        case ty.MapType(), ty.MapType():
            value = _respelled_type(kept.valueType, found.valueType)
            return ty.MapType(kept.keyType, value, kept.valueContainsNull)
    return kept


def _merged_type(kept: DataType, found: DataType) -> DataType:
    from pyspark.sql import types as ty

    match kept, found:
        case ty.StructType(), ty.StructType():
            return merged(kept, found)
        case ty.ArrayType(), ty.ArrayType():
            return ty.ArrayType(_merged_type(kept.elementType, found.elementType), True)
        case ty.MapType(), ty.MapType():
            return ty.MapType(kept.keyType, _merged_type(kept.valueType, found.valueType), True)
    return kept


def _conformed(column: Column, found: DataType, kept: DataType, where: str, name: str) -> Column:
    from pyspark.sql import functions as fn
    from pyspark.sql import types as ty

    if found.simpleString() == kept.simpleString():
        return column
    match found, kept:
        case ty.StructType(), ty.StructType():
            by_name = {field.name.lower(): field for field in found.fields}
            parts = [_member(column, by_name, field, where, f"{name}.{field.name}") for field in kept.fields]
            return fn.when(column.isNotNull(), fn.struct(*parts))
        case ty.ArrayType(), ty.ArrayType():
            inner, outer = found.elementType, kept.elementType
            return fn.transform(column, lambda item: _conformed(item, inner, outer, where, f"{name}.element"))
        case ty.MapType(), ty.MapType() if found.keyType == kept.keyType:
            old, new = found.valueType, kept.valueType
            return fn.transform_values(
                column, lambda _, item: _conformed(item, old, new, where, f"{name}.value")
            )
    if not _is_wider(found, kept):
        raise InvalidRequestError(
            f"column {name!r} of the source is {found.simpleString()} now, and the table knows it as "
            f"{kept.simpleString()}",
            where,
            "cast it in the source, or give --schema with a type that both fit",
        )
    return column.cast(kept)


def _member(
    column: Column, by_name: dict[str, StructField], field: StructField, where: str, name: str
) -> Column:
    from pyspark.sql import functions as fn

    own = by_name.get(field.name.lower())
    if own is None:
        return fn.lit(None).cast(field.dataType).alias(field.name)
    return _conformed(column.getField(own.name), own.dataType, field.dataType, where, name).alias(field.name)


def _is_wider(found: DataType, kept: DataType) -> bool:
    """Whether every value of `found` has its equal in `kept`."""
    from pyspark.sql import types as ty

    old, new = found.simpleString(), kept.simpleString()
    if old == "void":
        return True
    if old in _WHOLE and new in _WHOLE:
        return _WHOLE.index(old) <= _WHOLE.index(new)
    if isinstance(found, ty.DecimalType) and isinstance(kept, ty.DecimalType):
        whole_digits = kept.precision - kept.scale >= found.precision - found.scale
        return whole_digits and kept.scale >= found.scale
    if isinstance(kept, ty.DecimalType) and old in _WHOLE:
        return kept.precision - kept.scale >= _DIGITS[old]
    if new == "double":
        return old in ("float", "tinyint", "smallint", "int")
    return isinstance(kept, ty.StringType) and old in _TEXTUAL
