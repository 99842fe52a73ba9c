"""Threads that work for a scan."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from lazydelta.storage.at_once import AtOnce
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
