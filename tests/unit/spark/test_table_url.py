"""A table's address as Spark wants it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.table_url import literal_path, reader_url, spark_url, with_spark_urls
from lazydelta.storage import parse_address


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("/data/a table", "/data/a table"),
        ("file:///data/a%20table", "/data/a table"),
        ("s3://bucket/a%20table", "s3a://bucket/a table"),
        ("s3a://bucket/table/", "s3a://bucket/table"),
        ("abfss://lake@account/table", "abfss://lake@account.dfs.core.windows.net/table"),
        ("abfs://lake@account.dfs.core.windows.net/table", "abfs://lake@account.dfs.core.windows.net/table"),
        (
            "https://account.blob.core.windows.net/lake/a/table",
            "abfss://lake@account.dfs.core.windows.net/a/table",
        ),
    ],
)
def test_an_address_is_spelled_as_hadoop_spells_it(url: str, wanted: str) -> None:
    assert spark_url(url) == wanted


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert spark_url("table") == str(tmp_path / "table")


def test_the_account_may_come_from_the_options() -> None:
    assert spark_url("az://lake/t", {"account_name": "acc"}) == "abfss://lake@acc.dfs.core.windows.net/t"
    with pytest.raises(InvalidRequestError, match="account"):
        spark_url("az://lake/t")


def test_patterns_in_a_path_are_taken_literally() -> None:
    assert literal_path("/a [b]/{c}*?/d") == r"/a \[b\]/\{c\}\*\?/d"


def test_an_ingest_names_its_tables_as_spark_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = with_spark_urls(IngestConfig(target="telemetry"))
    assert (here.target, here.rejects) == (f"{tmp_path}/telemetry", f"{tmp_path}/telemetry_rejects")
    there = with_spark_urls(IngestConfig(target="s3://lake/telemetry", rejects="hdfs://node/bad"))
    assert (there.target, there.rejects) == ("s3a://lake/telemetry", "hdfs://node/bad")


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("abfss://lake@account/t", "abfss://lake@account.dfs.core.windows.net/t"),
        ("abfs://lake@account/a%20t/", "abfs://lake@account.dfs.core.windows.net/a t"),
        ("abfss://lake/t", "abfss://lake@mine.dfs.core.windows.net/t"),
        ("s3a://lake/100%25", "s3a://lake/100%"),
        ("abfss://lake@account.dfs.other.example/t%20", "abfss://lake@account.dfs.other.example/t%20"),
        ("hdfs://node/t%20", "hdfs://node/t%20"),
    ],
)
def test_stores_that_hadoop_reads_differently_are_respelled(target: str, wanted: str) -> None:
    config = IngestConfig(target=target, checkpoint_location=target, storage_options={"account_name": "mine"})
    there = with_spark_urls(config)
    assert (there.target, there.checkpoint_location) == (wanted, wanted)


def test_a_local_checkpoint_location_stays_as_it_is() -> None:
    assert with_spark_urls(IngestConfig(target="t", checkpoint_location="./p")).checkpoint_location == "./p"


@pytest.mark.parametrize(
    "url", ["s3://lake/100%25/a%20b%23%3F", "abfss://lake@account/%2520", "/data/100%25"]
)
def test_spark_and_readers_find_the_same_table(url: str) -> None:
    assert parse_address(reader_url(spark_url(url))).root == parse_address(url).root
