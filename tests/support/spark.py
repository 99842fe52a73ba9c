"""The one Spark session of a test run, with Delta on it.

Why one: a session takes 8 to 20 seconds to start and a JVM holds only one SparkContext.
Contract: the jars are pinned and kept in the project's cache (`LAZYDELTA_CACHE`, `.cache` of the
repository by default); once they are there the session starts without a network. `LAZYDELTA_MAVEN_ROOT`
names another Maven repository than the public one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

# Spark's own distribution has these already; without the list 33 jars are fetched instead of ten.
_EXCLUDES = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.parquet:parquet-hadoop",
    "com.fasterxml.jackson.core:jackson-databind",
    "com.fasterxml.jackson.core:jackson-core",
    "com.fasterxml.jackson.core:jackson-annotations",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8",
    "org.slf4j:slf4j-api",
    "org.apache.logging.log4j:log4j-api",
    "org.apache.logging.log4j:log4j-core",
    "org.apache.logging.log4j:log4j-slf4j2-impl",
    "org.scala-lang:scala-library",
)

# One resolver and no local Maven folder: a half-filled one (a pom without its jar) makes ivy fail.
_IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"{root}/></resolvers>
</ivysettings>
"""

_FAST_AND_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={scratch}",
    "spark.sql.warehouse.dir": "{scratch}/warehouse",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with Delta, started when the first test asks for it."""
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def start_session(scratch: Path) -> SparkSession:
    """A local session; what Spark itself leaves behind goes to `scratch`."""
    from pyspark.sql import SparkSession

    # Workers would otherwise take the first python3 on the path, which may have no pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    ivy = cache_folder() / "ivy"
    builder: Any = SparkSession.builder.master("local[2]").appName("lazydelta tests")
    settings = {key: value.format(scratch=scratch) for key, value in _FAST_AND_QUIET.items()}
    settings |= {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.local.dir": str(scratch),
    } | _jar_settings(ivy)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    _complete_marker(ivy).touch()
    return session


def cache_folder() -> Path:
    """Where downloads are kept between runs."""
    default = Path(__file__).resolve().parents[2] / ".cache"
    return Path(os.environ.get("LAZYDELTA_CACHE") or default)


def delta_log(spark: SparkSession, table: Path | str) -> Any:  # Any: an object of the JVM
    """Delta's own `DeltaLog` of a table, read afresh."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(table))


def _jar_settings(ivy: Path) -> dict[str, str]:
    jars = sorted((ivy / "jars").glob("*.jar"))
    if _complete_marker(ivy).exists() and jars:
        return {"spark.jars": ",".join(str(jar) for jar in jars)}
    ivy.mkdir(parents=True, exist_ok=True)
    root = os.environ.get("LAZYDELTA_MAVEN_ROOT")
    settings_file = ivy / "ivysettings.xml"
    settings_file.write_text(_IVY_SETTINGS.format(root=f' root="{root}"' if root else ""))
    return {
        "spark.jars.packages": DELTA_PACKAGE,
        "spark.jars.excludes": ",".join(_EXCLUDES),
        "spark.jars.ivy": str(ivy),
        "spark.jars.ivySettings": str(settings_file),
    }


def _complete_marker(ivy: Path) -> Path:
    # Named after the pinned package: another pin fetches anew.
    return ivy / f"{DELTA_PACKAGE.replace(':', '_')}.complete"
