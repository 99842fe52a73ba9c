"""Rows on stdout as they come: tab-separated on a pipe, aligned on a terminal, or JSON lines.

Contract: whatever is handed over is written and flushed before the next rows are asked for, so that a
reader of the pipe sees the first file at once and a closed pipe ends the command at the next write. Data is
UTF-8 whatever the locale. On a terminal nothing is cut: the widths come from the first rows, a longer value
moves the rest of its line to the right, and the last column is free. rich only formats: written by its
console, a closed pipe would be exit code 1 and a full disk a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lazydelta.errors import LazyDeltaError

if TYPE_CHECKING:
    from rich.console import Console

_ENCODER = msgspec.json.Encoder()


def is_terminal() -> bool:
    """Whether a person is looking at stdout."""
    return sys.stdout.isatty()


def prepare_streams() -> None:
    """Make sure that stdout can be written, and that no character can break stderr."""
    if sys.stderr is None:  # closed before the start: print would fall back to stdout
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - open until the end
    if sys.stdout is None:
        raise unwritable("it was closed before the start")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # text streams here


def write_lines(lines: Iterable[str]) -> None:
    """Text lines, at once."""
    _write("".join(f"{line}\n" for line in lines).encode())


def write_json_lines(objects: Iterable[object]) -> None:
    """One JSON object per line, at once."""
    _write(_ENCODER.encode_lines(objects))


def write_bytes(data: bytes) -> None:
    """Whatever it is, at once."""
    _write(data)


def terminal() -> Console:
    """How stdout looks to people; text is taken as it is, long lines are left to the terminal."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextmanager
def written_at_once(console: Console) -> Iterator[None]:
    """Write what the body prints, in the encoding of the terminal."""
    with console.capture() as capture:
        yield
    _write(capture.get().encode(sys.stdout.encoding, "backslashreplace"))


def stop_writing() -> None:
    """What is still buffered for stdout goes to the null device when the interpreter flushes."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def unwritable(why: str | None) -> LazyDeltaError:
    """The error of a stdout that takes nothing."""
    return LazyDeltaError(f"the output cannot be written: {why}", "stdout", "make room, or write elsewhere")


class AlignedRows:
    """A table on a terminal that needs no end: the header first, then rows as they come."""

    def __init__(
        self,
        headers: Sequence[str],
        *,
        right: Set[str] = frozenset(),
        widths_min: Mapping[str, int] | None = None,
    ) -> None:
        self._console = terminal()
        self._widths_min = widths_min or {}
        self._headers = headers
        self._is_right = [name in right for name in headers]
        self._widths: list[int] | None = None

    def write(self, rows: Sequence[Sequence[str]]) -> None:
        """Print these rows, below the header if they are the first."""
        if not rows:
            return
        if self._widths is None:
            self.write_header(rows)
        with written_at_once(self._console):
            self._console.print("\n".join(map(self._line, rows)))

    def write_header(self, rows: Sequence[Sequence[str]] = ()) -> None:
        """Print the names of the columns, as wide as these rows need them; none: a table without rows."""
        columns = zip(self._headers, *rows, strict=True)
        self._widths = [max(self._widths_min.get(column[0], 0), *map(len, column)) for column in columns]
        with written_at_once(self._console):
            self._console.print(self._line(self._headers), style="bold")

    def _line(self, cells: Sequence[str]) -> str:
        assert self._widths is not None
        padded = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(cells, self._widths, self._is_right, strict=True)
        ]
        return "  ".join(padded).rstrip()


def _write(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        stop_writing()
        raise unwritable(problem.strerror) from problem
