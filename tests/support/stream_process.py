"""`lazydelta ingest --stream` as a process of its own that a test can kill, Java included.

Contract: `StreamProcess(...)` starts it in a process group of its own, with `held` by way of
`tests.support.held_stream`, which those are the first arguments of; `kill()` is SIGKILL to the whole
group. `wait_for(condition)` polls until the condition holds or the process ends. What it told on
stdout and stderr is in `output()`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.spark import environment_of_commands

ROOT = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.05  # looking costs the process that is waited for its time
START_SECONDS_MAX = 240.0  # a busy machine takes more than one minute
_FAST = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}


class StreamProcess:
    """One run of the command."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        log: Path,
        spark: Mapping[str, str] | None = None,
        held: Sequence[str] | None = None,
    ) -> None:
        settings = _FAST | dict(spark or {})
        flags = [flag for key, value in settings.items() for flag in ("--spark-conf", f"{key}={value}")]
        program = ["lazydelta.cli"] if held is None else ["tests.support.held_stream", *held]
        self.log = log
        self._file = log.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", *program, "ingest", *arguments, *flags],
            cwd=ROOT,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment_of_commands() | {"PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )

    def wait_for(self, condition: Callable[[], bool], *, seconds_max: float = START_SECONDS_MAX) -> bool:
        """Whether the condition came to hold while the process ran."""
        deadline = time.monotonic() + seconds_max
        while time.monotonic() < deadline:
            if condition():
                return True
            if self._process.poll() is not None:
                return condition()
            time.sleep(POLL_SECONDS)
        return False

    def kill(self) -> None:
        """End the command and its Java at once, wherever they are."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._file.close()

    def ask_to_stop(self, number: signal.Signals, *, whole_group: bool) -> None:
        """Send a signal to the command alone, or as terminals and supervisors do, to its Java as well."""
        if whole_group:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def wait(self, *, seconds_max: float = START_SECONDS_MAX) -> int:
        """The exit code."""
        try:
            return self._process.wait(seconds_max)
        finally:
            self._file.close()

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def output(self) -> str:
        """What was said so far."""
        return self.log.read_text("utf-8", "replace")
