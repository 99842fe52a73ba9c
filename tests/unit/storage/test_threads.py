"""Threads that work for a scan, and calls that its deadline does not wait for."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextvars import ContextVar

import pytest

from lazydelta.errors import StorageError
from lazydelta.storage import NEVER, Deadline
from lazydelta.storage.at_once import AtOnce
from lazydelta.storage.in_time import awaited, in_time
from lazydelta.storage.own_thread import OwnThread
from lazydelta.storage.worker_threads import WorkerThreads


def test_a_thread_does_the_work() -> None:
    with WorkerThreads(1) as threads:
        assert threads.submit(threading.get_ident).result() != threading.get_ident()


def test_what_was_closed_takes_nothing_more() -> None:
    threads = WorkerThreads(1)
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit(threading.get_ident)


def test_what_fails_at_once_is_raised_where_the_result_is_asked_for() -> None:
    failed = AtOnce().submit(int, "x")
    assert isinstance(failed.exception(), ValueError)


def test_a_call_in_a_thread_of_its_own_has_the_context_of_who_gives_it() -> None:
    name = ContextVar("name", default="")
    name.set("x")
    given = OwnThread("beside").submit(lambda: (name.get(), threading.current_thread().name))
    assert given.result() == ("x", "beside")
    assert isinstance(OwnThread("beside").submit(int, "x").exception(), ValueError)
    assert not OwnThread("beside").submit(int).cancel()


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
    deadline = Deadline.after(1e-9, is_opening=True)  # over before it is looked at
    with pytest.raises(StorageError, match="not open within"):
        deadline.check("x")
    deadline.lift()
    deadline.check("x")
    NEVER.lift()
    assert NEVER.at == Deadline().at
