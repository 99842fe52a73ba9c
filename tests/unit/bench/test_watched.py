"""A watched command is left alone while it behaves, and stopped when it does not."""

from __future__ import annotations

import os
import sys

from bench.watched import Outcome, memory_fence_kb, run_watched


def _run(code: str, *, timeout_s: float = 120, memory_max_kb: int = 10_000_000) -> Outcome:
    command = [sys.executable, "-c", code]
    return run_watched(command, timeout_s=timeout_s, memory_max_kb=memory_max_kb, env=os.environ)


def test_output_and_exit_code_come_through() -> None:
    done = _run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.stdout, done.stderr, done.exit_code, done.stopped) == ("out\n", "err\n", 3, None)


def test_a_command_that_takes_too_long_is_stopped_and_keeps_what_it_printed() -> None:
    done = _run("import time; print('here', flush=True); time.sleep(600)", timeout_s=5)
    assert (done.stdout, done.stopped) == ("here\n", "stopped after 5 s")
    assert done.elapsed_s < 300


def test_a_command_that_takes_too_much_memory_is_stopped() -> None:
    done = _run(
        "import time; held = b'x' * 300_000_000; time.sleep(600)", timeout_s=300, memory_max_kb=200_000
    )
    assert done.stopped is not None and done.stopped.endswith("GB of memory")
    assert done.elapsed_s < 300


def test_the_fence_leaves_something_for_the_rest_of_the_machine() -> None:
    total_kb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    assert 0 < memory_fence_kb() < max(total_kb, 2_000_001)
