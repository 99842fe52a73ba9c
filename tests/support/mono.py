"""Mono, which compiles and runs the C# client: the machine's own, or apt's packages in the project's cache.

Contract: `mono()` is ready to run. Nothing is installed on the machine, and no rights are needed: packages
are fetched by apt (which checks signatures), pinned to one upstream version, and unpacked below the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.support.apt import has_apt, unpacked
from tests.support.capi_library import cache_folder
from tests.support.skips import skip

MONO_VERSION = "6.8.0.105"
PACKAGES = ("mono-runtime", "mono-mcs", "libmono-system-net-http4.0-cil")
LANGUAGE_VERSION = "7.2"


class Mono:
    """A runtime and its compiler."""

    def __init__(self, command: list[str], compiler: Path, environment: dict[str, str]) -> None:
        self.command = command
        self._compiler = compiler
        self.environment = environment

    def compiled(self, sources: Sequence[Path], target: Path, *flags: str) -> Path:
        """A program or library of these sources; warnings are errors."""
        command = [*self.command, str(self._compiler), f"-langversion:{LANGUAGE_VERSION}", "-warn:4"]
        command += ["-warnaserror", "-debug", f"-out:{target}", *flags, *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return target


@cache
def mono() -> Mono:
    """The machine's, if it has one with a compiler; otherwise the one in the cache, made if need be."""
    command, compiler = shutil.which("mono"), Path("/usr/lib/mono/4.5/mcs.exe")
    if command and compiler.exists():
        return Mono([command], compiler, dict(os.environ))
    if not has_apt():
        skip("mono is missing")
    versions = dict.fromkeys(PACKAGES, f"{MONO_VERSION}+")
    root = unpacked(cache_folder() / "mono", PACKAGES, done=MONO_VERSION, versions=versions)
    environment = {**os.environ, "MONO_CFG_DIR": str(root / "etc")}
    return Mono([str(root / "usr/bin/mono-sgen")], root / "usr/lib/mono/4.5/mcs.exe", environment)
