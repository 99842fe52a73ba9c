"""Rows on stdout as they come: tab-separated on a pipe, aligned on a terminal, or JSON lines.

Contract: whatever is handed over is written and flushed before the next rows are asked for, so that a
reader of the pipe sees the first file at once and a closed pipe ends the command at the next write. Data is
UTF-8 whatever the locale. On a pipe nothing is cut. On a terminal a table fits its width: widths come from
the first rows, what is too long is cut with …, and columns for which there is no room are counted in the
header. rich only formats: written by its console, a closed pipe would be exit code 1 and a full disk a
traceback.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from lazydelta.cli.text import cells, cut, folded
from lazydelta.errors import LazyDeltaError

if TYPE_CHECKING:
    from rich.console import Console

_ENCODER = msgspec.json.Encoder()
_GAP = 2  # between columns of a table
_CUT_TO_MIN, _NEEDED_MIN = 8, 20  # columns of a terminal that a cell keeps, and one that is needed
_CUT_IN_MIDDLE = frozenset({"path", "file"})  # their ends tell them apart


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


def write_told(text: str) -> None:
    """Lines of `label  text`, as wide as the terminal where there is one."""
    write_lines([told(text, sys.stdout)])


def told(text: str, stream: TextIO) -> str:
    """Lines of `label  text` as that stream takes them: folded for a terminal."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(folded(line, width) for line in text.split("\n"))


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
        whole: Set[str] = frozenset(),
        needed: Set[str] = frozenset(),
        widths_min: Mapping[str, int] | None = None,
    ) -> None:
        """`right`: columns of numbers, at the right and never cut; `whole`: others that are never cut.

        `needed`: columns that stay where others are left out, from the last one on.
        """
        self._console = terminal()
        self._widths_min = widths_min or {}
        self._headers = headers
        self._is_right = [name in right for name in headers]
        self._is_whole = [name in right or name in whole for name in headers]
        self._is_needed = [name in needed for name in headers]
        self._widths: dict[int, int] | None = None  # of the columns that there is room for, by their place

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
        columns = list(zip(self._headers, *rows, strict=True))
        wanted = [max(self._widths_min.get(column[0], 0), *map(cells, column)) for column in columns]
        room = shutil.get_terminal_size().columns
        if rows and sum(wanted) + _GAP * (len(wanted) - 1) > room:  # names of empty columns give way first
            wanted = [
                width if any(column[1:]) else min(width, _CUT_TO_MIN)
                for width, column in zip(wanted, columns, strict=True)
            ]
        self._widths = fitted_widths(wanted, room, is_fixed=self._is_whole, is_needed=self._is_needed)
        left_out = len(wanted) - len(self._widths)
        more = f"  … {left_out} more" if left_out else ""
        with written_at_once(self._console):
            self._console.print(self._line(self._headers) + more, style="bold")
        last = max(self._widths)
        if not self._is_whole[last]:  # the note stands in the header alone: rows have its room
            self._widths[last] += max(0, room - _taken(self._widths.values()))

    def _line(self, row: Sequence[str]) -> str:
        assert self._widths is not None
        padded = []
        for at, width in self._widths.items():
            shown = cut(row[at], width, in_middle=self._headers[at] in _CUT_IN_MIDDLE)
            blank = " " * (width - cells(shown))
            padded.append(blank + shown if self._is_right[at] else shown + blank)
        return (" " * _GAP).join(padded).rstrip()


def fitted_widths(
    wanted: Sequence[int], room: int, *, is_fixed: Sequence[bool], is_needed: Sequence[bool]
) -> dict[int, int]:
    """Widths that fit, by the columns' places: the widest texts give way first, then columns go.

    They go from the last one on, those that are needed after all others; of the rest the last gets what is
    left. A column of numbers (`is_fixed`) keeps its width: half a number says something else.
    """
    floors = [_NEEDED_MIN if needed else _CUT_TO_MIN for needed in is_needed]
    least = [
        width if fixed else min(width, floor)
        for width, floor, fixed in zip(wanted, floors, is_fixed, strict=True)
    ]
    kept = list(range(len(wanted)))
    while len(kept) > 1 and _taken(least[at] for at in kept) > room - _note_cells(wanted, kept):
        kept.remove(max([at for at in kept if not is_needed[at]] or kept))
    widths = {at: wanted[at] for at in kept}
    left = room - _note_cells(wanted, kept)
    texts = [at for at in kept if not is_fixed[at]]
    for most in range(max((widths[at] for at in texts), default=0), _CUT_TO_MIN - 1, -1):
        if _taken(widths.values()) <= left:
            break
        for at in texts:
            widths[at] = min(widths[at], most if len(kept) == 1 else max(most, floors[at]))
    last = kept[-1]
    if not is_fixed[last]:
        widths[last] += max(0, left - _taken(widths.values()))
    return widths


def _taken(widths: Iterable[int]) -> int:
    """The room that columns of these widths take, with what is between them."""
    all_widths = list(widths)
    return sum(all_widths) + _GAP * (len(all_widths) - 1)


def _note_cells(wanted: Sequence[int], kept: Sequence[int]) -> int:
    """Of the note that columns were left out."""
    return 0 if len(kept) == len(wanted) else len(f"  … {len(wanted)} more")


def _write(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        stop_writing()
        raise unwritable(problem.strerror) from problem
