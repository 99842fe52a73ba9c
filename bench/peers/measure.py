"""Time, CPU and memory of one reader in its own process, told as one line of JSON.

Contract: standard library only, so that it runs in every reader's environment. The clock starts after the
imports; memory is the peak over what the process held at that moment; CPU counts all threads.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

MARKS = {1: "first_s", 100: "hundred_s", 1_000: "thousand_s"}
# The predicate every reader is asked. Not `>`: a file may hold NaN, which is greater than its maximum.
LOW_VALUE = 100.05
LOW_PREDICATE = f"value < {LOW_VALUE}"
# The last hour of the ladder's tables.
HOUR_PREDICATE = "_event_hour >= '2026020923'"


class Measurement:
    """One run; `start` it after the imports, `saw` files as they come, `finish` prints."""

    def __init__(self, reader: str, query: str) -> None:
        self._facts: dict[str, Any] = {"reader": reader, "query": query, **dict.fromkeys(MARKS.values())}

    def start(self) -> None:
        """Begin: forget the peak so far."""
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        self._base_kb = status_kb("VmRSS")
        self._cpu = time.process_time()
        self._clock = time.perf_counter()

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._clock

    def saw(self, files: int) -> None:
        """So many files are in hand by now."""
        for count, mark in MARKS.items():
            if files >= count and self._facts[mark] is None:
                self._facts[mark] = self.elapsed()

    def finish(self, *, files: int | None, complete: bool = True, **more: Any) -> None:
        """End: `files` is what the reader counted, None where its interface cannot tell."""
        self._facts["all_s"] = self.elapsed() if complete else None
        self._facts["cpu_s"] = time.process_time() - self._cpu
        self._facts["peak_mb"] = (status_kb("VmHWM") - self._base_kb) / 1024
        print(json.dumps(self._facts | {"files": files} | more), flush=True)


def arguments() -> tuple[str, str]:
    """Table folder and query."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} TABLE hundred|all|predicate|hour")
    return sys.argv[1], sys.argv[2]


def cannot(reader: str, query: str, why: str) -> None:
    """Say that this reader has no way to answer."""
    print(json.dumps({"reader": reader, "query": query, "cannot": why}), flush=True)


def status_kb(field: str) -> int:
    """A figure of this process by its name in `/proc`, as `VmRSS`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {field}")
