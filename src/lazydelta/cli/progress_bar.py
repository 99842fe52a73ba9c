"""A bar on a terminal for long work: how far it is, how fast it goes, what is left, what comes next.

Contract: one line of stderr, drawn anew a few times a second and never longer than the terminal is wide; gone
once it is cleared. Pure but for the clock and the stream that it is given.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import TextIO

from lazydelta.cli.text import cut, human_bytes, one_line

_DRAWN_EVERY_SECONDS = 0.1
_RATE_AFTER_SECONDS = 0.5
_BAR_CELLS = 10
_CLEAR = "\r\x1b[K"
# Event -> the fact that counts, the fact that says how many there are, and what comes after.
_COUNTED: dict[str, tuple[str, str | None, str]] = {
    "reading": ("rows", "total", "writing parts"),
    "writing": ("parts_done", "parts", "the manifest"),
    "reading_sidecar": ("rows", "total", "reading the log"),
    "reading_log": ("rows", None, "comparing"),
    "comparing": ("partition", "total", "the result"),
    "running": ("tasks_done", "tasks", "the commit"),
    "measuring": ("step", "steps", "the table of figures"),
    "scanning": ("files", "total", "the report"),
    "writing_rows": ("rows", None, "naming the file"),
    "making_files": ("files", "total", "the checkpoint and the sidecar"),
}
_UNITS = {"partition": "partitions", "tasks_done": "tasks", "step": "steps", "parts_done": "parts"}


class ProgressBar:
    """One line that is drawn over and over."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._event = ""
        self._since = 0.0  # of this event
        self._first = 0  # its count then
        self._drawn = 0.0
        self._is_there = False
        self._parts_done = 0  # of a sidecar: its writer tells of each, not of how many there were
        self._parts: object = None

    def draw(self, event: str, facts: dict[str, object]) -> bool:
        """Show how far it is; False where the event is not of work that is counted."""
        if event == "writing":
            self._parts, self._parts_done = facts.get("parts"), 0
        elif event == "part_written":
            self._parts_done += 1
            event = "writing"
        if event == "writing":
            facts = {**facts, "parts_done": self._parts_done, "parts": self._parts}
            if self._parts is None and not self._parts_done:
                return False
        if event not in _COUNTED or _number(facts.get(_COUNTED[event][0])) is None:
            return False
        self._draw(event, facts)
        return True

    def clear(self) -> None:
        """Take the line away."""
        if self._is_there:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._is_there = False

    def _draw(self, event: str, facts: dict[str, object]) -> None:
        now = self._clock()
        count_name, total_name, _ = _COUNTED[event]
        count = _number(facts.get(count_name)) or 0
        if event != self._event:
            self._event, self._since, self._first = event, now, count
        elif now - self._drawn < _DRAWN_EVERY_SECONDS:
            return
        self._drawn = now
        total = None if total_name is None else _number(facts.get(total_name))
        line = self._line(event, count, total, facts, now - self._since)
        self._stream.write(_CLEAR + cut(line, shutil.get_terminal_size().columns - 1))
        self._stream.flush()
        self._is_there = True

    def _line(
        self, event: str, count: int, total: int | None, facts: dict[str, object], seconds: float
    ) -> str:
        count_name, _, then = _COUNTED[event]
        unit = _UNITS.get(count_name, count_name)
        what = one_line(str(facts["what"])) if "what" in facts else event.replace("_", " ")
        words = [what]
        if total:
            share = min(1.0, count / total)
            words += [_bar(share), f"{share:4.0%}", f"{count:,} of {total:,} {unit}"]
        else:
            words.append(f"{count:,} {unit}")
        rate = (count - self._first) / seconds if seconds >= _RATE_AFTER_SECONDS else 0.0
        if rate > 0 and event != "measuring":
            words.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:,.1f}/s")
            if total and total > count:
                words.append(f"{_duration((total - count) / rate)} left")
        if (size := _number(facts.get("bytes"))) is not None:
            words.append(human_bytes(size))
        if (left := facts.get("seconds_left")) is not None:
            words.append(f"{_duration(float(str(left)))} left")
        return f"{'  '.join(words)}; then {facts.get('then', then)}"


def is_drawable(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can go back to the beginning of a line."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def _bar(share: float) -> str:
    full = round(share * _BAR_CELLS)
    return "█" * full + "░" * (_BAR_CELLS - full)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
