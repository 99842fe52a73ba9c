"""What a process of a run tells: one JSON line for everything that began or ended, in a file of its own."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Events:
    """A process's own account; safe for several threads."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def tell(self, **event: Any) -> None:
        """Append one line; it is on its way before this returns."""
        line = json.dumps({"at": time.time(), "pid": os.getpid(), **event})
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The lines that are whole."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)
