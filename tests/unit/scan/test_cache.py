"""The process's cache by itself: what goes first, what is counted, who shares nothing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading

import pytest

from lazydelta.memory_budget import MemoryBudget, MemoryKind
from lazydelta.scan.cache import ByteCache, CacheKind, Owner
from lazydelta.settings import Settings
from lazydelta.storage import access_digest

TABLE, OTHER = Owner("file:///a", b"1"), Owner("file:///b", b"1")
ROWS, TAIL = CacheKind.ROWS, CacheKind.TAIL


def put(
    cache: ByteCache, name: str, *, size: int = 10_000, budget: int = 50_000, owner: Owner = TABLE
) -> None:
    cache.put(owner, ROWS, name, name.upper(), size_bytes=size, budget_bytes=budget)


def kept(cache: ByteCache, owner: Owner = TABLE) -> list[object]:
    return cache.keys(owner, ROWS)


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = ByteCache()
    for name in "abcd":
        put(cache, name)
    found = cache.get(TABLE, ROWS, "a")
    assert found is not None
    assert found.value == "A"
    put(cache, "e")
    assert kept(cache) == ["c", "d", "a", "e"]
    assert cache.stats().evictions == 1


def test_tables_share_one_budget() -> None:
    cache = ByteCache()
    for name in "abcd":
        put(cache, name)
    put(cache, "x", owner=OTHER, size=25_000)
    assert (kept(cache), kept(cache, OTHER)) == (["c", "d"], ["x"])
    assert cache.stats().bytes <= 50_000


def test_what_is_larger_than_the_budget_is_not_kept_and_throws_nothing_out() -> None:
    cache = ByteCache()
    put(cache, "a")
    put(cache, "giant", size=50_001)
    assert kept(cache) == ["a"]


def test_a_table_with_a_smaller_budget_shrinks_the_cache_when_it_keeps_something() -> None:
    cache = ByteCache()
    for name in "abcd":
        put(cache, name)
    put(cache, "e", budget=21_000)
    assert kept(cache) == ["d", "e"]


def test_putting_again_replaces_and_counts_the_bytes_once() -> None:
    cache = ByteCache()
    put(cache, "a", size=10_000)
    put(cache, "a", size=20_000)
    stats = cache.stats()
    assert (stats.entries, stats.bytes // 1000) == (1, 20)


def test_what_does_not_hold_any_more_counts_as_a_miss() -> None:
    cache = ByteCache()
    put(cache, "a")
    assert cache.get(TABLE, ROWS, "a", is_valid=lambda value: value == "other") is None
    stats = cache.stats().by_kind["rows"]
    assert (stats.hits, stats.misses) == (0, 1)


def test_dropping_a_table_leaves_the_others() -> None:
    cache = ByteCache()
    put(cache, "a")
    put(cache, "x", owner=OTHER)
    cache.drop(TABLE)
    assert (kept(cache), kept(cache, OTHER)) == ([], ["x"])
    assert cache.stats().invalidations == 1


def test_dropping_by_kind_leaves_the_other_kinds() -> None:
    cache = ByteCache()
    put(cache, "a")
    cache.put(TABLE, TAIL, "t", "T", size_bytes=10, budget_bytes=50_000)
    cache.drop(TABLE, lambda kind, _: kind is TAIL)
    assert (kept(cache), cache.keys(TABLE, TAIL)) == (["a"], [])


def test_clearing_forgets_entries_and_numbers() -> None:
    cache = ByteCache()
    put(cache, "a")
    cache.get(TABLE, ROWS, "a")
    cache.clear()
    stats = cache.stats()
    assert (stats.entries, stats.bytes, stats.hits, stats.misses, stats.evictions) == (0, 0, 0, 0, 0)


def test_threads_that_put_and_take_never_leave_the_books_wrong() -> None:
    cache = ByteCache()

    def work(seed: int) -> None:
        for turn in range(2000):
            name = f"{(turn * seed) % 17}"
            put(cache, name, size=1000 * (turn % 7))
            cache.get(TABLE, ROWS, f"{turn % 17}")
            if turn % 100 == 0:
                cache.drop(TABLE, lambda _kind, key: key == "3")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (3, 5, 7, 11)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = cache.stats()
    assert stats.bytes == cache._bytes <= 50_000
    assert stats.entries == len(kept(cache))
    assert stats.hits + stats.misses == 8000


def test_the_budget_is_told_in_order_what_several_threads_put_in_and_throw_out() -> None:
    begun, cleared = threading.Event(), threading.Event()

    class SlowToHear(MemoryBudget):
        """Whoever tells it of more is held up for a moment, in which another thread may tell of less."""

        def cached(self, more_bytes: int) -> None:
            if more_bytes > 0:
                begun.set()
                cleared.wait(0.2)  # in vain where the lock is held, which is what is hoped for
            super().cached(more_bytes)

    budget = SlowToHear(1 << 20)
    cache = ByteCache(budget)
    putting = threading.Thread(target=put, args=(cache, "a"))
    putting.start()
    assert begun.wait(timeout=120)
    cache.clear()
    cleared.set()
    putting.join()
    assert (budget.use().cache_bytes, budget.use().held_bytes) == (0, 0)


def test_the_cache_gives_back_what_others_need() -> None:
    budget = MemoryBudget(100_000)
    cache = ByteCache(budget)
    budget.cache_gives_back(cache.give_back)
    for key in range(4):
        cache.put(TABLE, ROWS, key, b"", size_bytes=5000, budget_bytes=1 << 20)
    kept = cache.stats().bytes
    assert budget.use().cache_bytes == budget.use().held_bytes == kept
    wanted = 50_000 - kept + 5000
    assert budget.try_take(wanted)
    assert cache.keys(TABLE, ROWS) == [1, 2, 3]  # what was used longest ago went
    assert budget.use().held_bytes <= 50_000
    budget.give(wanted, MemoryKind.AHEAD)
    for _ in range(3):
        budget.take(25_000, MemoryKind.LOG)
    assert cache.keys(TABLE, ROWS) == []
    assert budget.use().cache_bytes == budget.use().waits == 0


def test_the_cache_keeps_at_most_a_quarter_and_nothing_that_would_leave_too_little_for_others() -> None:
    budget = MemoryBudget(100_000)
    cache = ByteCache(budget)
    for key in range(10):
        cache.put(TABLE, ROWS, key, b"", size_bytes=5000, budget_bytes=1 << 20)
    assert 20_000 <= cache.stats().bytes <= 25_000
    cache.clear()
    assert budget.use().held_bytes == 0
    assert budget.try_take(50_000)
    cache.put(TABLE, ROWS, 0, b"", size_bytes=5000, budget_bytes=1 << 20)
    assert cache.keys(TABLE, ROWS) == []


def test_a_forked_child_begins_with_an_empty_cache_even_while_the_lock_is_held() -> None:
    code = """
        import os, sys
        import lazydelta as ld
        from lazydelta.scan.cache import CacheKind, Owner
        owner = Owner("file:///a", b"1")
        ld.cache.PROCESS_CACHE.put(owner, CacheKind.ROWS, "a", "A", size_bytes=10_000, budget_bytes=50_000)
        assert ld.cache.stats().entries == 1
        with ld.cache.PROCESS_CACHE._lock:
            child = os.fork()
            if child == 0:
                os._exit(7 if ld.cache.stats().entries == 0 else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    # In a process of its own: this one has threads that a fork could catch in the middle of something.
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 7, done.stderr


@pytest.mark.parametrize(
    "others",
    [
        (Settings(storage_options={"account_key": "b"}), {}),
        (Settings(storage_options={"account_key": "a", "sas_token": "s"}), {}),
        (Settings(storage_options={"account_key": "a"}), {"AZURE_STORAGE_TOKEN": "t"}),
        (Settings(storage_options={"account_key": "a"}), {"AWS_PROFILE": "other"}),
        (Settings(), {}),
    ],
)
def test_whoever_reads_with_other_credentials_shares_nothing(others: tuple[Settings, dict[str, str]]) -> None:
    mine = access_digest(Settings(storage_options={"account_key": "a"}), {"HOME": "/x"})
    assert mine == access_digest(Settings(storage_options={"account_key": "a"}), {"HOME": "/y"})
    assert mine != access_digest(*others)
    assert b"account" not in mine
