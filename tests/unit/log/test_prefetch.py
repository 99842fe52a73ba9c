"""Read-ahead keeps order, errors and the right to stop."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from lazydelta.log.prefetch import prefetch


def numbers(until: int, log: list[str] | None = None) -> Generator[int, None, None]:
    try:
        yield from range(until)
    finally:
        if log is not None:
            log.append("closed")


def test_the_items_come_in_order() -> None:
    assert list(prefetch(numbers(100), batches_max=3)) == list(range(100))


def test_an_error_below_is_raised_at_its_place() -> None:
    def broken() -> Generator[int, None, None]:
        yield 1
        raise KeyError("below")

    stream = prefetch(broken())
    assert next(stream) == 1
    with pytest.raises(KeyError, match="below"):
        next(stream)


def test_closing_stops_the_stage_below_and_its_thread() -> None:
    log: list[str] = []
    others = set(threading.enumerate())
    stream = prefetch(numbers(1_000_000, log), batches_max=2)
    assert next(stream) == 0
    stream.close()
    assert log == ["closed"]
    assert set(threading.enumerate()) <= others


def test_at_most_so_many_items_wait() -> None:
    made: list[int] = []

    def counted() -> Generator[int, None, None]:
        for number in range(100):
            made.append(number)
            yield number

    stream = prefetch(counted(), batches_max=2)
    for number in stream:  # whatever the thread below does meanwhile
        assert len(made) <= number + 4
    assert len(made) == 100
