"""What a run leaves out, by name: counted at its end, and an error where the reason is not in the table.

Contract: a test that cannot run here calls `skip`. After a run, one line for each reason counts the tests and
names their files. A skip for any other reason makes the run fail. Works with pytest-xdist.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NoReturn

import pytest

# reason -> when it holds
ALLOWED = {
    "mono is missing": "neither mono nor apt is here",
    "zsh and fish are missing": "neither the shells nor apt is here",
    "Chromium is missing": "there is no Chromium, no apt, and playwright has no build for this machine",
    "a C compiler is missing": "there is none, and ziglang has no wheel for this machine",
    "Python's headers are missing": "no headers or no shared library, and apt has none for this Python",
    "the sanitizers are missing": "the C compiler does not bring them",
    "the right to mount is missing": "a small disk can only be mounted by root",
    "the golden tables are missing": "the tables of other projects do not lie beside the clone",
    "a bare system is missing": "debootstrap, root or the right to mount is missing",
    "some usual tables are missing": "only a part of the random tables was selected",
}
FILES_SHOWN_MAX = 6


def skip(reason: str) -> NoReturn:
    """Leave out the test that runs; the reason is in the table."""
    assert reason in ALLOWED, reason
    pytest.skip(reason)


class Skips:
    """What was left out in this run."""

    def __init__(self) -> None:
        self._tests: defaultdict[str, list[str]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._tests[_reason(report)].append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._tests[_reason(report)].append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and any(reason not in ALLOWED for reason in self._tests):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for reason, tests in sorted(self._tests.items()):
            files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            more = f" and {len(files) - FILES_SHOWN_MAX} more" if len(files) > FILES_SHOWN_MAX else ""
            shown = ", ".join(files[:FILES_SHOWN_MAX]) + more
            if reason in ALLOWED:
                terminalreporter.write_line(f"not run here: {reason} ({len(tests)} tests): {shown}")
            else:
                terminalreporter.write_line(
                    f"ERROR: skipped for a reason that tests/support/skips.py does not list: {reason}"
                    f" ({len(tests)} tests): {shown}",
                    red=True,
                )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # a worker's reports reach the process that started it
        config.pluginmanager.register(Skips(), "lazydelta-skips")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return str(words).removeprefix("Skipped: ")
