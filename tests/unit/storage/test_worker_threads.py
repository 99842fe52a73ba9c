"""Threads that work for a scan."""

from __future__ import annotations

import threading

import pytest

from lazydelta.storage.at_once import AtOnce
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
