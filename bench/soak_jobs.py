"""What a soak does over and over: scans, pages and SQL, read to the end, left early, dropped, and failing.

Contract: a job opens the table itself, and leaves nothing behind. Where the answer is known it is checked; a
job that must fail fails with an error of lazydelta's, and any other error is the soak's failure.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import closing

import msgspec

import lazydelta as ld
from lazydelta.errors import LazyDeltaError


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the table is, and how it is opened."""

    url: str
    options: dict[str, str] = {}

    def open(self, **more: str) -> ld.Table:
        """The newest version."""
        return ld.open(self.url, storage_options=self.options | more)


class World(msgspec.Struct, frozen=True, kw_only=True):
    """The table in each of its places, and the right answers."""

    places: tuple[Place, ...]
    files: int
    files_of_hour: int
    hour: str  # the filter of the last hour


Job = Callable[[World, Place, random.Random], None]


def last_hour(world: World, place: Place, _: random.Random) -> None:
    """Files of the last hour."""
    found = sum(batch.num_rows for batch in place.open().scan(world.hour).file_batches())
    assert found == world.files_of_hour, found


def every_file(world: World, place: Place, dice: random.Random) -> None:
    """All files; now and then without the cache."""
    more = {"delta.cache.bytes": "0"} if dice.random() < 0.3 else {}
    more |= {"delta.sidecar.enabled": "false"} if dice.random() < 0.3 else {}
    found = sum(batch.num_rows for batch in place.open(**more).scan().file_batches())
    assert found == world.files, found


def a_few_files(_world: World, place: Place, dice: random.Random) -> None:
    """A limit, read to its end or left before it."""
    limit = dice.choice([1, 10, 100])
    with closing(place.open().scan(limit=limit).files()) as files:
        for count, _file in enumerate(files, 1):
            if count >= limit // 2:
                break


def rows_of_the_hour(world: World, place: Place, _: random.Random) -> None:
    """Rows, read to their end."""
    scan = place.open().scan(world.hour)
    rows = sum(batch.num_rows for batch in scan.batches(["value"]))
    assert rows > 0
    assert scan.explain().rows is not None


def rows_left_early(_world: World, place: Place, dice: random.Random) -> None:
    """Rows whose reader goes away, with a word or without."""
    batches = place.open().scan().batches(prefetch_size=dice.choice([0, 1, 4]))
    for _ in range(dice.randrange(3)):
        next(batches, None)
    if dice.random() < 0.5:
        batches.close()


def files_left_early(_world: World, place: Place, dice: random.Random) -> None:
    """A stream of files that is dropped."""
    batches = place.open().scan().file_batches()
    for _ in range(dice.randrange(3)):
        next(batches, None)


def files_async(_world: World, place: Place, _: random.Random) -> None:
    """An event loop that stops listening."""

    async def some() -> None:
        stream = place.open().scan().files_async()
        async for _file in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator

    asyncio.run(some())


def pages(_world: World, place: Place, dice: random.Random) -> None:
    """Three pages of rows, then one of files."""
    table, token, order = place.open(), None, dice.choice(["asc", "desc"])
    for _ in range(3):
        token = table.scan().page(50, after=token, order=order).next_token
        assert token is not None
    assert len(table.scan().file_page(20).files) == 20


def sql(world: World, place: Place, dice: random.Random) -> None:
    """An aggregate, or rows that are not read to their end."""
    table = place.open()
    if dice.random() < 0.5:
        found = table.sql(f"select count(*) as n from t where {world.hour}").read_all()
        assert found["n"][0].as_py() > 0
        return
    with table.sql("select * from t") as result:
        next(iter(result), None)


def a_missing_table(_world: World, place: Place, _: random.Random) -> None:
    """An address without a table."""
    _must_fail(lambda: ld.open(place.url + "-missing", storage_options=place.options))


def a_wrong_filter(_world: World, place: Place, _: random.Random) -> None:
    """A column that is not there."""
    _must_fail(lambda: place.open().scan("no_such_column = 1").explain())


def a_broken_stream(_world: World, place: Place, _: random.Random) -> None:
    """A scan whose time is up in the middle."""

    def scan() -> None:
        table = place.open(**{"delta.scan.timeout_seconds": "0.001", "delta.cache.bytes": "0"})
        for _ in table.scan().batches():
            pass

    _must_fail(scan)


JOBS: tuple[Job, ...] = (
    last_hour,
    every_file,
    a_few_files,
    rows_of_the_hour,
    rows_left_early,
    files_left_early,
    files_async,
    pages,
    sql,
    a_missing_table,
    a_wrong_filter,
    a_broken_stream,
)


def _must_fail(work: Callable[[], object]) -> None:
    try:
        work()
    except LazyDeltaError:
        return
    raise AssertionError("this cannot have an answer")
