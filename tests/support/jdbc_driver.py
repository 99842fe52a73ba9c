"""Arrow's JDBC driver for Flight SQL, and a small Java program that speaks it.

Contract: the driver is fetched once into the project's cache (`LAZYDELTA_CACHE`) by Ivy, which PySpark
brings, of one version and checked by its digest. `ask` compiles and runs the program with questions, one a
line, and gives the answers.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.support.jars import fetch_jars
from tests.support.java_program import java_command
from tests.support.spark import cache_folder

VERSION = "18.3.0"
SHA256 = "3f418b46c880e263558c5de669bdbede2c5d4375527ced116fb29f795b03704c"
PROGRAM = Path(__file__).parents[1] / "integration" / "serve" / "JdbcClient.java"
_JAVA_SECONDS_MAX = 300.0


def driver_jar() -> Path:
    """The driver, fetched where it is not there yet."""
    jar = cache_folder() / "jdbc" / f"flight-sql-jdbc-driver-{VERSION}.jar"
    jar.parent.mkdir(parents=True, exist_ok=True)
    with (jar.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jar.exists():
            _fetch(jar)
    return jar


def ask(address: str, questions: list[list[str]], *, options: dict[str, str] | None = None) -> list[Any]:
    """Answers of the driver; `options` are its own."""
    given = "&".join(f"{key}={value}" for key, value in {"useEncryption": "false", **(options or {})}.items())
    flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.timezone=UTC"]
    flags += ["--add-opens=java.base/java.nio=ALL-UNNAMED"]
    command = java_command(PROGRAM, str(driver_jar()), flags)
    command.append(f"jdbc:arrow-flight-sql://{address}?{given}")
    asked = "".join("\t".join(question) + "\n" for question in questions)
    done = subprocess.run(
        command, input=asked, capture_output=True, text=True, check=False, timeout=_JAVA_SECONDS_MAX
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _fetch(jar: Path) -> None:
    with tempfile.TemporaryDirectory(dir=jar.parent) as folder:
        fetch_jars("org.apache.arrow", "flight-sql-jdbc-driver", VERSION, Path(folder), SHA256)
        shutil.move(Path(folder) / f"flight-sql-jdbc-driver-{VERSION}.jar", jar)
