"""Log cleanup at any moment of a scan: its version, each file once, or an error if nothing tells it."""

from __future__ import annotations

from collections import Counter
from random import Random
from threading import Lock
from typing import Any

import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from lazydelta.settings import Settings
from lazydelta.table import Table, _opened
from tests.support.cleaned_logs import Files, History
from tests.support.cleaned_storage import CleanedStorage
from tests.support.hypothesis_profile import examples
from tests.support.reading import keys

CASES = examples(200)
HISTORIES = 6
WAYS: list[dict[str, str]] = [
    {"strategy": "reverse"},
    {"strategy": "forward"},
    {"strategy": "auto"},
    {"order": "asc"},
    {"order": "desc"},
]


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[History]:
    return [History(tmp_path_factory.mktemp("history"), seed) for seed in range(HISTORIES)]


class Case:
    """One scan and the cleanups under it."""

    def __init__(self, history: History, dice: Random) -> None:
        self.history, self.dice = history, dice
        self.version = dice.randint(2, history.newest)
        self.floor = min(dice.randint(-1, self.version) for _ in range(2))
        self.files: Files = history.at(
            self.version, self.floor, has_crc=dice.random() < 0.7, has_sidecar=dice.random() < 0.3
        )
        first = dice.randint(1, self.version - self.floor + 3)
        self.moments = {first, first + dice.randint(1, 4)} if dice.random() < 0.3 else {first}
        self.calls = 0
        self.was_told = True  # at every moment
        self.is_counting = False
        self._dice_of_cleanups = Random(dice.random())
        self._lock = Lock()  # readers have threads

    def on_call(self) -> None:
        """Clean up, if the moment has come."""
        with self._lock:
            self.calls += self.is_counting
            if self.is_counting and self.calls in self.moments:
                self.moments.discard(self.calls)
                self._clean_up(self._dice_of_cleanups)

    def _clean_up(self, dice: Random) -> None:
        checkpoint = dice.randint(max(0, self.floor), min(self.version + 2, self.history.newest))
        if dice.random() < 0.8:
            checkpoint = min(checkpoint, self.version)
        self.history.clean_up(self.files, checkpoint, dice)
        self.was_told &= self.history.is_told(self.files, self.version)

    def opened(self, *, pinned: bool) -> Table:
        """With a cache that knows an older version, or without any."""
        dice = self.dice
        settings = Settings(
            cache_bytes=dice.choice([0, 0, 1 << 24]), commit_read_parallelism=dice.choice([1, 1, 2, 5])
        )
        storage = CleanedStorage(self.files, self.on_call, is_local=dice.random() < 0.5)
        if settings.cache_bytes and dice.random() < 0.5:
            older = dice.randint(max(0, self.floor), self.version)
            list(_opened(storage, settings, version=older).scan().files())
        self.is_counting = dice.random() < 0.1  # opening, too
        table = _opened(storage, settings, version=self.version if pinned else None)
        self.is_counting = True
        return table

    def scan(self) -> dict[str, Any]:
        """How it is read."""
        dice = self.dice
        return {
            **dice.choice(WAYS),
            "limit": dice.choice([None, None, None, 2, 5]),
            "batch_size": dice.choice([1, 2, 8192]),
            "where": dice.choice([None, None, "count >= 0"]),
            "checkpoint_row_groups_per_batch": 1,
            "remove_set_memory_limit": dice.choice([1, 1 << 20]),
        }


def test_a_scan_under_cleanups_gives_its_version_or_says_that_nothing_tells_it(
    histories: list[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(CASES):
        ld.cache.clear()
        dice = Random(f"cleanup {number}")
        # Commits are read again and again, or their bytes are kept from one time to the next.
        monkeypatch.setattr(limits, "TAIL_BYTES_KEPT_MAX", dice.choice([0, 0, 1 << 20]))
        case = Case(dice.choice(histories), dice)
        outcomes[judged(case, number)] += 1
    assert outcomes["went on"] > CASES // 10, outcomes
    assert outcomes["not told"] > CASES // 100, outcomes


def judged(case: Case, number: int) -> str:
    """How the scan came out; what must not be fails the test."""
    found: list[Any] = []
    pinned, version = case.dice.random() < 0.8, None
    try:
        table = case.opened(pinned=pinned)
        version = table.version
        assert version == case.version or (not pinned and version > case.version), number
        request = case.scan()
        scan = table.scan(**request)
        for file in scan.files():
            found.append(file)
    except LazyDeltaError as error:
        assert len(set(keys(found))) == len(found), number
        assert version is None or set(keys(found)) <= case.history.live[version], number
        assert pinned or version is not None, f"{number}: there is always a newest version: {error}"
        assert not case.was_told or version not in (None, case.version), f"{number}: {error}"
        return "not told"
    truth = case.history.live[version]
    limit = request["limit"]
    assert len(set(keys(found))) == len(found), f"{number}: a file came twice"
    assert set(keys(found)) <= truth, number
    assert len(found) == (len(truth) if limit is None else min(limit, len(truth))), number
    report = scan.explain()
    return "went on" if "log_cleaned_up" in report.fallbacks_by_kind else "whole"
