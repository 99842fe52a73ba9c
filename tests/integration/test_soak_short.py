"""A short soak: the same work for half a minute, and nothing grows."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.soak import Look, Soaked, verdicts_on
from bench.tables import REPOSITORY

MINUTES = "0.6"


@pytest.mark.long("half a minute of mixed work")
def test_memory_handles_and_threads_stay_as_they_are_over_half_a_minute_of_mixed_work() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak", "--minutes", MINUTES, "--files", "500"],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.rstrip().endswith("flat"), done.stdout


def test_a_soak_that_grows_is_told() -> None:
    def looks(**growth: float) -> list[Look]:
        flat = {"resident_mb": 200.0, "arrow_mb": 1.0, "handles": 10, "threads": 12}
        flat |= {"held_bytes": 0, "row_threads": 0, "jobs": 1}
        return [
            Look(seconds=float(at), **{name: base + at * growth.get(name, 0) for name, base in flat.items()})
            for at in range(20)
        ]

    def told(**growth: float) -> str:
        return " ".join(verdicts_on(Soaked(looks=looks(**growth), given_up=0)))

    assert told() == ""
    for name, step in {"resident_mb": 5.0, "handles": 3, "threads": 2, "held_bytes": 1}.items():
        assert name in told(**{name: step}), name
