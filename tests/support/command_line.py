"""The command `lazydelta` for tests: inside this process, or as a process of its own.

`run_inside` costs milliseconds, a process most of a second. A process is needed for signals, pipes, real
terminals, locales and what Python loads at its start; the rest is run inside.
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from lazydelta.cli.app import run as run_arguments
from lazydelta.telemetry import LOGGER

COMMAND = (sys.executable, "-m", "lazydelta.cli")
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    exit_code: int
    data: bytes  # of stdout
    err: str

    @property
    def out(self) -> str:
        return self.data.decode()

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Ended]


def environment(**more: str) -> dict[str, str]:
    """The caller's environment without what would change an answer; warnings are errors here, too.

    Python's own buffering stays on: a test of flushing means nothing without it.
    """
    removed = ("DELTA_", "LAZYDELTA_", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(removed)}
    return {**kept, "PYTHONWARNINGS": "error", **more}


def run_process(*arguments: str | Path, stdin: bytes = b"", **variables: str) -> Ended:
    """Run `lazydelta ARGUMENTS…` as a process with its output on pipes."""
    command = [*COMMAND, *map(str, arguments)]
    return ended_process(command, stdin=stdin, **variables)


def run_in_shell(script: str, *arguments: str | Path, **variables: str) -> Ended:
    """Run a script of bash whose `"$@"` is the command."""
    return ended_process(["bash", "-c", script, "bash", *COMMAND, *map(str, arguments)], **variables)


def ended_process(command: list[str], *, stdin: bytes = b"", **variables: str) -> Ended:
    """Run a program to its end."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, env=environment(**variables), timeout=120, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode())


def run_inside(*arguments: str | Path, stdin: bytes = b"", terminal: str = "", **variables: str) -> Ended:
    """Run `lazydelta ARGUMENTS…` in this process; `terminal` is what goes to one: `out`, `err` or `out err`.

    The cache of the process is off: other tests damage files behind its back.
    """
    out = _Bytes()
    err = out if terminal == "out err" else _Bytes()
    size = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm" if terminal else "dumb"}
    streams = {
        "stdin": _stream(_Bytes(stdin)),
        "stdout": _stream(out, is_terminal="out" in terminal.split()),
        "stderr": _stream(err, is_terminal="err" in terminal.split()),
    }
    variables = {"DELTA_CACHE_BYTES": "0", **size, **variables}
    with (
        mock.patch.multiple(sys, **streams),
        mock.patch.dict(os.environ, environment(**variables), clear=True),
        _kept_for_others(),
    ):
        try:
            run_arguments([os.fspath(argument) for argument in arguments])
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Ended(code, out.getvalue(), err.getvalue().decode())


def on_terminal(*arguments: str | Path, exit_code: int = 0, **variables: str) -> list[str]:
    """The lines that a person sees, without styles."""
    ended = run_inside(*arguments, terminal="out err", **variables)
    assert ended.exit_code == exit_code, ended
    return STYLE.sub("", ended.out).splitlines()


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def _stream(data: _Bytes, *, is_terminal: bool = False) -> io.TextIOWrapper:
    kind = _Terminal if is_terminal else io.TextIOWrapper
    return kind(data, encoding="utf-8", write_through=True)


class _Bytes(io.BytesIO):
    def close(self) -> None:
        """Stay readable: the text stream around it closes it."""


@contextmanager
def _kept_for_others() -> Iterator[None]:
    """A command takes the signals, and with --debug the log: both are given back."""
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers, level = list(LOGGER.handlers), LOGGER.level
    try:
        yield
    finally:
        LOGGER.handlers[:] = handlers
        LOGGER.setLevel(level)
        for number, handler in signals.items():
            signal.signal(number, handler)
