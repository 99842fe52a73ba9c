"""Which tests a run selects: the default suite, or the long one (`pytest --long`).

A test that repeats or stresses what another one covers carries `@pytest.mark.long("why it is long")`.
A run selects either the tests without the mark or, with `--long`, those with it. `--shuffle SEED` runs the
files, and the tests of each file, in an order drawn from the seed.
"""

from __future__ import annotations

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suites")
    group.addoption("--long", action="store_true", help="run the tests marked as long, and only those")
    group.addoption("--shuffle", type=int, metavar="SEED", help="run files and their tests in random order")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long(reason): repeats or stresses; runs in `make test-long` only")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("long")
    selected, deselected = [], []
    for item in items:
        (selected if _is_long(item) == wanted else deselected).append(item)
    items[:] = selected
    if deselected:
        config.hook.pytest_deselected(items=deselected)


def shuffled(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """The tests of a file stay together, because fixtures of the file are made once."""
    chance = random.Random(seed)
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    names = sorted(files)
    chance.shuffle(names)
    return [item for name in names for item in chance.sample(files[name], len(files[name]))]


def _is_long(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("long")
    if mark is None:
        return False
    if len(mark.args) != 1 or not isinstance(mark.args[0], str):
        raise pytest.UsageError(f"{item.nodeid}: the mark `long` takes one text, the reason")
    return True
