"""Handles of this process to files of a test's own; others, of idle connections say, come and go."""

from __future__ import annotations

from pathlib import Path

_OWN = Path("/proc/self/fd")


def handles_of(*places: Path | str) -> list[str]:
    """What lies at or below these and is open, also without a name; sorted."""
    found = []
    for handle in _OWN.iterdir():
        try:
            found.append(str(handle.readlink()))
        except FileNotFoundError:  # the one that lists, or of another thread
            continue
    wanted = tuple(map(str, places))
    return sorted(path for path in found if path.startswith(wanted))
