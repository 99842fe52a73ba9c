"""A source in a store, spelled as readers spell it."""

from __future__ import annotations

import pytest

from lazydelta.spark.config import IngestConfig
from lazydelta.spark.source import with_spark_source


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("s3://in/2026/*.json", "s3a://in/2026/*.json"),
        ("abfss://in@lake/telemetry", "abfss://in@lake.dfs.core.windows.net/telemetry"),
        ("az://in/telemetry", "abfss://in@lake.dfs.core.windows.net/telemetry"),
        ("hdfs://node/in", "hdfs://node/in"),
        ("./in/100%", "./in/100%"),
        ("", ""),
    ],
)
def test_a_store_is_spelled_for_hadoop_and_nothing_else_is_touched(given: str, wanted: str) -> None:
    config = IngestConfig(source=given, storage_options={"account_name": "lake"})
    assert with_spark_source(config).source == wanted


def test_a_tables_name_is_no_address() -> None:
    config = IngestConfig(source="s3://x/y", format="table")
    assert with_spark_source(config) is config
