"""The C library for tests: built once for its sources and this Python, kept in the project's cache.

Contract: `library_folder` holds the library and its header; `compiled` links a program with it;
`c_environment` is what such a program needs to find lazydelta as this process does.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lazydelta.capi.build import LIBRARY, SANITIZERS, SOURCES, build, compiler

HERE = Path(__file__).resolve()
PROGRAMS = HERE.parents[1] / "integration" / "capi"
Run = Callable[..., "subprocess.CompletedProcess[str]"]  # a program with its arguments
EXAMPLES = SOURCES.parent / "examples"


def cache_folder() -> Path:
    """Where test runs keep what they fetch and build."""
    return Path(os.environ.get("LAZYDELTA_CACHE") or HERE.parents[2] / ".cache")


def library_folder(*, sanitize: bool = False) -> Path:
    """The folder of the library; one process builds at a time."""
    digest = hashlib.sha256(f"{sys.executable} {sys.version} {sanitize}".encode())
    for path in [*sorted(SOURCES.iterdir()), SOURCES.parent / "build.py"]:
        digest.update(path.read_bytes())
    folder = cache_folder() / "capi" / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / LIBRARY).exists():
            build(folder, sanitize=sanitize)
    return folder


def compiled(
    sources: Sequence[Path], target: Path, *, sanitize: bool = False, with_library: bool = True
) -> Path:
    """A program of these sources; warnings are errors."""
    flags = ["-std=gnu11", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}"]
    flags += SANITIZERS if sanitize else ()
    linked: list[str] = []
    if with_library:
        folder = library_folder(sanitize=sanitize)
        linked = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-ldelta_lazy"]
    command = [*compiler(), *flags, *map(str, sources), "-o", str(target), *linked, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def c_environment(**more: str) -> dict[str, str]:
    """The environment of a program that is linked with the library: it imports what this process does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}
