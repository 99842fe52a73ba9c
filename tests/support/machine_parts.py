"""Parts of a machine that tests need and that may be missing: Java and a C compiler, as wheels in the cache.

Contract: where this machine has its own, that is used. Java is prepared before the first test, if any of the
tests selected starts it; a compiler when `prepare_compiler` is called. What is fetched is said in one line.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from functools import cache
from pathlib import Path

import pytest
from requirements import machine

from tests.support.skips import skip
from tests.support.workers import starts_java

_CONFIGS: list[pytest.Config] = []


def pytest_configure(config: pytest.Config) -> None:
    _CONFIGS.append(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    if not session.config.option.collectonly and any(map(starts_java, session.items)):
        machine.prepare_java(os.environ, say)


@cache
def prepare_compiler() -> None:
    """Put a C compiler on the PATH, as `cc`, where this machine has none."""
    own = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(own) or shutil.which("cc"):
        return
    try:
        folder = machine.fetched_wheel("zig", machine.cache_folder(os.environ), say, _put_compiler)
    except SystemExit as problem:
        say(str(problem))
        skip("a C compiler is missing")
    os.environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"


def has_sanitizers() -> bool:
    """Whether the C compiler brings the sanitizers' libraries; that of the wheel does not."""
    found = shutil.which("cc")
    return found is None or not (Path(found).parents[1] / "ziglang").exists()


def say(line: str) -> None:
    """A line on the terminal, also while pytest captures what tests write."""
    manager = _CONFIGS[0].pluginmanager.getplugin("capturemanager") if _CONFIGS else None
    if manager is None:
        machine.say(line)
        return
    with manager.global_and_fixture_disabled():
        sys.stderr.write("\n")
        machine.say(line)


def _put_compiler(folder: Path) -> None:
    """`bin/cc`, which keeps what it compiles once for all programs beside itself."""
    program = folder / "bin" / "cc"
    program.parent.mkdir(exist_ok=True)
    program.write_text(
        '#!/bin/sh\nhere="${0%/*}/.."\n'
        'ZIG_GLOBAL_CACHE_DIR="$here/compiled" ZIG_LOCAL_CACHE_DIR="$here/compiled" '
        'exec "$here/ziglang/zig" cc "$@"\n'
    )
    program.chmod(0o755)
