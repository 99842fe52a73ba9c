"""Requests, bytes and sequential round trips."""

from __future__ import annotations

import threading

from lazydelta.storage import IoCounters


def test_requests_side_by_side_are_one_round_trip() -> None:
    counters = IoCounters()
    tickets = [counters.begin("get") for _ in range(10)]
    for ticket in tickets:
        counters.finish(ticket, bytes_read=5)
    now = counters.snapshot()
    assert (now.requests, now.round_trips, now.bytes_read) == (10, 1, 50)


def test_requests_one_after_the_other_are_as_many_round_trips() -> None:
    counters = IoCounters()
    for _ in range(3):
        counters.finish(counters.begin("list"), bytes_written=2)
    now = counters.snapshot()
    assert (now.round_trips, now.bytes_written, now.requests_by_kind) == (3, 6, {"list": 3})


def test_a_request_that_outlives_others_does_not_deepen_the_account() -> None:
    counters = IoCounters()
    slow = counters.begin("get")
    for _ in range(2):
        counters.finish(counters.begin("get"))
    counters.finish(slow)
    assert counters.snapshot().round_trips == 2


def test_a_child_counts_its_own_round_trips_and_its_parents_continue() -> None:
    parent = IoCounters()
    for _ in range(3):
        parent.finish(parent.begin("get"))
    child = IoCounters(parent)
    child.finish(child.begin("get"), bytes_read=7)
    child.retry()
    child.add_bytes_read(3)
    assert (child.snapshot().round_trips, parent.snapshot().round_trips) == (1, 4)
    assert (child.snapshot().bytes_read, parent.snapshot().bytes_read) == (10, 10)
    assert (child.snapshot().retries, parent.snapshot().retries) == (1, 1)


def test_two_children_side_by_side_are_one_round_trip_of_the_parent() -> None:
    parent = IoCounters()
    first, second = IoCounters(parent), IoCounters(parent)
    tickets = first.begin("get"), second.begin("get")
    first.finish(tickets[0])
    second.finish(tickets[1])
    assert parent.snapshot().round_trips == 1


def test_requests_that_wait_for_none_of_each_other_are_one_round_trip_though_made_in_turn() -> None:
    parent = IoCounters()
    parent.finish(parent.begin("list"))
    child = IoCounters(parent)
    with child.side_by_side():
        for _ in range(3):
            child.finish(child.begin("get"))
        with child.side_by_side():  # one inside the other is the same
            child.finish(child.begin("get"))
    assert (child.snapshot().requests, child.snapshot().round_trips) == (4, 1)
    assert parent.snapshot().round_trips == 2
    child.finish(child.begin("get"))
    assert (child.snapshot().round_trips, parent.snapshot().round_trips) == (2, 3)


def test_what_another_thread_asks_meanwhile_is_counted_as_ever() -> None:
    counters = IoCounters()

    def one_after_the_other() -> None:
        for _ in range(3):
            counters.finish(counters.begin("get"))

    with counters.side_by_side():
        counters.finish(counters.begin("get"))
        thread = threading.Thread(target=one_after_the_other)
        thread.start()
        thread.join()
    assert counters.snapshot().round_trips == 4
