"""Java programs, compiled once and kept in the project's cache.

Contract: any Java runtime of 17 or newer suffices: the compiler is Eclipse's, one jar, fetched once, of one
version and checked by its digest. `java_command` is the command that runs a program; `class_path` is as Java
takes it, with `folder/*` for the jars of a folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.jars import fetch_jars
from tests.support.spark import cache_folder

ECJ_VERSION = "3.40.0"
ECJ_SHA256 = "05cc22a24e7982970f63a405fc6c820bc80b806f27f3c5a6236fc475f8f7152b"
_SECONDS_MAX = 300.0


def java_command(source: Path, class_path: str, flags: Sequence[str] = ()) -> list[str]:
    """What runs the program; its class is named as its file is."""
    digest = hashlib.sha256(f"{ECJ_VERSION} {class_path} {source.name}\n".encode() + source.read_bytes())
    folder = cache_folder() / "java-programs"
    classes = folder / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not classes.exists():
            with tempfile.TemporaryDirectory(dir=folder) as place:
                made = Path(place) / "classes"
                _compile(source, class_path, made)
                made.rename(classes)
    return ["java", *flags, "--class-path", f"{classes}{os.pathsep}{class_path}", source.stem]


def _compile(source: Path, class_path: str, classes: Path) -> None:
    jars: list[str] = []
    for part in class_path.split(os.pathsep):  # the launcher of Java knows `*`, the compiler does not
        jars += map(str, sorted(Path(part[:-1]).glob("*.jar"))) if part.endswith("/*") else [part]
    command = ["java", "-jar", str(_compiler()), "-17", "-proc:none", "-nowarn", "-encoding", "UTF-8"]
    command += ["-classpath", os.pathsep.join(jars), "-d", str(classes), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS_MAX)
    if done.returncode:
        raise RuntimeError(f"{source.name} was not compiled:\n{done.stdout}\n{done.stderr}")


def _compiler() -> Path:
    jar = cache_folder() / "java-programs" / f"ecj-{ECJ_VERSION}.jar"
    if not jar.exists():
        with tempfile.TemporaryDirectory(dir=jar.parent) as place:
            fetch_jars("org.eclipse.jdt", "ecj", ECJ_VERSION, Path(place), ECJ_SHA256)
            shutil.move(Path(place) / jar.name, jar)
    return jar
