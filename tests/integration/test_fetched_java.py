"""A machine without Java: a runtime is fetched, it trusts what Python trusts, and Spark runs on it."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from requirements import machine

from tests.support.machine_parts import say
from tests.support.spark import environment_of_commands

pytestmark = pytest.mark.spark  # the first one starts Java, and both wait for the same download
SETTINGS = {"spark.master": "local[1]", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
PROGRAM = f"""
import sys
from lazydelta.spark.config import SparkConfig
from lazydelta.spark.session import get_session

spark = get_session(SparkConfig(spark={SETTINGS!r}))
spark.range(5).repartition(1).write.format("delta").save(sys.argv[1])
print(spark._jvm.java.lang.System.getProperty("java.home"))
print(spark.read.format("delta").load(sys.argv[1]).where("id > 1").count())
spark.stop()
"""


def without_java(folder: Path) -> dict[str, str]:
    """An environment whose PATH has every program of this machine but Java."""
    folder.mkdir()
    environment = environment_of_commands()
    environment.pop("JAVA_HOME", None)
    for place in environment["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return {**environment, "PATH": str(folder)}


def test_spark_with_delta_runs_on_the_java_that_is_fetched(tmp_path: Path) -> None:
    environment = without_java(tmp_path / "programs")
    command = [sys.executable, machine.__file__, "with-java", sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        [*command, str(tmp_path / "table")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    home, count = done.stdout.splitlines()[-2:]
    assert Path(home).is_relative_to(machine.cache_folder(environment) / "java")
    assert count == "3"


def test_the_java_that_is_fetched_trusts_what_python_trusts() -> None:
    home = machine.fetched_java(machine.cache_folder(os.environ), say)
    trusted = set(ssl.create_default_context().get_ca_certs(binary_form=True))
    store = home / "lib" / "security" / "cacerts"
    command = [home / "bin" / "keytool", "-list", "-keystore", store, "-storepass", "changeit"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counted = re.search(r"contains (\d+) entries", told)
    assert counted is not None
    assert int(counted[1]) == len(trusted) or not trusted
