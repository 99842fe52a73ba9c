"""Run a command and stop it when it takes too long or too much memory.

Why: a reader that loads a whole table can exhaust the machine it is measured on. A limit set by the kernel
makes some of them hang instead of fail, so their resident memory is watched from outside.
Contract: only the process started here is ended; what it printed so far is kept.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

_RESERVE_KB, _FENCE_MIN_KB = 3_000_000, 2_000_000
_LOOK_EVERY_S = 0.1


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended; `stopped` says why we ended it."""

    exit_code: int
    stdout: str
    stderr: str
    elapsed_s: float
    stopped: str | None


def memory_fence_kb() -> int:
    """What a process may take: all that is free now, less a reserve for the rest of the machine."""
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return max(_FENCE_MIN_KB, int(lines["MemAvailable"].split()[0]) - _RESERVE_KB)


def run_watched(
    command: list[str], *, timeout_s: float, memory_max_kb: int, env: Mapping[str, str]
) -> Outcome:
    """Run to the end, or to one of the two limits."""
    # Should memory run out nevertheless, this process goes first.
    volunteer = ["sh", "-c", 'echo 1000 > /proc/self/oom_score_adj; exec "$@"', "sh"]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        started = time.perf_counter()
        with subprocess.Popen([*volunteer, *command], stdout=out, stderr=err, env=dict(env)) as process:
            stopped = _watch(process, started, timeout_s, memory_max_kb)
        elapsed_s = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        return Outcome(
            exit_code=process.returncode,
            stdout=out.read(),
            stderr=err.read(),
            elapsed_s=elapsed_s,
            stopped=stopped,
        )


def _watch(
    process: subprocess.Popen[bytes], started: float, timeout_s: float, memory_max_kb: int
) -> str | None:
    while True:
        try:
            process.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            elapsed_s = time.perf_counter() - started
            if elapsed_s > timeout_s:
                process.kill()
                return f"stopped after {timeout_s:,.0f} s"
            if (taken_kb := _resident_kb(process.pid)) > memory_max_kb:
                process.kill()
                return f"stopped after {elapsed_s:,.0f} s, at {taken_kb / 1e6:,.1f} GB of memory"
        else:
            return None


def _resident_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
