"""What Spark says about a random table: the rows of some versions, and which of them random filters keep.

Contract: one question for each version, so that everything is asked of the same rows. The newest version
comes first. Answers hold nothing of Spark, so that they outlive it.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

import lazydelta as ld
from tests.support.random_lake import RandomLake
from tests.support.random_lake_filters import Filter, random_filter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROW_ID, _COMMIT_VERSION = "spark row id", "spark commit version"


class Answer(msgspec.Struct, frozen=True):
    """One version by Spark."""

    version: int
    key: str
    rows: pa.Table
    kept: list[tuple[Filter, list[int]]]  # filters, and the sorted keys of the rows that they keep
    row_ids: pa.Table | None  # key, row id, commit version; None without row tracking


def spark_answers(lake: RandomLake, dice: random.Random, *, filters: int, earlier: int) -> list[Answer]:
    """The newest version and some earlier ones."""
    newest = lake.version
    others = sorted(set(lake.models) - {newest})
    versions = [newest, *dice.sample(others, min(earlier, len(others)))]
    return [
        _answer(lake, version, dice, filters if version == newest else filters // 2) for version in versions
    ]


def rows_of(frame: DataFrame) -> pa.Table:
    """As `toArrow` gives them; that fails on nulls around variants."""
    return pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))


def counted(rows: pa.Table, *, one_zero: bool = False) -> Counter[str]:
    """How often each row comes; order does not matter. With `one_zero` the sign of a zero does not either."""
    plain = (repr({name: _plain(value) for name, value in row.items()}) for row in rows.to_pylist())
    return (
        Counter(row.replace("-0.0,", "0.0,").replace("-0.0}", "0.0}") for row in plain)
        if one_zero
        else Counter(plain)
    )


def _answer(lake: RandomLake, version: int, dice: random.Random, count: int) -> Answer:
    model = lake.models[version]
    key, leaves = model.key.name, model.leaves_by_path()
    filters = [random_filter(dice, leaves) for _ in range(count)]
    verdicts = [f"{one.spark} AS `verdict {at}`" for at, one in enumerate(filters)]
    configuration = ld.open(str(lake.folder), version=version).metadata.configuration
    is_tracked = configuration.get("delta.enableRowTracking") == "true"
    ids = [f"_metadata.row_id AS `{_ROW_ID}`", f"_metadata.row_commit_version AS `{_COMMIT_VERSION}`"]
    chosen = ", ".join(["*", *verdicts, *(ids if is_tracked else [])])
    found = rows_of(lake.spark.sql(f"SELECT {chosen} FROM {lake.table} VERSION AS OF {version}"))
    names = found.column_names[: found.num_columns - len(verdicts) - 2 * is_tracked]
    keys = found.column(key).to_pylist()
    assert len(keys) == len(set(keys)), "the generator gives every row its own key"
    kept = []
    for at, one in enumerate(filters):
        holds = found.column(f"verdict {at}").to_pylist()
        kept.append((one, sorted(k for k, is_kept in zip(keys, holds, strict=True) if is_kept)))
    row_ids = None
    if is_tracked:
        row_ids = found.select([key, _ROW_ID, _COMMIT_VERSION])
        row_ids = row_ids.rename_columns([key, "_row_id", "_commit_version"])
    return Answer(version, key, found.select(names), kept, row_ids)


def _plain(value: Any) -> Any:
    """Instants without their zone, maps in any order, variants by their bytes."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, dict):
        names = sorted(value) if set(value) == {"metadata", "value"} else value
        return {name: _plain(value[name]) for name in names}
    if isinstance(value, list):
        inner = [_plain(item) for item in value]
        return sorted(inner, key=repr) if inner and isinstance(inner[0], tuple) else inner
    return tuple(_plain(item) for item in value) if isinstance(value, tuple) else value
