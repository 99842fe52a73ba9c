"""Judges one mutant: the tests that cover it are run in batches until one fails.

A failure counts if the test also fails alone with the mutant, and passes alone without it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from tests.mutants.baseline import BaselineError, Known, file_of
from tests.mutants.drawing import Mutant
from tests.mutants.runs import End, Order, Run, Workspace

_BATCH_SECONDS = (3.0, 15.0, 60.0)  # then all that is left
_FILE_SECONDS = 0.15  # to import one more file of tests
_LIMIT_SECONDS, _LIMIT_FACTOR = 90.0, 5.0  # of a run: a base, and a multiple of its tests' own time
_DOUBTS_MAX = 5  # failures that were none, before a mutant is given up as surviving


class Status(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMEOUT = "timeout"  # counts as killed, as MEMORY does
    MEMORY = "memory"
    SURVIVED = "survived"
    NOT_COVERED = "not covered"  # counts as survived

    @property
    def is_killed(self) -> bool:
        return self in (Status.KILLED, Status.TIMEOUT, Status.MEMORY)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one mutant."""

    key: str
    status: Status
    by: str = ""  # the test that failed
    why: str = ""
    tests_covering: int = 0
    tests_chosen: int = 0  # within the time for a mutant; fewer than those that cover it are said to be so
    seconds: float = 0.0
    doubts: list[str] = []  # tests that failed, but not alone, or also without the mutant


class Judge:
    """What the workers share: the tests known to pass alone without a mutant."""

    def __init__(self, known: Known, *, seconds: float, module_seconds: float) -> None:
        self._known = known
        self._seconds, self._module_seconds = seconds, module_seconds
        self._sound: dict[str, bool] = {}
        self._lock = threading.Lock()

    def tests_for(self, mutant: Mutant) -> list[str]:
        """The tests to run, within the time for one mutant."""
        most = self._module_seconds if mutant.is_module_wide else self._seconds
        chosen: list[str] = []
        spent = 0.0
        for test in self._known.tests_for(mutant):
            spent += self._known.seconds[test]
            if chosen and spent > most:
                break
            chosen.append(test)
        return chosen

    def judge(self, mutant: Mutant, workspace: Workspace) -> Verdict:
        begun = time.monotonic()
        covering = len(self._known.tests_for(mutant))
        chosen = self.tests_for(mutant)
        if not chosen:
            return Verdict(key=mutant.key, status=Status.NOT_COVERED)
        doubts: list[str] = []
        status, by, why = Status.SURVIVED, "", ""
        for batch in self._batches(chosen):
            workspace.put(mutant)
            status, by, why = self._outcome(mutant, workspace, batch, doubts)
            if status.is_killed or len(doubts) >= _DOUBTS_MAX:
                break
        workspace.put(None)
        return Verdict(
            key=mutant.key,
            status=status,
            by=by,
            why=why,
            tests_covering=covering,
            tests_chosen=len(chosen),
            seconds=round(time.monotonic() - begun, 1),
            doubts=doubts,
        )

    def check_baseline(self, workspace: Workspace, mutants: Sequence[Mutant]) -> None:
        """The first test of each mutant has to pass in this environment without one."""
        tests = {chosen[0] for mutant in mutants if (chosen := self.tests_for(mutant))}
        if not tests:
            return
        workspace.put(None)
        run = self._run(workspace, sorted(tests), fail_fast=False)
        if run.end is not End.PASSED or not run.found.passed:
            failed = "\n".join(f"{test}: {why}" for test, why in run.found.failed.items())
            raise BaselineError(f"the tests fail without a mutant ({run.end})\n{failed or run.output}")

    def _outcome(
        self, mutant: Mutant, workspace: Workspace, batch: list[str], doubts: list[str]
    ) -> tuple[Status, str, str]:
        while batch and len(doubts) < _DOUBTS_MAX:
            run = self._run(workspace, batch)
            match run.end:
                case End.PASSED:
                    break
                case End.TIMEOUT:
                    return Status.TIMEOUT, "", ""
                case End.MEMORY:
                    return Status.MEMORY, "", ""
            failed = next((test for test in run.found.failed if test in batch), None)
            if failed is None:
                self._check_same_without(mutant, workspace, batch)
                return Status.KILLED, "", _broken(run)
            if self._is_genuine(mutant, workspace, failed, is_alone=len(batch) == 1):
                return Status.KILLED, failed, run.found.failed[failed]
            doubts.append(failed)
            batch = [test for test in batch if test != failed]
        return Status.SURVIVED, "", ""

    def _is_genuine(self, mutant: Mutant, workspace: Workspace, test: str, *, is_alone: bool) -> bool:
        if not is_alone and self._run(workspace, [test]).end is End.PASSED:
            return False
        with self._lock:
            is_sound = self._sound.get(test)
        if is_sound is None:
            workspace.put(None)
            is_sound = test in self._run(workspace, [test]).found.passed
            workspace.put(mutant)
            with self._lock:
                self._sound[test] = is_sound
        return is_sound

    def _check_same_without(self, mutant: Mutant, workspace: Workspace, batch: list[str]) -> None:
        """Pytest itself failed: it has to be the mutant's doing."""
        workspace.put(None)
        run = self._run(workspace, batch)
        workspace.put(mutant)
        if run.end is End.BROKEN:
            raise BaselineError(f"the tests cannot be run without a mutant ({run.end}):\n{run.output}")

    def _run(self, workspace: Workspace, tests: list[str], *, fail_fast: bool = True) -> Run:
        own = sum(self._known.seconds[test] for test in tests)
        files = list(dict.fromkeys(map(file_of, tests)))
        limit = _LIMIT_SECONDS + _LIMIT_FACTOR * (own + _FILE_SECONDS * len(files))
        return workspace.run(Order(tests=tests), files, seconds=limit, fail_fast=fail_fast)

    def _batches(self, tests: list[str]) -> Iterator[list[str]]:
        bounds = iter(_BATCH_SECONDS)
        most = next(bounds)
        batch: list[str] = []
        files: set[str] = set()
        spent = 0.0
        for test in tests:
            spent += self._known.seconds[test] + _FILE_SECONDS * (file_of(test) not in files)
            files.add(file_of(test))
            batch.append(test)
            if spent > most:
                yield batch
                batch, files, spent, most = [], set(), 0.0, next(bounds, float("inf"))
        if batch:
            yield batch


def _broken(run: Run) -> str:
    lines = [
        line for line in run.output.splitlines() if line.startswith(("E  ", "ImportError", "Fatal", "ERROR"))
    ]
    return next(iter(run.found.failed.values()), lines[-1] if lines else run.output[-300:])
