"""Spark's way to Azurite: the connector, its settings, and a proxy between that can refuse requests.

Why a proxy always: Hadoop keeps a file system for each container once it has opened it, so Spark has to
meet faults on the very address that it used before them.
Contract: `lake` is for a module of tests on the shared session, whose jars include the connector. Spark and
lazydelta both go through `lake.proxy`; `lake.server` is Azurite itself.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.storage import Storage, parse_address
from tests.support.proxy import Fault, HttpProxy
from tests.support.servers import AZURITE_ACCOUNT, AZURITE_KEY, CONTAINER, TableServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSED = Fault(kind="status", status=403)


class Lake:
    """Azurite as Spark and lazydelta see it."""

    def __init__(self, server: TableServer, proxy: HttpProxy) -> None:
        self.server = server
        self.proxy = proxy
        self.options = server.through(proxy)

    def url(self, name: str = "telemetry") -> str:
        """A table root that no other test has, in lazydelta's short spelling, without TLS."""
        return self.server.url(name).replace("abfss://", "abfs://")

    def refuse(self, method: str, *words: str) -> None:
        """Answer 403 to requests of this method whose path has every word."""

        def plan(request: Any) -> Fault | None:
            is_meant = request.method == method and all(word in request.path for word in words)
            return REFUSED if is_meant else None

        self.proxy.plan = plan

    def open(self, url: str) -> ld.Table:
        """The newest version, read by lazydelta."""
        return ld.open(url, storage_options=self.options)

    def storage(self, url: str) -> Storage:
        """The table's root, past the proxy."""
        return self.server.open(url)

    def paths(self, url: str) -> list[str]:
        """Paths of the live files by lazydelta, sorted."""
        return sorted(file.path for file in self.open(url).scan().files())

    def delta_rs_paths(self, url: str) -> list[str]:
        """The same by delta-rs."""
        root = parse_address(url).root
        options = {**self.server.storage_options, "account_name": AZURITE_ACCOUNT}
        table = deltalake.DeltaTable(root, storage_options=options)
        return sorted(uri.partition(f"{root}/")[2] for uri in table.file_uris())

    def rows_by_hour(self, url: str) -> dict[str, list[int]]:
        """The column `v` of each hour's files, read from the store; every row lies in its own hour."""
        storage = self.storage(url)
        found: dict[str, list[int]] = {}
        for path in self.paths(url):
            hour = path.partition("/")[0].removeprefix("_event_hour=")
            table: pa.Table = pq.ParquetFile(io.BytesIO(storage.get(path))).read()
            assert {f"{moment:%Y%m%d%H}" for moment in table["ts"].to_pylist()} == {hour}, path
            found[hour] = sorted([*found.get(hour, []), *table["v"].to_pylist()])
        return found

    def names(self, url: str) -> list[str]:
        """Every object below the root but those, empty, by which Hadoop marks folders."""
        store, root = self.server.objects(url)
        found = [meta["path"] for page in obstore.list(store, prefix=root) for meta in page if meta["size"]]
        return [path.removeprefix(f"{root}/") for path in found]

    def download(self, url: str, folder: Path) -> Path:
        """A copy of everything below the root."""
        storage = self.storage(url)
        for name in self.names(url):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(storage.get(name))
        return folder


def hadoop_settings(port: int) -> dict[str, str]:
    """What Hadoop's connector needs to reach Azurite, without the prefix `spark.hadoop.`."""
    hosts = [f"{AZURITE_ACCOUNT}.{kind}.core.windows.net" for kind in ("dfs", "blob")]
    return {
        "fs.azure.abfs.endpoint": f"127.0.0.1:{port}",
        "fs.azure.always.use.https": "false",
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        "fs.azure.fns.account.service.type": "BLOB",
        "fs.azure.ingress.service.type": "BLOB",
        "fs.azure.account.hns.enabled": "false",
        "fs.azure.account.expect.header.enabled": "false",  # the proxy sends no 100 Continue
        **{f"fs.azure.account.key.{host}": AZURITE_KEY for host in hosts},
    }


@pytest.fixture(scope="module")
def lake(spark: SparkSession, azurite: TableServer) -> Iterator[Lake]:
    """Azurite, where the shared session finds it."""
    with HttpProxy(azurite.port) as proxy:
        configuration: Any = spark._jsc.hadoopConfiguration()  # Any: an object of the JVM
        settings = hadoop_settings(proxy.port)
        for name, value in settings.items():
            configuration.set(name, value)
        yield Lake(azurite, proxy)
        jvm: Any = spark._jvm  # Any: objects of the JVM
        root = f"abfs://{CONTAINER}@{AZURITE_ACCOUNT}.dfs.core.windows.net/"
        jvm.org.apache.hadoop.fs.Path(root).getFileSystem(configuration).close()
        for name in settings:
            configuration.unset(name)
