"""The cache while others write: never older than asked, never of mixed versions, whoever else reads."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.cached import CACHED, publish
from tests.support.growing_table import GrowingTable
from tests.support.keys import FileKey
from tests.support.row_tables import eventually

SMALL = SidecarConfig(row_group_rows=20, row_groups_max=4)
READERS = 4
WHERE = (None, None, "_event_hour >= '2026021003'", "value > 2")


class Lake:
    """A table that a writer grows and publishes; what is live at each version is known before it is there."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.growing = GrowingTable(folder / "draft", dice)
        self.path = folder / "lake"
        self.live: dict[int, set[FileKey]] = {}
        self.published = -1
        self.step(0)

    def step(self, number: int) -> None:
        """A commit; now and then a checkpoint, often with its sidecar."""
        self.growing.grow(1 if number else 0)
        if number % 7 == 6:
            self.growing.checkpoint()
        if number % 14 == 6:
            build_sidecar(open_storage(str(self.growing.path), Settings()), config=SMALL)
        newest = self.growing.version
        for version in range(self.published + 1, newest + 1):
            self.live[version] = self.growing.table.live(version)
        publish(self.growing.path, self.path)
        self.published = newest


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    ld.cache.clear()
    yield
    ld.cache.clear()


@pytest.mark.parametrize("budget", [64 << 20, 60_000])
def test_readers_see_whole_versions_and_none_older_than_when_they_asked(tmp_path: Path, budget: int) -> None:
    lake = Lake(tmp_path, random.Random(5))
    is_over = threading.Event()
    troubles: list[BaseException] = []
    reads = [0] * READERS

    def read(who: int) -> None:
        dice = random.Random(who)
        try:
            while not is_over.is_set():
                check_one(lake, dice, budget)
                reads[who] += 1
        except BaseException as trouble:  # noqa: BLE001 - told by the test below
            troubles.append(trouble)

    threads = [threading.Thread(target=read, args=(who,)) for who in range(READERS)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    number = 1

    def is_enough() -> bool:
        """Much on a quiet machine, and on a busy one what is asserted below, however long it takes."""
        if time.monotonic() < began + 12:
            return number >= 45 and min(reads) >= 10
        return number > 15 and min(reads) >= 5

    while not is_enough() and not troubles:
        lake.step(number)
        number += 1
    is_over.set()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]
    assert min(reads) >= 5
    assert number > 15
    assert ld.cache.stats().hits > 0
    assert ld.cache.stats().bytes <= budget


def check_one(lake: Lake, dice: random.Random, budget: int) -> None:
    options = CACHED | {"delta.cache.bytes": str(budget)}
    staleness = dice.choice([0, 0, 0, 0.05])
    known = lake.published
    if staleness:
        options["delta.cache.max_staleness_seconds"] = str(staleness)
        known = 0
    version = dice.randint(0, known) if dice.random() < 0.2 else None
    where = dice.choice(WHERE)
    table = ld.open(str(lake.path), version=version, storage_options=options)
    assert version is None or table.version == version
    assert table.version >= (known if version is None else version)
    found = [
        (file.path, file.dv_id)
        for file in table.scan(where=where, limit=dice.choice([None, None, 5])).files()
    ]
    truth = lake.live[table.version]
    assert len(found) == len(set(found))
    assert set(found) <= truth
    if where is None and len(found) != 5:
        assert set(found) == truth


def test_after_a_log_was_restored_no_thread_sees_anything_of_the_other(tmp_path: Path) -> None:
    first, second = (Lake(tmp_path / name, random.Random(seed)) for name, seed in (("a", 1), ("b", 2)))
    for lake in (first, second):
        for number in range(1, 6):
            lake.step(number)
    folder = tmp_path / "table"
    publish(first.path, folder)
    is_over = threading.Event()
    troubles: list[str] = []
    now = [first.live]  # swapped only while nobody reads
    permits = threading.Semaphore(3)
    may_read = threading.Event()
    may_read.set()
    read_since: list[int] = []

    def read() -> None:
        while not is_over.is_set():
            may_read.wait()
            with permits:
                table = ld.open(str(folder), storage_options=CACHED)
                found = {(file.path, file.dv_id) for file in table.scan().files()}
                if found != now[0][table.version]:
                    troubles.append(f"version {table.version} is not of this log")
                read_since.append(table.version)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(6):
            assert eventually(lambda: len(read_since) >= 6)
            fresh = tmp_path / f"fresh-{turn}"
            lake = second if turn % 2 == 0 else first
            publish(lake.path, fresh)
            may_read.clear()
            for _ in threads:
                permits.acquire()
            (folder / "_delta_log").rename(tmp_path / f"aside-{turn}")
            (fresh / "_delta_log").rename(folder / "_delta_log")
            now[0] = lake.live
            read_since.clear()
            for _ in threads:
                permits.release()
            may_read.set()
        assert eventually(lambda: len(read_since) >= 6)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert troubles == []
    assert ld.cache.stats().invalidations > 0
