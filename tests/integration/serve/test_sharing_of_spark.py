"""A table that Spark wrote: the client reads Spark's rows and changes, and no hint drops what Spark finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lazydelta as ld
from tests.support.row_tables import Row
from tests.support.serving import RunningServer, running_server
from tests.support.sharing import Sharing, as_delta
from tests.support.sharing_peer import sharing_peer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FEATURES = as_delta("deletionvectors", "columnmapping", "timestampntz")
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
}
COLUMNS = "id BIGINT, text STRING, number DOUBLE, small FLOAT, price DECIMAL(10,2), day DATE, at TIMESTAMP"
# Conditions as Spark reads them; some mean another thing to other readers, or by another clock.
CONDITIONS = [
    "id = 7", "id <> 7", "id >= 25 AND id < 27", "NOT (id < 20)", "7 > id", "id IN (3, 33)",
    "id BETWEEN 5 AND 6", "text = 'row 7'", "text <> 'row 7'", "text LIKE 'row 1%'", "text IS NULL",
    "text IS NOT NULL", "text = 'it\\'s'", 'text = "row 7"', 'text <> "row 7"', '"text" <> \'x\'',
    "text <> 'a\\\\b'", "`text` = 'row 8'", "TEXT = 'row 8'", "number = 0.1", "number > 1e300",
    "number <> number", "number = 'NaN'", "isnan(number)", "NOT (number < 5)", "small = 0.1", "small >= 0.1",
    "small = CAST(0.1 AS FLOAT)", "price = 12.5", "price > 12.499", "price <> 1e1", "day = '2026-02-03'",
    "day >= DATE '2026-02-03'", "day < '2026-02-03 12:00:00'", "day = '2026-2-3'",
    "at >= '2026-02-03 00:00:00'", "at = '2026-02-03T00:00:00Z'", "at < '2026-02-02'",
    "at > TIMESTAMP '2026-02-03 20:00:00'", "id = '7'", "id = 7.0", "id = 7L", "id <=> NULL",
    "id = NULL OR id = 3", "true", "false", "id + 1 = 8",
]  # fmt: skip


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("of-spark") / "t")
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.items())
    of = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {of} ({COLUMNS}) USING delta PARTITIONED BY (day) TBLPROPERTIES ({properties})")
    spark.sql(
        f"""
        INSERT INTO {of} SELECT id,
          CASE WHEN id % 9 = 4 THEN NULL WHEN id = 12 THEN "it's" ELSE concat('row ', id) END,
          CASE WHEN id % 10 = 3 THEN double('NaN') WHEN id = 5 THEN 0.1D WHEN id = 6 THEN -0.0D
               ELSE double(id) END,
          float(id / 10), decimal(id + 0.5), date_add(DATE '2026-02-01', int(id / 10)),
          timestamp_micros(1769990400000000 + id * 7200000000)
        FROM range(0, 40, 1, 1)
        """
    )
    spark.sql(f"DELETE FROM {of} WHERE id IN (1, 22, 23)")
    spark.sql(f"UPDATE {of} SET text = 'changed' WHERE id = 15")
    return path


@pytest.fixture(scope="module")
def server(table: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("config"), {"t": table}) as running:
        yield running


def comparable(rows: list[Row]) -> list[Any]:
    """As JSON tells rows, and sorted."""
    return sorted((row["id"], row["text"], str(row["day"])[:10], row.get("_change_type")) for row in rows)


def test_the_client_reads_rows_and_changes_of_spark(
    spark: SparkSession, table: str, server: RunningServer, tmp_path: Path
) -> None:
    with sharing_peer(tmp_path) as peer:
        address = f"{peer.profile(server)}#lazydelta.main.t"
        found = peer.ask(f"rows(delta_sharing.load_as_pandas({address!r}))")
        wanted = [row.asDict() for row in spark.read.format("delta").load(table).collect()]
        assert len(wanted) == 37
        assert comparable(found) == comparable(wanted)
        assert comparable(wanted) == comparable(ld.open(table).to_arrow().to_pylist())
        asked = f"{address!r}, starting_version=0, ending_version=3, use_delta_format=True"
        changed = peer.ask(f"rows(delta_sharing.load_table_changes_as_pandas({asked}))")
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    feed = feed.option("startingVersion", 0).option("endingVersion", 3)
    assert comparable(changed) == comparable([row.asDict() for row in feed.load(table).collect()])


def judged(spark: SparkSession, table: str, zone: str) -> list[Row]:
    """Every row's id and day, and by each condition's number whether Spark keeps it, in that zone."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        verdicts = [f"({condition}) AS `{number}`" for number, condition in enumerate(CONDITIONS)]
        frame = spark.read.format("delta").load(table)
        return [row.asDict() for row in frame.selectExpr("id", "string(day) AS day", *verdicts).collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def days_told(client: Sharing, condition: str, limit: int | None = None) -> list[str]:
    """The day of every file that is told."""
    more = {} if limit is None else {"limitHint": limit}
    files = client.query("t", FEATURES, predicateHints=[condition], **more).files
    return [
        day for file in files for day in file["deltaSingleAction"]["add"]["partitionValues"].values() if day
    ]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_no_hint_drops_a_file_in_which_spark_finds_a_row(
    spark: SparkSession, table: str, server: RunningServer, zone: str
) -> None:
    client, used = Sharing(server), 0
    rows = judged(spark, table, zone)
    everything = len(days_told(client, "true"))
    for number, condition in enumerate(CONDITIONS):
        kept = [row for row in rows if row[str(number)]]
        told = days_told(client, condition)
        assert {row["day"] for row in kept} <= set(told), condition
        used += len(told) < everything
        for limit in (1, 9, 20):
            enough = set(days_told(client, condition, limit))
            assert len([row for row in kept if row["day"] in enough]) >= min(limit, len(kept)), condition
    assert used >= 15  # and they are of use
