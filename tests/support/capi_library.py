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
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

from lazydelta.capi.build import LIBRARY, SANITIZERS, SOURCES, build, compiler, lacking_of_python
from tests.support.apt import has_apt, unpacked
from tests.support.machine_parts import has_sanitizers, prepare_compiler
from tests.support.skips import skip

HERE = Path(__file__).resolve()
PROGRAMS = HERE.parents[1] / "integration" / "capi"
Run = Callable[..., "subprocess.CompletedProcess[str]"]  # a program with its arguments
EXAMPLES = SOURCES.parent / "examples"


def cache_folder() -> Path:
    """Where test runs keep what they fetch and build."""
    return Path(os.environ.get("LAZYDELTA_CACHE") or HERE.parents[2] / ".cache")


def library_folder(*, sanitize: bool = False) -> Path:
    """The folder of the library; one process builds at a time."""
    prepare_compiler()
    if sanitize and not has_sanitizers():
        skip("the sanitizers are missing")
    parts = _python_parts()
    digest = hashlib.sha256(f"{sys.executable} {sys.version} {sanitize}".encode())
    for path in [*sorted(SOURCES.iterdir()), SOURCES.parent / "build.py"]:
        digest.update(path.read_bytes())
    folder = cache_folder() / "capi" / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / LIBRARY).exists():
            build(folder, sanitize=sanitize, below=parts)
    return folder


def _python_parts() -> Path | None:
    """The folder below which Python's headers and library are; None: they are at their place.

    Debian packs both separately, so that a machine may have its Python without them.
    """
    if lacking_of_python() is None:
        return None
    name = f"python{sysconfig.get_config_var('LDVERSION')}"
    if not has_apt() or sysconfig.get_path("include") != f"/usr/include/{name}":
        skip("Python's headers are missing")
    return unpacked(cache_folder() / "python", (f"lib{name}-dev",), done=name, versions={})


def compiled(
    sources: Sequence[Path], target: Path, *, sanitize: bool = False, with_library: bool = True
) -> Path:
    """A program of these sources; warnings are errors."""
    prepare_compiler()
    if sanitize and not has_sanitizers():
        skip("the sanitizers are missing")
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
