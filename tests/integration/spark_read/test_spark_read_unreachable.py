"""Executors that do not reach the store: an error in words, whoever reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lazydelta.spark import read
from tests.support.proxy import HttpProxy
from tests.support.servers import TableServer
from tests.support.spark_settings import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def failure(frame: DataFrame) -> str:
    """What the user is told."""
    with pytest.raises(Exception, match=r"(?i)exception") as error:
        frame.collect()
    return str(error.value)


def stored(server: TableServer, folder: Path) -> str:
    write_deltalake(str(folder), pa.table({"id": [1, 2, 3]}))
    url = server.url("unreachable")
    server.upload(folder, url)
    return url


def test_tasks_that_find_the_stores_door_shut_say_so(
    spark: SparkSession, s3_server: TableServer, tmp_path: Path
) -> None:
    url = stored(s3_server, tmp_path / "t")
    with HttpProxy(s3_server.port) as proxy:
        frame = read(spark, url, storage_options=s3_server.through(proxy))
        plan: Any = frame._jdf.queryExecution()
        assert plan.toRdd().getNumPartitions() == 1  # planned: from here on only tasks ask the store
        assert frame.count() == 3
    told = failure(frame)
    assert "StorageError" in told
    assert url.rpartition("/")[2] in told
    assert "fix:" in told


def test_a_store_that_spark_has_no_way_to_is_read_by_lazydelta(
    spark: SparkSession, s3_server: TableServer, tmp_path: Path
) -> None:
    url = stored(s3_server, tmp_path / "t")
    found = read(spark, url, storage_options=s3_server.storage_options)
    assert sorted(row.id for row in found.collect()) == [1, 2, 3]


def test_a_file_that_tasks_may_not_open_is_named(spark: SparkSession, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1, 2, 3]}))
    frames = [read(spark, tmp_path / "t", native=native) for native in (False, True)]
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.unlink()
    file.mkdir()  # nobody can open it, root either
    with configured(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        told = [failure(frame) for frame in frames]
    assert all(file.name in text for text in told)
    assert "fix:" in told[0]
