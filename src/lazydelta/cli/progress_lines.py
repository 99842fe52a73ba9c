"""Progress of long work on stderr: one line per event, of frequent events one each second.

Contract: talk, never data; a stderr that cannot be written ends the talk, not the work.
"""

from __future__ import annotations

import sys
import time

from lazydelta.cli.text import human_bytes, one_line

_EVERY_SECONDS = 1.0
_FREQUENT = frozenset({"reading", "part_written", "reading_sidecar", "reading_log", "comparing"})


class ProgressLines:
    """A listener that prints; `is_shown` off keeps it quiet."""

    def __init__(self, *, is_shown: bool = True) -> None:
        self._is_shown = is_shown
        self._last = 0.0

    def __call__(self, event: str, /, **facts: object) -> None:
        """Print the event, unless another of its kind has just been."""
        now = time.monotonic()
        if not self._is_shown or (event in _FREQUENT and now - self._last < _EVERY_SECONDS):
            return
        self._last = now
        try:
            print(one_line(f"{event.replace('_', ' ')}: {_text(facts)}"), file=sys.stderr, flush=True)
        except OSError:
            self._is_shown = False


def _text(facts: dict[str, object]) -> str:
    known = {name: value for name, value in facts.items() if value is not None}
    return ", ".join(f"{name.replace('_', ' ')} {_value(name, value)}" for name, value in known.items())


def _value(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}"
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    return human_bytes(value) if "bytes" in name else f"{value:,}"
