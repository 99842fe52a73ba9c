"""Numbers that still grow for a while, because something is under way: what they come to rest at."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_MAX = 60.0
STILL_SECONDS = 0.3


def settled(count: Callable[[], int]) -> int:
    """The number, once it has not changed for a moment; one that goes on growing is an error."""
    give_up = time.monotonic() + SECONDS_MAX
    while True:
        before = count()
        time.sleep(STILL_SECONDS)
        if count() == before:
            return before
        assert time.monotonic() < give_up, f"it goes on and on: {before}"
