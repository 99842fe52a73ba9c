"""Tests that do not run here are counted at the end of a run, and only for reasons that are listed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = """
import pytest
from tests.support.skips import skip

@pytest.mark.parametrize("number", range(3))
def test_client(number):
    skip("mono is missing")

def test_that_runs():
    pass
"""
OTHERS = """
import pytest

@pytest.mark.skip(reason="it hurts")
def test_that_hurts():
    pass

@pytest.mark.xfail(reason="not yet")
def test_not_yet():
    raise AssertionError
"""
MODULE = """
import pytest
pytest.importorskip("no_such_package")
"""


def ran(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.skips", "-p", "no:cacheprovider", *flags]
    return subprocess.run(
        [*command, f"--rootdir={folder}", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("flags", [(), ("--numprocesses", "2")], ids=["alone", "workers"])
def test_a_listed_reason_is_counted_and_does_not_fail_the_run(tmp_path: Path, flags: tuple[str, ...]) -> None:
    (tmp_path / "test_listed.py").write_text(LISTED)
    done = ran(tmp_path, *flags)
    assert done.returncode == 0, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith(("not run here", "ERROR"))]
    assert told == ["not run here: mono is missing (3 tests): test_listed.py"]


def test_other_reasons_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_others.py").write_text(OTHERS)
    (tmp_path / "test_module.py").write_text(MODULE)
    done = ran(tmp_path)
    assert done.returncode == 1, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("ERROR: skipped")]
    assert [line.partition("does not list: ")[2] for line in told] == [
        "could not import 'no_such_package': No module named 'no_such_package' (1 tests): test_module.py",
        "it hurts (1 tests): test_others.py",
    ]
