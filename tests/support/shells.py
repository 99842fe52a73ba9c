"""zsh and fish for tests of completion: the machine's own, or apt's packages in the project's cache."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from tests.support.apt import has_apt, unpacked
from tests.support.capi_library import cache_folder
from tests.support.skips import skip

SHELLS = ("zsh", "fish")


@cache
def shell_root() -> Path:
    """Below what the shells are."""
    if all(Path("/usr/bin", name).exists() for name in SHELLS):
        return Path("/")
    if not has_apt():
        skip("zsh and fish are missing")
    return unpacked(cache_folder() / "shells", SHELLS, done="zsh-fish", versions={})


def shell(name: str) -> str:
    """The shell's command."""
    places = [shell_root() / folder / name for folder in ("bin", "usr/bin")]  # links may lead nowhere
    return str(next(place for place in places if place.exists()))


def shell_environment() -> dict[str, str]:
    """What the shells need that are not where they were built for."""
    root = shell_root()
    if root == Path("/"):
        return {}
    libraries = ":".join(map(str, sorted((root / "usr/lib").glob("*-linux-gnu"))))
    functions = sorted({str(path.parent) for path in (root / "usr/share/zsh/functions").rglob("*")})
    known = os.environ.get("LD_LIBRARY_PATH")
    return {
        "LD_LIBRARY_PATH": f"{libraries}:{known}" if known else libraries,
        "FPATH": ":".join(functions),
    }


def zsh_modules() -> str:
    """A line for zsh that says where its modules are."""
    found = sorted((shell_root() / "usr/lib").glob("*-linux-gnu/zsh/*"))
    return "" if shell_root() == Path("/") else f"module_path=({found[-1]})"
