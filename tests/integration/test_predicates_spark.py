"""Delta on Spark as the judge: its statistics drop no matching file, and its rows match as ours do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as fn

from lazydelta.predicate import Column, Expression, FileFacts, Not, bind, matches
from lazydelta.protocol.schema import arrow_schema, parse_schema
from lazydelta.protocol.statistics import statistics_from_json
from lazydelta.spark.reading.spark_condition import spark_condition
from tests.support.spark_settings import configured
from tests.support.written_files import PATTERNS, VALUES, batch_of, row_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPERATORS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


LONG = pytest.mark.long("the values of more columns, by the same path")
IN_DEFAULT = {"clock", "double", "text", "widened"}


@pytest.fixture(scope="module", params=[2, pytest.param(99, marks=LONG, id="all")])
def table(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A table with one file for every pair of so many values of every column, in one commit."""
    pairs = [
        [row_of(**{name: value}) for value in pair]
        for name, values in VALUES.items()
        for pair in combinations_with_replacement([None, *values[: request.param]], 2)
    ]
    rows = pa.Table.from_batches([batch_of([row for pair in pairs for row in pair])])
    path = tmp_path_factory.mktemp("pairs") / "delta"
    writer = spark.createDataFrame(rows).coalesce(1).write.format("delta")
    writer.option("maxRecordsPerFile", 2).option("delta.dataSkippingNumIndexedCols", -1).save(str(path))
    return path


@pytest.mark.spark
@pytest.mark.slow
def test_statistics_of_delta_on_spark_never_drop_a_matching_file(table: Path) -> None:
    actions = [json.loads(line) for line in (table / "_delta_log" / f"{0:020}.json").read_text().splitlines()]
    schema = parse_schema(next(a["metaData"]["schemaString"] for a in actions if "metaData" in a), str(table))
    adds = [action["add"] for action in actions if "add" in action]
    read = [pq.read_table(table / add["path"], partitioning=None) for add in adds]
    files = [rows.select(arrow_schema(schema).names).cast(arrow_schema(schema)) for rows in read]
    ends = np.cumsum([rows.num_rows for rows in files])
    (batch,) = pa.concat_tables(files).combine_chunks().to_batches()
    stats = pa.array([add["stats"] for add in adds])
    kept_count = judged_count = 0
    for expression in _leaves():
        for condition in (expression, Not(expression)):
            predicate = bind(condition, schema, [], where=str(table))
            verdicts = np.array([verdict is True for verdict in matches(predicate, batch).to_pylist()])
            by_file = np.split(verdicts, ends[:-1])
            has_match = np.array([part.any() for part in by_file])
            all_match = np.array([part.all() for part in by_file])
            facts = FileFacts(len(adds), {}, statistics_from_json(stats, predicate.stats_columns))
            might = predicate.might_match(facts)
            kept_count, judged_count = kept_count + might.sum(), judged_count + len(might)
            dropped = has_match & ~might
            wrong = predicate.must_match(facts) & ~all_match
            assert not dropped.any(), f"{condition} dropped {adds[dropped.argmax()]['stats']}"
            assert not wrong.any(), f"{condition} held certain for {adds[wrong.argmax()]['stats']}"
    assert kept_count < judged_count / 5, "all other columns of a file are null, so most files go"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [pytest.param(name, marks=[] if name in IN_DEFAULT else LONG) for name in sorted(VALUES)],
)
def test_rows_match_as_in_spark(spark: SparkSession, column: str) -> None:
    expressions = list(_leaves(column))
    expressions += [Not(expressions[1]), expressions[2] & ~expressions[3], expressions[0] | expressions[3]]
    batch = batch_of([row_of(**{column: value}) for value in [None, *VALUES[column]]])
    with configured(spark, {"spark.sql.parser.escapedStringLiterals": "true"}):
        frame = spark.createDataFrame(pa.Table.from_batches([batch])).coalesce(1)
        schema = parse_schema(frame.schema.json(), "memory")
        bound = [bind(one, schema, [], where="memory") for one in expressions]
        # As Spark reads our SQL, and as a read in Spark tells it. Floats it reads as doubles.
        texts = [] if column == "single" else [fn.expr(_spark_sql(one)) for one in expressions]
        conditions = [spark_condition(one.root) for one in bound]
        judged = frame.select(
            *(one.alias(f"c{at}") for at, one in enumerate([*conditions, *texts]))
        ).toArrow()
    for at, predicate in enumerate([*bound, *(bound if texts else [])]):
        ours = matches(predicate, batch)
        assert ours.to_pylist() == judged.column(at).to_pylist(), str(predicate.expression)


def _leaves(*only: str) -> Iterator[Expression]:
    for name in only or VALUES:
        column = Column((name, "inner") if name == "outer" else (name,))
        yield column.is_null()
        yield column.is_in(VALUES[name][:2])
        yield column.is_in([*VALUES[name][1:2], None])
        for value in VALUES[name]:
            yield from (getattr(column, operator)(value) for operator in OPERATORS)
        if name == "text":
            yield from (column.like(pattern) for pattern in PATTERNS)


def _spark_sql(expression: Expression) -> str:
    """Our SQL in Spark's words."""
    text = str(expression).replace('"outer"."inner"', "`outer`.`inner`")
    for word in ("nan", "-inf", "inf"):
        text = text.replace(f"DOUBLE '{word}'", f"cast('{word}' as double)")
    return text
