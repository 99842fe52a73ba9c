"""Scans while others commit, write checkpoints, build sidecars and clean old ones and the log.

Every scan gives the eager twin of exactly the version that it says it read, and no version older than the
newest one that was there when it began. Only a pinned version whose log was cleaned may be an error.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError, LazyDeltaError, VersionNotFoundError
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import Storage, open_storage
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.clean import clean_sidecars
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.cached import CACHED, UNCACHED
from tests.support.keys import Action
from tests.support.ordered_twin import order_keys
from tests.support.tended_lake import Began, TendedLake

READERS = 4
SCANS_PER_COMMIT = 8
CONFIG = SidecarConfig(row_group_rows=20, row_groups_max=4, delta_commits_min=2)
OPTIONS = (CACHED, CACHED, CACHED | {"delta.cache.bytes": "60000"}, UNCACHED)


def _hour_is_late(action: Action) -> bool:
    return str(action["partitionValues"]["_event_hour"]) >= "0000000003"


def _value_may_be_negative(action: Action) -> bool:
    return not action.get("stats") or json.loads(action["stats"])["minValues"]["value"] < 0


FILTERS: tuple[tuple[str | None, Callable[[Action], bool]], ...] = (
    (None, lambda _: True),
    ("_event_hour >= '0000000003'", _hour_is_late),
    ("value < 0", _value_may_be_negative),
)


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    ld.cache.clear()
    yield
    ld.cache.clear()


# What must have happened meanwhile; the scans go on until it has.
USUAL = ("commits", "checkpoints", "full builds", "from sidecar", "from checkpoint")
SELDOM = (
    "log files cleaned",
    "incremental builds",
    "delta files",
    "files cleaned",
    "files cleaned a day later",
    "VersionNotFoundError",
)


@pytest.mark.parametrize(
    ("scans", "events"),
    [
        (80, USUAL),
        pytest.param(1000, USUAL + SELDOM, marks=pytest.mark.long("a thousand scans, a stress")),
    ],
    ids=["some", "thousand"],
)
def test_scans_read_whole_versions_whatever_is_done_to_the_table_meanwhile(
    tmp_path: Path, scans: int, events: Sequence[str]
) -> None:
    lake = TendedLake(tmp_path, random.Random(11))
    told: Counter[str] = Counter()
    crew, seeds = Crew(), itertools.count()

    def is_enough() -> bool:
        return told["scans"] >= scans and all(told[event] for event in events)

    def read() -> None:
        while not crew.is_over.is_set() and not is_enough():
            met = _checked_scans(lake, random.Random(next(seeds)))
            with crew.lock:
                told.update(met)

    readers = [crew.begin(read) for _ in range(READERS)]
    crew.begin(lambda: _write(lake, crew.is_over, told))
    crew.begin(lambda: _tend(lake, crew.is_over, told))
    crew.end(after=readers)
    assert is_enough(), told


class Crew:
    """Threads; the first error of any ends all."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._troubles: list[BaseException] = []

    def begin(self, work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as trouble:  # noqa: BLE001 - raised by `end`
                self._troubles.append(trouble)
                self.is_over.set()

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()
        return thread

    def end(self, *, after: Sequence[threading.Thread]) -> None:
        """Wait for these, then for the others."""
        for thread in after:
            thread.join()
        self.is_over.set()
        for thread in self._threads:
            thread.join()
        if self._troubles:
            raise self._troubles[0]


def _write(lake: TendedLake, is_over: threading.Event, told: Counter[str]) -> None:
    """A commit for every few scans, however fast they are; now and then a checkpoint, or a cleanup."""
    while not is_over.wait(0.002):
        if told["commits"] * SCANS_PER_COMMIT > told["scans"]:
            continue
        lake.commit()
        told["commits"] += 1
        if told["commits"] % 6 == 0:
            lake.checkpoint()
            told["checkpoints"] += 1
        if told["commits"] % 15 == 0:
            told["log files cleaned"] += lake.clean_log()


def _tend(lake: TendedLake, is_over: threading.Event, told: Counter[str]) -> None:
    """Sidecars, delta files, and no manifest kept that a newer one has replaced; parts go a day later."""
    for number in itertools.count(1):
        if is_over.wait(0.15):
            return
        storage = open_storage(str(lake.path), Settings())
        with lake.reading() as began:
            if began.checkpoint is None:
                continue
            told[f"{build_sidecar(storage, config=CONFIG).kind} builds"] += 1
            told["delta files"] += len(write_delta_files(storage, config=CONFIG))
            told["files cleaned"] += _cleaned(storage, hours_later=0)
        if number % 5 == 0:
            with lake.after_every_reader():
                told["files cleaned a day later"] += _cleaned(storage, hours_later=25)


def _cleaned(storage: Storage, *, hours_later: int) -> int:
    now_ms = time.time_ns() // 1_000_000 + hours_later * 3_600_000
    return len(clean_sidecars(storage, config=CONFIG, retention_hours=0, now_ms=now_ms).removed)


def _checked_scans(lake: TendedLake, dice: random.Random) -> Counter[str]:
    """Open the table, the newest version or an old one, and scan it, once or more."""
    told: Counter[str] = Counter()
    with lake.reading() as began:
        oldest = dice.choice([0, max(0, began.published - 12)])
        version = dice.randint(oldest, began.published) if dice.random() < 0.3 else None
        try:
            table = ld.open(str(lake.path), version=version, storage_options=dice.choice(OPTIONS))
            assert table.version == version if version is not None else table.version >= began.published
            for _ in range(dice.choice([1, 1, 2])):
                told[_check_one(lake, table, dice)] += 1
                told["scans"] += 1
        except LazyDeltaError as error:
            _check_error(lake, began, version, error)
            told[type(error).__name__] += 1
    return told


def _check_one(lake: TendedLake, table: ld.Table, dice: random.Random) -> str:
    """One scan against the eager twin of its version; returns what it read the floor from."""
    where, keeps = dice.choice(FILTERS)
    limit, order = dice.choice([None, None, 5]), dice.choice([None, None, "asc", "desc"])
    scan = table.scan(where, limit=limit, order=order)
    found = []
    with closing(scan.files()) as files:
        for number, file in enumerate(files):
            found.append(((file.path, file.dv_id), file.size))
            if number % 50 == 0:
                time.sleep(dice.choice([0, 0.002]))
    wanted = {key: action for key, action in lake.twins[table.version].items() if keeps(action)}
    told = f"version {table.version}, {where}, limit {limit}, order {order}\n{scan.explain()}"
    keys = [key for key, _ in found]
    assert len(set(keys)) == len(keys) == min(len(wanted), limit or len(wanted)), told
    assert all(key in wanted and wanted[key]["size"] == size for key, size in found), told
    if order is not None:
        places = order_keys(wanted, "_event_hour")
        in_order = sorted(places.values(), reverse=order == "desc")
        assert [places[key] for key in keys] == in_order[:limit], told
    return f"from {scan.explain().source.split(' ')[0]}"


def _check_error(lake: TendedLake, began: Began, version: int | None, error: LazyDeltaError) -> None:
    """Only an old version whose log is gone, or went while it was read, is an error."""
    allowed: tuple[type[LazyDeltaError], ...] = (VersionNotFoundError,)
    if version is not None and version >= began.gone_below:
        allowed = (VersionNotFoundError, CorruptLogError)
    if version is None or version >= lake.cleaned_below or not isinstance(error, allowed):
        raise error
