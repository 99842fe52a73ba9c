"""How a command ends: errors as text on stderr, exit codes, a closed pipe, Ctrl-C, debug logs.

Contract: an error of `lazydelta.errors` becomes what, where, fix and its exit code; a bug keeps its
traceback. A reader that closes the pipe has what it wanted: the command stops quietly with 0. Ctrl-C is 130,
SIGTERM 143. Exit codes: docs/exit-codes.md.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import typer

from lazydelta.cli.prompt_exit import (
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    Terminated,
    leave_on_interrupt,
    leave_soon,
)
from lazydelta.cli.streams import stop_writing, told, unwritable
from lazydelta.cli.text import one_line
from lazydelta.errors import LazyDeltaError
from lazydelta.redaction import redacted
from lazydelta.telemetry import LOGGER

EXIT_CLOSED_PIPE = 0
_LOCATION = re.compile(r'storage_options=\{"([^"]+)": \{…\}\}')
_OPTIONS = re.compile(r"\b(?:the storage option|storage_options)\b")
_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]  # of click, or of what typer took over from it


@contextmanager
def outcome() -> Iterator[None]:
    """Turn how the body ends into an exit code."""
    try:
        yield
        sys.stdout.flush()
    except LazyDeltaError as error:
        print(error_text(error), file=sys.stderr)
        raise typer.Exit(error.exit_code) from None
    except _USAGE_ERROR as wrong:
        wrong.message = _usage_text(wrong.message)
        raise
    except BrokenPipeError:
        stop_writing()
        leave_soon(EXIT_CLOSED_PIPE)
        raise typer.Exit(EXIT_CLOSED_PIPE) from None
    except KeyboardInterrupt as stop:
        raise typer.Exit(EXIT_TERMINATED if isinstance(stop, Terminated) else EXIT_INTERRUPTED) from None
    except OSError as problem:
        if not _is_of_stdout(problem):
            raise
        stop_writing()
        full = unwritable(problem.strerror)
        print(error_text(full), file=sys.stderr)
        raise typer.Exit(full.exit_code) from None
    finally:
        leave_on_interrupt()


@contextmanager
def told_at_the_end(tell: Callable[[], object], *, is_wanted: bool) -> Iterator[None]:
    """Say on stderr what the body did once it is over: to its end, or because the reader had enough."""
    try:
        yield
    except BrokenPipeError:
        if is_wanted:
            print(told(str(tell()), sys.stderr), file=sys.stderr)
        raise
    if is_wanted:
        print(told(str(tell()), sys.stderr), file=sys.stderr)


def error_text(error: LazyDeltaError) -> str:
    """What, where, fix: one line each, whatever a log put into a name."""
    return "\n".join(
        (
            f"error: {one_line(error.what)}",
            f"  where: {one_line(_in_its_words(error.where))}",
            f"  fix:   {one_line(_in_its_words(error.fix))}",
        )
    )


def _in_its_words(text: str) -> str:
    """The text in the words of the command line, where the library's speak of Python's arguments."""
    flat = _LOCATION.sub(r"--storage-option '\1#NAME=VALUE'", text)
    return _OPTIONS.sub("--storage-option", flat)


def _usage_text(message: str) -> str:
    """What click says of the arguments; those that it did not expect may be options of a store."""
    what, mark, _ = message.partition("extra argument")
    return f"{what}{mark}s; see --help" if mark else redacted(message)


def _is_of_stdout(problem: OSError) -> bool:
    """Whether help was being written, which click does by itself, or what is left of it."""
    (*_, (frame, _line)) = traceback.walk_tb(problem.__traceback__)
    return frame.f_code.co_name in ("echo", outcome.__name__)


def log_to_stderr(*, is_wanted: bool) -> None:
    """Show lazydelta's debug events on stderr."""
    if not is_wanted:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)


class _JsonLines(logging.Formatter):
    """One JSON object per record: the time, the event, its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        when = dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds")
        event = getattr(record, "event", None) or record.getMessage()
        line = {"time": when, "event": event, **getattr(record, "fields", {})}
        return msgspec.json.encode(line, enc_hook=str).decode()
