"""How the tests are dealt out when several processes run them (`pytest -n 2 --dist loadgroup`).

Why: one session of Spark is slow to start and holds a core, while most other tests never wait for it.
Contract: every test that needs Java runs in one process and is dealt out first, because that chain cannot be
cut. Of the other files each runs whole in one process, so that what a module builds is built once; the long
ones come first. A test needs Java when it uses the fixture `spark` or has the mark of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadGroupScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

JAVA = "spark"
# Folders whose files take longest, and so are begun first.
LONGEST_FIRST = ("tests/integration/", "tests/property/", "tests/golden/", "tests/unit/")


class ByFile(LoadGroupScheduling):
    """The tests of a group together, and those of a file that are in no group."""

    def _split_scope(self, nodeid: str) -> str:
        group: str = super()._split_scope(nodeid)
        return group.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _needs_java(item):
            item.add_marker(pytest.mark.xdist_group(JAVA))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if _needs_java(item):
        return -1
    places = (place for place, folder in enumerate(LONGEST_FIRST) if item.nodeid.startswith(folder))
    return next(places, len(LONGEST_FIRST))


def _needs_java(item: pytest.Item) -> bool:
    return JAVA in getattr(item, "fixturenames", ()) or item.get_closest_marker(JAVA) is not None
