"""How much more memory was resident at most during a block than before it, in this process.

Contract: the high-water mark of the system is set back first, so that what other tests took hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def peak_growth() -> Iterator[Callable[[], int]]:
    """The block is given a function: bytes of growth so far."""
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    before = _status_bytes("VmRSS")
    yield lambda: _status_bytes("VmHWM") - before


def _status_bytes(name: str) -> int:
    told = Path("/proc/self/status").read_text("ascii").partition(f"{name}:")[2]
    return 1024 * int(told.split(None, 1)[0])
