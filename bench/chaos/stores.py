"""The stores of a run, and how each user of a table reaches it there.

Contract: the emulators and the faulty lines to them are processes on loopback, gone when the block ends.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.chaos.world import TableSpec
from lazydelta.storage import parse_address
from tests.support import servers
from tests.support.lake import hadoop_settings
from tests.support.servers import AZURITE_ACCOUNT, CONTAINER
from tests.support.spark import AZURE_PACKAGE

STORES = ("local", "s3", "azurite")
# A request through the faulty line has more tries than usual: its faults are to be lived through.
PATIENT = {
    "delta.request.attempts_max": "6",
    "delta.request.backoff_seconds": "0.02",
    "delta.request.timeout_seconds": "90",
}
SPARK_SETTINGS = {
    "spark.app.name": "lazydelta chaos",
    "spark.jars.packages": AZURE_PACKAGE,
    "spark.master": "local[1]",
    "spark.driver.memory": "1500m",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@contextmanager
def running_stores(
    folder: Path, stores: list[str], *, seed: int
) -> Iterator[tuple[list[TableSpec], dict[str, str]]]:
    """A table's place on each, and what Spark has to be told."""
    specs, spark = [], dict(SPARK_SETTINGS)
    with ExitStack() as stack:
        for store in stores:
            place = folder / store
            place.mkdir(parents=True)
            if store == "local":
                specs.append(_local(place))
                continue
            server = stack.enter_context(
                servers.running_moto(place, {}) if store == "s3" else servers.running_azurite(place)
            )
            line = stack.enter_context(_faulty(server.port, f"{seed}/{store}", place / "faults.jsonl"))
            specs.append(_remote(place, server, line))
            if store == "azurite":
                spark |= {f"spark.hadoop.{key}": value for key, value in hadoop_settings(server.port).items()}
        yield specs, spark


def _local(place: Path) -> TableSpec:
    table = str(place / "table")
    return TableSpec(
        name="local",
        store="local",
        folder=str(place),
        url=table,
        options={},
        reader_options={},
        rs_url=table,
        rs_options={},
        spark_url=table,
    )


def _remote(place: Path, server: servers.TableServer, line: int) -> TableSpec:
    url = server.url("chaos")
    here, there = f"127.0.0.1:{server.port}", f"127.0.0.1:{line}"
    options = server.storage_options
    faulty = {key: value.replace(here, there) for key, value in options.items()}
    rs_options = {**options, "account_name": AZURITE_ACCOUNT}
    spark_url = None
    if server.kind == "s3":
        rs_options = {f"aws_{key}": value for key, value in options.items() if key != "allow_http"}
        rs_options |= {"aws_allow_http": "true", "aws_conditional_put": "etag"}
    else:
        host = f"{AZURITE_ACCOUNT}.dfs.core.windows.net"
        spark_url = f"abfs://{CONTAINER}@{host}/{parse_address(url).path}"
    return TableSpec(
        name=server.kind,
        store=server.kind,
        folder=str(place),
        url=url,
        options=options,
        reader_options=faulty | PATIENT,
        rs_url=parse_address(url).root,
        rs_options=rs_options,
        spark_url=spark_url,
    )


@contextmanager
def _faulty(port: int, seed: str, events: Path) -> Iterator[int]:
    """The port of a line to that port."""
    events.touch()
    command = [
        sys.executable,
        "-m",
        "bench.chaos.proxy",
        str(port),
        f"{seed}/{uuid.uuid4().hex}",
        str(events),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()
