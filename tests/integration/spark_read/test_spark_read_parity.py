"""Golden tables in Spark; random ones are in `tests/integration/test_rows_as_engines_read.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.golden.test_golden_rows import WITH_ROWS, counted, expected_rows
from tests.golden.test_golden_tables import FOLDER, needs_golden, table_folder
from tests.support.spark_reads import by_each_reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@needs_golden
@pytest.mark.parametrize("name", WITH_ROWS)
def test_a_golden_table_has_its_rows_in_spark(spark: SparkSession, name: str) -> None:
    expected = expected_rows(FOLDER / name / "expected")
    for frame in by_each_reader(spark, table_folder(name)):
        found = frame.toArrow()
        assert sorted(found.column_names) == sorted(expected.column_names)
        assert counted(found) == counted(expected.select(found.column_names))
