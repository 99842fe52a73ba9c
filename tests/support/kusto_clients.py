"""Kusto's clients of other languages, and small programs that speak by them.

Contract: the packages are fetched once into the project's cache (`LAZYDELTA_CACHE`), of one version each.
`ask_node` and `ask_java` run a program with questions, each `[kind, text, options]`, and give the answers: a
list of rows, or `{"error": text}`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.support.jars import fetch_jars
from tests.support.java_program import java_command
from tests.support.node import installed, node
from tests.support.spark import cache_folder

NODE_VERSION, JAVA_VERSION = "7.0.4", "7.0.6"
JAVA_SHA256 = "8b578812deb5cd46a2ea22d5caaeb639f5b43474a0b630086087cbab15f5dc10"
_PROGRAMS = Path(__file__).parents[1] / "integration" / "serve"
_SECONDS_MAX = 300.0
Question = list[Any]


def ask_node(url: str, questions: list[Question], *, token: str = "") -> list[Any]:
    """Answers of the client from npm."""
    with tempfile.TemporaryDirectory(dir=node_folder()) as place:  # where `node_modules` is found
        program = Path(place) / "client.mjs"
        shutil.copy(_PROGRAMS / "kusto_client.mjs", program)
        return _answers([node(), str(program), url, token], questions)


def ask_java(url: str, questions: list[Question], *, token: str = "") -> list[Any]:
    """Answers of the client from Maven."""
    flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.timezone=UTC"]
    flags += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    command = java_command(_PROGRAMS / "KustoClient.java", f"{java_jars()}/*", flags)
    return _answers([*command, url, token], questions)


def node_folder() -> Path:
    """Below it Node finds the client."""
    return installed("npm-kusto", {"private": True, "dependencies": {"azure-kusto-data": NODE_VERSION}})


def java_jars() -> Path:
    """The folder of them, fetched where they are not there yet."""
    folder = cache_folder() / f"kusto-data-{JAVA_VERSION}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".kusto-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as place:
                fetched = Path(place)
                fetch_jars("com.microsoft.azure.kusto", "kusto-data", JAVA_VERSION, fetched, JAVA_SHA256)
                shutil.rmtree(fetched / "ivy")
                shutil.copytree(fetched, folder)
    return folder


def _answers(command: list[str], questions: list[Question]) -> list[Any]:
    asked = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(
        command,
        input=asked,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS_MAX,
        env={**os.environ, "NO_PROXY": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
