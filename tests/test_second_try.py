"""What `make test` does with tests that failed: a few are tried again alone, and only chance is forgiven."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ONCE = """
from pathlib import Path
def test_once():
    seen = Path("seen").exists()
    Path("seen").touch()
    assert seen
"""
NEVER = "def test_never{}(): assert False\n"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )


def full_run(folder: Path, tests: dict[str, str]) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group\n")
    for name, text in tests.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    first = run(folder, "-m", "pytest", "-q", "-n", "1", "--dist", "loadgroup", "--cache-clear")
    assert first.returncode == 1, first.stdout
    return run(folder, "-m", "tests.support.second_try")


def test_a_test_that_passes_alone_is_named_as_unsteady(tmp_path: Path) -> None:
    grouped = "import pytest\npytestmark = pytest.mark.xdist_group('spark')\n" + ONCE
    told = full_run(tmp_path, {"tests/test_a.py": grouped})
    assert told.returncode == 0, told.stdout
    assert "UNSTEADY" in told.stdout and "tests/test_a.py::test_once" in told.stdout
    assert "1 passed" in told.stdout


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    told = full_run(tmp_path, {"tests/test_a.py": ONCE + NEVER.format("")})
    assert told.returncode == 1
    assert "1 failed, 1 passed" in told.stdout and "UNSTEADY" not in told.stdout


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ({"tests/property/test_a.py": ONCE}, "test_once has found an input"),
        ({"tests/test_a.py": ONCE + "".join(map(NEVER.format, "abc"))}, "4 tests failed, more than 3"),
    ],
)
def test_inputs_found_by_chance_and_many_failures_get_no_second_try(
    tmp_path: Path, tests: dict[str, str], why: str
) -> None:
    told = full_run(tmp_path, tests)
    assert told.returncode == 1
    assert f"no second try: {why}" in told.stdout.replace("tests/property/test_a.py::", "")


def test_a_run_that_did_not_get_to_its_tests_gets_no_second_try(tmp_path: Path) -> None:
    told = run(tmp_path, "-m", "tests.support.second_try")
    assert told.returncode == 1
    assert "no test is known to have failed" in told.stdout
