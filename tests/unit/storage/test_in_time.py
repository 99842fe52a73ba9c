"""Calls that a scan's deadline does not wait for."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import pytest

from lazydelta.errors import StorageError
from lazydelta.storage import NEVER, Deadline
from lazydelta.storage.in_time import awaited, in_time


def test_without_a_deadline_the_calling_thread_works_itself() -> None:
    assert in_time(threading.get_ident, NEVER, "x") == threading.get_ident()
    assert in_time(threading.get_ident, Deadline.after(600), "x") != threading.get_ident()


def test_a_call_that_takes_too_long_is_left_to_itself_and_ends() -> None:
    goes_on, ended = threading.Event(), threading.Event()

    def call() -> None:
        goes_on.wait(60)
        ended.set()

    with pytest.raises(StorageError, match=r"deadline of 0\.05 s") as caught:
        in_time(call, Deadline.after(0.05), "s3://b/x")
    assert not ended.is_set(), "it was not waited for"
    assert caught.value.where == "s3://b/x"
    goes_on.set()
    assert ended.wait(60)


def test_answers_and_errors_of_the_call_come_through() -> None:
    def fail() -> None:
        raise TimeoutError("of its own")

    assert in_time(lambda: 7, Deadline.after(600), "x") == 7
    with pytest.raises(TimeoutError, match="of its own"):
        in_time(fail, Deadline.after(600), "x")


def test_a_future_is_waited_for_no_longer_than_the_deadline() -> None:
    with pytest.raises(StorageError, match="deadline"):
        awaited(Future[int](), Deadline.after(0.02), "x")
    done = Future[int]()
    done.set_result(3)
    assert awaited(done, NEVER, "x") == 3


def test_a_deadline_that_is_lifted_no_longer_counts() -> None:
    deadline = Deadline.after(0.02, is_opening=True)
    time.sleep(0.03)
    with pytest.raises(StorageError, match=r"not open within 0\.02 s"):
        deadline.check("x")
    deadline.lift()
    deadline.check("x")
    NEVER.lift()
    assert NEVER.at == Deadline().at
