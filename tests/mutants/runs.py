"""Runs chosen tests against a copy of the package, in a process of their own, within time and memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec
import psutil

from tests.mutants.drawing import Mutant

PLUGIN = Path(__file__).with_name("pytest_order.py")
_MEMORY_BYTES = 5 << 30  # a fault may collect without end
_LOOKS_SECONDS = 0.1


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the plugin reads: tests to run (None for all), and where coverage goes."""

    tests: list[str] | None = None
    coverage: str | None = None
    include: list[str] = []


class Found(msgspec.Struct, frozen=True):
    """What the plugin writes."""

    passed: list[str] = []
    failed: dict[str, str] = {}
    seconds: dict[str, float] = {}
    fixtures: dict[str, list[str]] = {}


class End(StrEnum):
    """How a run ended."""

    PASSED = "passed"
    FAILED = "failed"  # tests failed
    BROKEN = "broken"  # pytest itself could not go on: the package does not import, or the process crashed
    TIMEOUT = "timeout"
    MEMORY = "memory"


class Run(msgspec.Struct, frozen=True):
    """One run of pytest."""

    end: End
    found: Found
    output: str


class StoppedError(Exception):
    """Ctrl-C was pressed."""


class Workspace:
    """A copy of the package for one worker, which may hold one mutant at a time."""

    def __init__(self, folder: Path, source: Path, tests: Path, stop: threading.Event) -> None:
        self.source, self.tests = source, tests
        self.copy = folder / "copy"
        self._folder = folder
        self._stop = stop
        self._holds: str | None = None
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source / "lazydelta", self.copy / "lazydelta", ignore=ignored)
        (folder / "plugin").mkdir()
        shutil.copy(PLUGIN, folder / "plugin")

    def put(self, mutant: Mutant | None) -> None:
        """Make the copy hold this mutant alone, or none."""
        if self._holds is not None:
            self._write(self._holds, (self.source / self._holds).read_bytes())
        self._holds = None
        if mutant is not None:
            self._holds = mutant.file
            self._write(mutant.file, mutant.applied((self.source / mutant.file).read_bytes()))

    def run(self, order: Order, files: list[str], *, seconds: float, fail_fast: bool = True) -> Run:
        """Run pytest on files of the tests; `seconds` is the limit."""
        place, log = self._folder / "order.json", self._folder / "output.txt"
        place.write_bytes(msgspec.json.encode(order))
        found = place.with_suffix(".found")
        found.unlink(missing_ok=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            PLUGIN.stem,
            "-p",
            "no:cacheprovider",
            "--tb=short",
        ]
        command += ["--rootdir", str(self.tests), "--basetemp", str(self._folder / "tmp")]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, *(["-x"] if fail_fast else []), *files],
                cwd=self.tests,
                env=self._environment(place),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            killed = self._watched(process, seconds)
        text = log.read_text("utf-8", errors="replace")[-20_000:]
        report = msgspec.json.decode(found.read_bytes(), type=Found) if found.exists() else Found()
        if killed is not None:
            return Run(killed, report, text)
        ends = {0: End.PASSED, 1: End.FAILED, 5: End.PASSED}  # 5: none of these tests is there
        end = ends.get(process.returncode, End.BROKEN)
        return Run(End.BROKEN if end is End.FAILED and not report.failed else end, report, text)

    def _write(self, file: str, body: bytes) -> None:
        target = self.copy / file
        target.write_bytes(body)
        # Two versions of one length within a second have the same compiled file.
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
            compiled.unlink()

    def _environment(self, place: Path) -> dict[str, str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE") and not name.startswith("COV_")
        }
        path = [str(self.copy), str(self.tests), str(self._folder / "plugin")]
        path += filter(None, [os.environ.get("PYTHONPATH")])
        environment.update(
            PYTHONPATH=os.pathsep.join(path), PYTHONHASHSEED="0", LAZYDELTA_MUTANTS_ORDER=str(place)
        )
        return environment

    def _watched(self, process: subprocess.Popen[bytes], seconds: float) -> End | None:
        """Wait for the end; stop the process, and all that it started, where it goes beyond a limit."""
        give_up = time.monotonic() + seconds
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOKS_SECONDS)
                    return None
                if self._stop.is_set():
                    raise StoppedError
                if time.monotonic() > give_up:
                    return End.TIMEOUT
                with suppress(psutil.Error):
                    if psutil.Process(process.pid).memory_info().rss > _MEMORY_BYTES:
                        return End.MEMORY
        finally:
            _end_all(process)


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """End the process with its descendants, and what an ended one left behind in its group."""
    with suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
