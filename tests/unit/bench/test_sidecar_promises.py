"""Promises about sidecars hold where the figures say so, and fail by name where one does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.promises import Check
from bench.sidecar_files import SidecarFacts
from bench.sidecar_promises import judge_builds, judge_growth, sum_up
from bench.sidecar_report import save_sidecars
from bench.sidecar_runs import Build, SizeRun, Step

FILES = 1_000_000


def build(**changed: Any) -> Build:  # Any: fields of both structs
    """A full build of two parts, or what is changed about it."""
    facts = SidecarFacts(
        version=1, num_files=FILES, parts=2, row_groups=100, part_rows_max=600_000, total_bytes=60,
        last_hour_bytes=100,
    )  # fmt: skip
    sidecar = {name: value for name, value in changed.items() if name in SidecarFacts.__struct_fields__}
    rest = {name: value for name, value in changed.items() if name not in sidecar}
    plain = {"feeder": "local", "kind": "full", "seconds": 9.0, "cpu_s": 10.0, "peak_mb": 200.0}
    return Build(**plain | {"bytes_written": 1_000} | rest, sidecar=msgspec.structs.replace(facts, **sidecar))


def incremental(**changed: Any) -> Build:  # Any: as above
    """A build that keeps every promise."""
    return build(**{"kind": "incremental", "cpu_s": 1.0, "bytes_written": 50, "parts": 4} | changed)


def steps(**changed: Any) -> list[Step]:  # Any: as above
    """Twenty checkpoints, a full build at every fifth."""
    return [
        Step(
            number=number,
            has_optimize=number == 10,
            incremental=incremental(**changed),
            full=build() if number % 5 == 0 else None,
        )
        for number in range(1, 21)
    ]


def sizes(**changed: Any) -> list[SizeRun]:  # Any: as above
    """A run with a build by each feeder."""
    builds = [build(), build(feeder="spark", peak_mb=2_000.0)]
    run = SizeRun(
        stats="both", files=FILES, checkpoint_bytes=100, checkpoint_s=9.0, builds=builds, differences=0
    )
    return [msgspec.structs.replace(run, **changed)]


def judged(sizes: list[SizeRun], steps: list[Step], differences: int = 0) -> list[Check]:
    """Every promise."""
    return [*judge_builds(sizes), *judge_growth(steps, differences)]


def failed(sizes: list[SizeRun], steps: list[Step], differences: int = 0) -> list[str]:
    """The promises that do not hold."""
    return [check.promise for check in judged(sizes, steps, differences) if not check.passed]


def test_every_promise_holds_on_good_figures() -> None:
    assert failed(sizes(), steps()) == []


def test_sums_of_full_builds_are_scaled_to_all_checkpoints() -> None:
    growth = sum_up(steps())
    assert (growth.measured, growth.checkpoints) == (4, 20)
    assert (growth.full_bytes, growth.incremental_bytes, growth.bytes_times) == (20_000, 1_000, 20)
    assert (growth.full_cpu_s, growth.cpu_times) == (200, 10)


@pytest.mark.parametrize(
    ("spoiled", "word"),
    [
        (lambda: failed(sizes(), steps(bytes_written=101)), "fewer bytes"),
        (lambda: failed(sizes(), steps(cpu_s=2.1)), "less CPU"),
        (lambda: failed(sizes(), steps(parts=5)), "the parts of a full build"),
        (lambda: failed(sizes(), steps(last_hour_bytes=201)), "last-hour"),
        (lambda: failed(sizes(), steps(kind="full")), "every build after the first"),
        (lambda: failed(sizes(), steps(), differences=1), "the last sidecar"),
        (lambda: failed(sizes(checkpoint_bytes=70), steps()), "of the checkpoint that Delta"),
        (lambda: failed(sizes(differences=1), steps()), "sidecars of both feeders"),
        (lambda: failed(sizes(builds=[build()]), steps()), "sidecars of both feeders"),
    ],
)
def test_a_figure_that_breaks_a_promise_fails_that_one_alone(
    spoiled: Callable[[], list[str]], word: str
) -> None:
    (promise,) = spoiled()
    assert word in promise


def test_memory_is_judged_by_the_worst_local_build() -> None:
    heavy = [build(), build(peak_mb=300.0), build(feeder="spark", peak_mb=2_000.0)]
    (promise,) = failed(sizes(builds=heavy), steps())
    assert "under 300 MB" in promise


def test_what_was_not_measured_fails() -> None:
    assert len(failed([], steps())) == 2
    assert failed(sizes(), []) == ["incremental builds"]


def test_a_run_is_saved_as_text_picture_and_json(tmp_path: Path) -> None:
    checks = judged(sizes(), steps())
    picture = save_sidecars(tmp_path, "run", sizes=sizes(), first=build(), steps=steps(), checks=checks)
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "run.md").read_text()
    assert "| bytes written, in all | 1,000 | 20,000 | 20.0 |" in text
    assert "the sidecar has 0.60 of that" in text
    assert msgspec.json.decode((tmp_path / "run.json").read_bytes())["steps"][0]["number"] == 1
