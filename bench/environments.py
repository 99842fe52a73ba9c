"""Where each reader runs: the project's own environment, one made for it, or a JVM.

Contract: an environment is made on first use from pinned requirements and kept in the project's cache; it
is made anew when the pins change.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.tables import REPOSITORY, cache_folder
from tests.support import java_program

PEERS = Path(__file__).resolve().parent / "peers"
_KERNEL_SOURCE = PEERS / "KernelReader.java"


def python_of(name: str | None) -> Path:
    """The interpreter of a named environment; None is the project's own."""
    if name is None:
        return Path(sys.executable)
    folder = cache_folder() / "peers" / name
    requirements = PEERS / f"requirements-{name}.txt"
    stamp, wanted = folder / ".stamp", _digest(requirements)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment of {name} …", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--requirement", str(requirements)], check=True)
        stamp.write_text(wanted)
    return folder / "bin" / "python"


def java_command() -> list[str]:
    """`java` with the Delta kernel on its class path, and the compiled reader."""
    jars = _delta_jars()
    spark_jars = _pyspark_folder() / "jars" / "*"
    class_path = os.pathsep.join([*map(str, jars), str(spark_jars)])
    return java_program.java_command(_KERNEL_SOURCE, class_path)


def _delta_jars() -> list[Path]:
    """The jars Delta on Spark needs; the kernel's are among them. Starting Spark once fetches them."""
    folder = cache_folder() / "ivy" / "jars"
    if not list(folder.glob("*delta-kernel-defaults*.jar")):
        fetch = (
            "from lazydelta.spark import config, session; session.get_session(config.SparkConfig()).stop()"
        )
        variables = os.environ | {"LAZYDELTA_CACHE": str(cache_folder())}
        command = [sys.executable, "-c", fetch]
        subprocess.run(command, check=True, cwd=REPOSITORY, stdout=subprocess.DEVNULL, env=variables)
    return sorted(folder.glob("*.jar"))


def _pyspark_folder() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise RuntimeError("pyspark is not installed: run `make venv`")
    return Path(found.origin).parent


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
