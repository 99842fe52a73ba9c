"""The one Spark session of a test run, with Delta on it.

Why one: a session takes 8 to 20 seconds to start and a JVM holds only one SparkContext.
Contract: the session is the pipeline's own (`lazydelta.spark.session`), made small and fast. The jars are
kept in the project's cache (`LAZYDELTA_CACHE`, `.cache` of the repository by default); once they are
there the session starts without a network; they are fetched by one process at a time. A test that starts the
command, and with it Java of its own, calls `environment_of_commands`: the command's jars are then there.
"""

from __future__ import annotations

import fcntl
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from lazydelta.spark.session import CACHE_VARIABLE, plan_launch, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    WriteTable = Callable[[SparkSession, Path], None]

# Hadoop's way to Azure, of the very version that PySpark brings; see tests/support/lake.py.
AZURE_PACKAGE = "org.apache.hadoop:hadoop-azure:3.5.0"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for a JVM that lives for seconds
# For the one of a whole run: with the first compiler alone the code cache would be full after a minute,
# and Java would throw compiled code away; a small heap is collected many times a second.
SHARED_JAVA = f"{QUICK_JAVA} -XX:ReservedCodeCacheSize=240m -Xms1g -Xmn640m"
FAST_SETTINGS = {
    "spark.app.name": "lazydelta tests",
    "spark.jars.packages": AZURE_PACKAGE,
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Compiling Java for a few rows, and planning again between stages, cost more than they save.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Hadoop's checked local files start a `chmod` for each file and for its checksum.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.driver.extraJavaOptions": f"{SHARED_JAVA} -Dderby.system.home={{scratch}}",
    "spark.sql.warehouse.dir": "{scratch}/warehouse",
    "spark.local.dir": "{scratch}",
}

_FETCH = """
from lazydelta.spark.config import SparkConfig
from lazydelta.spark.session import get_session

get_session(SparkConfig(spark={"spark.master": "local[1]"})).stop()
"""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark with Delta, started when the first test asks for it."""
    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[WriteTable], Path]:
    """The table that a function writes: written once, for all tests that only read it."""
    known: dict[WriteTable, Path] = {}

    def table_by(write: WriteTable) -> Path:
        if write not in known:
            known[write] = tmp_path_factory.mktemp(write.__name__) / "table"
            write(spark, known[write])
        return known[write]

    return table_by


def start_session(scratch: Path) -> SparkSession:
    """A local session; what Spark itself leaves behind goes to `scratch`."""
    settings = {key: value.format(scratch=scratch) for key, value in FAST_SETTINGS.items()}
    with _alone():
        launch = plan_launch(settings, environment())
        if launch.settings["spark.jars.packages"]:
            return start(launch)
    return start(launch)


def run_command(*arguments: object, expect: int = 0) -> Result:
    """`lazydelta ...` in this process, on the Spark session that is active in it."""
    from lazydelta.cli.app import app

    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == expect, f"{done.exit_code}\n{done.stderr}\n{done.exception!r}"
    return done


def environment() -> dict[str, str]:
    """The caller's environment, with the project's own cache."""
    return {**os.environ, CACHE_VARIABLE: str(cache_folder())}


def environment_of_commands() -> dict[str, str]:
    """The same, once the jars are there that the command asks for when nothing else is said."""
    _fetch_jars()
    return environment()


def cache_folder() -> Path:
    """Where downloads are kept between runs."""
    default = Path(__file__).resolve().parents[2] / ".cache"
    return Path(os.environ.get(CACHE_VARIABLE) or default)


def delta_log(spark: SparkSession, table: Path | str) -> Any:  # Any: an object of the JVM
    """Delta's own `DeltaLog` of a table, read afresh."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(table))


@functools.cache
def _fetch_jars() -> None:
    with _alone():
        if plan_launch({}, environment()).settings["spark.jars.packages"]:
            # In a process of its own: this one may have a session, or want another.
            subprocess.run([sys.executable, "-c", _FETCH], check=True, env=environment(), timeout=500)


@contextmanager
def _alone() -> Iterator[None]:
    """One process at a time fetches jars: a repository that is asked too much at once refuses."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".jars.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
