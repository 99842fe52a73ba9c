"""A plugin of pytest for one run of `make mutants`: reads its order from a file, writes the result beside it.

It is loaded by its name alone from a folder on the path, and imports nothing of these tests: those that are
run may be another checkout's.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from coverage import Coverage

# Fixtures that start Java or a server, and the parameters by which fixtures choose a server.
_SERVERS = {
    "spark",
    "azurite",
    "secure_azurite",
    "s3_server",
    "s3_server_that_checks_keys",
    "checked_s3",
    "served_afar",
    "browser",
}
_SERVER_PARAMETERS = {"azurite", "s3"}

# Taken out of the environment: a test may start pytest itself.
_PLACE = Path(os.environ.pop("LAZYDELTA_MUTANTS_ORDER"))
_ORDER: dict[str, Any] = json.loads(_PLACE.read_text("utf-8"))  # Any: see `Order` in runs.py
_TESTS: set[str] | None = None if _ORDER["tests"] is None else set(_ORDER["tests"])

_coverage: Coverage | None = None
if _ORDER["coverage"]:
    from coverage import Coverage

    _coverage = Coverage(
        data_file=_ORDER["coverage"], include=_ORDER["include"], config_file=False, messages=False
    )
    _coverage.start()  # before anything of the package is imported

_seconds: dict[str, float] = {}
_fixtures: dict[str, list[str]] = {}
_passed: set[str] = set()
_failed: dict[str, str] = {}
_contexts = [""]


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    # After the profile of the tests: the same examples in every run.
    settings.register_profile("mutants", parent=settings.default, derandomize=True, database=None)
    settings.load_profile("mutants")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if not _needs_server(item) and (_TESTS is None or item.nodeid in _TESTS)]
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _fixtures[item.nodeid] = list(getattr(item, "fixturenames", ()))
    begun = time.perf_counter()
    with _context(item.nodeid):
        try:
            return (yield)
        finally:
            _seconds[item.nodeid] = time.perf_counter() - begun


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """What a shared fixture runs belongs to all tests that use it, not to the first one."""
    if fixturedef.scope == "function":
        return (yield)
    with _context(f"fixture|{fixturedef.baseid}|{fixturedef.argname}"):
        return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.setdefault(report.nodeid, f"{report.when}: {_last_line(report)}")
    elif report.when == "call" and report.passed:
        _passed.add(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _failed.setdefault(f"collection of {report.nodeid}", _last_line(report))


def pytest_unconfigure() -> None:
    if _coverage is not None:
        _coverage.stop()
        _coverage.save()
    found = {
        "passed": sorted(_passed - set(_failed)),
        "failed": _failed,
        "seconds": _seconds,
        "fixtures": _fixtures,
    }
    _PLACE.with_suffix(".found").write_text(json.dumps(found), "utf-8")


@contextlib.contextmanager
def _context(name: str) -> Iterator[None]:
    if _coverage is None:
        yield
        return
    _contexts.append(name)
    _coverage.switch_context(name)
    try:
        yield
    finally:
        _contexts.pop()
        _coverage.switch_context(_contexts[-1])


def _needs_server(item: pytest.Item) -> bool:
    if item.get_closest_marker("spark") is not None or _SERVERS & set(getattr(item, "fixturenames", ())):
        return True
    call = getattr(item, "callspec", None)
    values = () if call is None else call.params.values()
    return any(isinstance(value, str) and value in _SERVER_PARAMETERS for value in values)


def _last_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    return (lines[0] if crash is not None else lines[-1])[:300]
