"""How the tests are dealt out when several processes run them (`pytest -n 2 --dist loadgroup`).

Why: one session of Spark is slow to start and holds a core, while most other tests never wait for it.
Contract: every test that uses the fixture `spark` runs in one process. So does every other that has the mark
of that name because it starts Java itself. Both chains are dealt out first, because they are long. Of the
other files each runs whole in one process, so that what a module builds is built once; the long ones come
first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadGroupScheduling

from tests.support.suites import shuffled

if TYPE_CHECKING:
    from xdist.remote import Producer

SESSION, JAVA = "spark", "java"  # names of groups; they are told behind a test's name
# Folders whose files take longest, and so are begun first.
LONGEST_FIRST = ("tests/integration/", "tests/property/", "tests/golden/", "tests/unit/")


class ByFile(LoadGroupScheduling):
    """The tests of a group together, and those of a file that are in no group."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return group.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        group = _group(item)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))
    seed = config.getoption("shuffle")
    if seed is not None:
        items[:] = shuffled(items, seed)
        return
    items.sort(key=_turn)


def starts_java(item: pytest.Item) -> bool:
    """Whether this test uses Spark's session, or starts Java itself."""
    return _group(item) is not None


def _group(item: pytest.Item) -> str | None:
    if "spark" in getattr(item, "fixturenames", ()):
        return SESSION
    return JAVA if item.get_closest_marker("spark") is not None else None


def _turn(item: pytest.Item) -> int:
    group = _group(item)
    if group is not None:
        return -2 if group == SESSION else -1
    places = (place for place, folder in enumerate(LONGEST_FIRST) if item.nodeid.startswith(folder))
    return next(places, len(LONGEST_FIRST))
