"""What a `lazydelta` command shows on a terminal.

Why a terminal: on a pipe the command prints for programs. Contract: standard output and error come as one
text.
"""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

_TIMEOUT_S = 120


def show_command(command: str, place: Path, *, columns: int = 120) -> tuple[int, str]:
    """Run `lazydelta …` in a folder; returns the exit code and what it shows."""
    words = shlex.split(command)
    assert words[0] == "lazydelta", command
    there = os.environ | {"TERM": "dumb", "COLUMNS": str(columns)}
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "lazydelta.cli", *words[1:]],
            cwd=place, env=there, stdout=slave, stderr=slave,
        )  # fmt: skip
        os.close(slave)
        shown = b"".join(iter(lambda: _read(master), b""))
        process.wait(timeout=_TIMEOUT_S)
    finally:
        os.close(master)
    return process.returncode, shown.decode(errors="replace").replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # Linux says so when the other end of a terminal is closed
        return b""
