"""Progress of long work on stderr: a bar on a terminal, else one line per event, of frequent ones one a
second.

Contract: talk, never data; a stderr that cannot be written ends the talk, not the work. Used as a context, so
that nothing of a bar is left on the terminal when results or an error are written.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from lazydelta.cli.progress_bar import ProgressBar, is_drawable
from lazydelta.cli.text import human_bytes, one_line

_EVERY_SECONDS = 1.0
_FREQUENT = frozenset(
    {"reading", "part_written", "reading_sidecar", "reading_log", "comparing", "scanning", "writing_rows"}
    | {"making_files"}
)


class ProgressLines:
    """A listener that prints; `is_shown` off keeps it quiet, `only_bar` shows nothing but a bar."""

    def __init__(self, *, is_shown: bool = True, only_bar: bool = False) -> None:
        self._bar = ProgressBar(sys.stderr) if is_shown and is_drawable(sys.stderr) else None
        self._is_shown = is_shown and (self._bar is not None or not only_bar)
        self._last = 0.0

    def __call__(self, event: str, /, **facts: object) -> None:
        """Print the event, unless another of its kind has just been."""
        if not self._is_shown:
            return
        try:
            if self._bar is None or not self._bar.draw(event, facts):
                self._print(event, facts)
        except OSError:
            self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None and self._is_shown:
            try:
                self._bar.clear()
            except OSError:
                self._is_shown = False

    def _print(self, event: str, facts: dict[str, object]) -> None:
        now = time.monotonic()
        if event in _FREQUENT and now - self._last < _EVERY_SECONDS:
            return
        self._last = now
        if self._bar is not None:
            self._bar.clear()
        print(one_line(f"{event.replace('_', ' ')}: {_text(facts)}"), file=sys.stderr, flush=True)


def _text(facts: dict[str, object]) -> str:
    known = {name: value for name, value in facts.items() if value is not None}
    return ", ".join(f"{name.replace('_', ' ')} {_value(name, value)}" for name, value in known.items())


def _value(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}"
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    return human_bytes(value) if "bytes" in name else f"{value:,}"
