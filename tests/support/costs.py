"""CPU time of each test and of the whole run, with that of the processes that tests start.

`--cpu-minutes WARN,FAIL` prints the total and the ten most expensive tests at the end of a run, warns above
the first number and fails above the second. `--costs=FILE` writes a line of JSON for each test and each slow
fixture; `python -m tests.support.costs FILE` sums them by folder, file and fixture.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

MOST_EXPENSIVE = 10
FIXTURE_SECONDS_MIN = 0.05


class Costs:
    """What this process measures; in the process that deals tests out, what all of them measured."""

    def __init__(self, limits: tuple[float, float] | None, file: str | None) -> None:
        self.limits, self.file = limits, file
        self.records: list[dict[str, Any]] = []
        self.started: Counter[str] = Counter()  # programs that tests started, by name
        self.cpu = 0.0
        sys.addaudithook(self._count_starts)

    def _count_starts(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            self.started[Path(os.fsdecode(arguments[0] or arguments[1][0])).name] += 1

    def _cpu_now(self) -> float:
        """Seconds of this process and of its descendants, the living ones too."""
        total = sum(os.times()[:4])
        if self.started:
            for child in psutil.Process().children(recursive=True):
                try:
                    total += sum(child.cpu_times()[:4])
                except psutil.Error:
                    continue  # it has just ended
        return total

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        wall, cpu, starts = time.perf_counter(), self._cpu_now(), self.started.total()
        yield
        self.records.append(
            {
                "test": item.nodeid.partition("@")[0],
                "wall": time.perf_counter() - wall,
                "cpu": max(0.0, self._cpu_now() - cpu),
                "starts": self.started.total() - starts,
                "random": bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False)),
            }
        )

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[None]:
        wall, cpu = time.perf_counter(), self._cpu_now()
        yield
        wall = time.perf_counter() - wall
        if wall >= FIXTURE_SECONDS_MIN:
            name = f"{fixturedef.argname} ({fixturedef.scope})"
            seconds = max(0.0, self._cpu_now() - cpu)
            self.records.append({"fixture": name, "of": request.node.nodeid, "wall": wall, "cpu": seconds})

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            measured = [self._cpu_now(), dict(self.started), self.records]
            session.config.workeroutput["costs"] = json.dumps(measured)
            return
        self.cpu += self._cpu_now()
        if self.limits and self.cpu > self.limits[1] * 60 and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.file:
            Path(self.file).write_text("".join(json.dumps(record) + "\n" for record in self.records), "utf-8")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        measured = getattr(node, "workeroutput", {}).get("costs")
        if measured:
            cpu, started, records = json.loads(measured)
            self.cpu += cpu
            self.started.update(started)
            self.records += records

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        tests = [record for record in self.records if "test" in record]
        if not tests or not self.limits:
            return
        terminalreporter.section("CPU time")
        write = terminalreporter.write_line
        started = self.started.total()
        write(f"{self.cpu / 60:.1f} minutes in all, {len(tests)} tests, {started} processes started")
        for record in sorted(tests, key=lambda record: -record["cpu"])[:MOST_EXPENSIVE]:
            write(f"{record['cpu']:7.1f} s  {record['test']}")
        if self.limits and self.cpu > self.limits[1] * 60:
            write(f"FAILED: the suite may use at most {self.limits[1]:g} minutes of CPU time", red=True)
        elif self.limits and self.cpu > self.limits[0] * 60:
            write(
                f"WARNING: the suite should use at most {self.limits[0]:g} minutes of CPU time", yellow=True
            )


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("costs")
    group.addoption("--costs", metavar="FILE", help="write what each test and fixture cost, as lines of JSON")
    group.addoption("--cpu-minutes", metavar="WARN,FAIL", help="limits of the run's CPU time, in minutes")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    text = config.getoption("cpu_minutes")
    limits = tuple(float(part) for part in text.split(",")) if text else None
    if limits is not None and len(limits) != 2:
        raise pytest.UsageError("--cpu-minutes takes two numbers, as in 35,60")
    config.pluginmanager.register(Costs(limits, config.getoption("costs")), "costs")


def summary(records: list[dict[str, Any]]) -> Iterator[str]:
    """Tables by folder, file and fixture, the most expensive first."""
    tests = [record for record in records if "test" in record]
    yield from _table("folder", tests, lambda record: "/".join(_file(record).split("/")[:3]))
    yield from _table("file", tests, _file)
    yield from _table(
        "fixture", [record for record in records if "fixture" in record], lambda record: record["fixture"]
    )
    yield from _table("kind", tests, lambda record: "random examples" if record["random"] else "other tests")


def _table(title: str, records: list[dict[str, Any]], key: Any) -> Iterator[str]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[key(record)].append(record)
    yield f"\n| {title} | runs | CPU s | wall s | processes |\n|---|---|---|---|---|"
    cost = {name: sum(record["cpu"] for record in group) for name, group in groups.items()}
    for name in sorted(groups, key=lambda name: -cost[name]):
        wall = sum(record["wall"] for record in groups[name])
        starts = sum(record.get("starts", 0) for record in groups[name])
        yield f"| {name} | {len(groups[name])} | {cost[name]:.1f} | {wall:.1f} | {starts} |"


def _file(record: dict[str, Any]) -> str:
    return str(record["test"]).partition("::")[0]


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(
            *summary([json.loads(line) for line in Path(argument).read_text("utf-8").splitlines()]), sep="\n"
        )
