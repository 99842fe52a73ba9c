"""The door of the server: order, limits, time and the end."""

from __future__ import annotations

import threading
import weakref

import pytest

from lazydelta.serve import admission
from lazydelta.serve.admission import Admission
from lazydelta.serve.config_parts import LimitsPart
from lazydelta.serve.refusals import CancelledError, LimitReachedError, UnavailableError
from lazydelta.serve.sign_in import Client
from tests.support.row_tables import eventually
from tests.support.serving import threads_named

ANN, BEN = Client("ann"), Client("ben")


def limits(**given: float) -> LimitsPart:
    return LimitsPart(**{"scans": 2, "scans_per_client": 2, "waiting_seconds": 60.0, **given})  # type: ignore[arg-type]


def test_one_too_many_is_refused_by_the_name_of_the_limit() -> None:
    door = Admission(limits(scans=3, waiting_seconds=0.05))
    first, _ = door.enter(ANN, "a"), door.enter(ANN, "b")
    with pytest.raises(
        LimitReachedError, match=r"ann runs 2 scans at once already \(limits\.scans_per_client\)"
    ):
        door.enter(ANN, "c")
    door.enter(BEN, "d")
    with pytest.raises(LimitReachedError, match=r"3 scans run at once already \(limits\.scans\)"):
        door.enter(BEN, "e")
    door.leave(first)
    door.leave(first)
    assert door.enter(BEN, "f").what == "f"
    assert len(door.running()) == 3


def test_what_has_ended_holds_nothing_that_could_be_stopped() -> None:
    door = Admission(limits())
    session = threading.Event()
    with door.admitted(ANN, "a") as scan:
        scan.when_stopped(session.set)
        alive = weakref.ref(session)
        del session
    assert alive() is None
    assert scan.what == "a"  # as a list of the latest queries knows it


def test_who_waits_comes_in_by_turns() -> None:
    door = Admission(limits(scans=1))
    held = door.enter(ANN, "held")
    order: list[int] = []

    def wait(number: int) -> None:
        with door.admitted(ANN, str(number)):
            order.append(number)

    threads = []
    for number in range(8):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        assert eventually(lambda: door.waiting == number + 1)  # noqa: B023 - asked at once
    door.leave(held)
    for thread in threads:
        thread.join()
    assert order == list(range(8))
    assert door.running() == []


def test_who_comes_goes_in_once_the_one_before_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_FRESH_SECONDS", 60.0)
    door = Admission(limits())
    first = door.enter(ANN, "first")
    second = threading.Thread(target=lambda: door.leave(door.enter(BEN, "second")))
    second.start()
    assert eventually(lambda: door.waiting == 1)
    door.leave(first)
    second.join(60)
    assert not second.is_alive()


def test_who_works_long_does_not_hold_up_the_next() -> None:
    door = Admission(limits(scans=40, scans_per_client=40))
    threads = [threading.Thread(target=door.enter, args=(ANN, "works"), daemon=True) for _ in range(40)]
    for thread in threads:
        thread.start()
    assert eventually(lambda: len(door.running()) == 40)
    assert door.waiting == 0


def test_who_may_not_wait_finds_a_free_place_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_FRESH_SECONDS", 60.0)
    door = Admission(limits(waiting_seconds=0.0))
    assert [door.enter(ANN, "a").what, door.enter(BEN, "b").what] == ["a", "b"]


def test_a_client_at_its_limit_does_not_hold_up_another() -> None:
    door = Admission(limits(scans=10, scans_per_client=1))
    door.enter(ANN, "held")
    waiting = threading.Thread(target=lambda: door.leave(door.enter(ANN, "waits")))
    waiting.start()
    assert eventually(lambda: door.waiting == 1)
    door.leave(door.enter(BEN, "passes"))
    assert door.waiting == 1
    door.limit_to(limits(scans=10, scans_per_client=2))
    waiting.join(60)
    assert not waiting.is_alive()


def test_time_runs_out() -> None:
    door = Admission(limits(scan_seconds=0.1))
    scan = door.enter(ANN, "slow")
    stopped = threading.Event()
    scan.when_stopped(stopped.set)
    assert stopped.wait(60)
    with pytest.raises(LimitReachedError, match=r"longer than 0\.1 s \(limits\.scan_seconds\)"):
        scan.check()
    door.leave(scan)
    assert eventually(lambda: not door.running() and not threads_named("lazydelta-scan-time"))


def test_a_cancelled_scan_is_its_client_s_alone() -> None:
    door = Admission(limits())
    mine, other = door.enter(ANN, "mine", ticket_id="t:1"), door.enter(BEN, "other", ticket_id="t:2")
    assert not door.cancel(ANN, "u")
    assert not door.cancel(ANN, "")
    assert door.cancel(ANN, "t")
    with pytest.raises(CancelledError):
        mine.gave(1)
    other.gave(1)


def test_rows_are_limited() -> None:
    scan = Admission(limits(rows=10)).enter(ANN, "rows")
    scan.gave(10)
    with pytest.raises(LimitReachedError, match=r"more than 10 rows \(limits\.rows\)"):
        scan.gave(1)


def test_a_door_that_closes_sends_everybody_away() -> None:
    door = Admission(limits(scans=1))
    scan = door.enter(ANN, "late")
    told: list[str] = []

    def wait() -> None:
        try:
            door.enter(BEN, "waits")
        except UnavailableError as error:
            told.append(error.what)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert eventually(lambda: door.waiting == 1)
    assert not door.drain(0.05)
    waiting.join(60)
    assert told == ["the server goes down"]
    assert scan.is_stopped
    with pytest.raises(UnavailableError, match="the server goes down"):
        door.enter(ANN, "no more")
    door.leave(scan)
    assert door.drain(1.0)


def test_what_still_works_keeps_its_place_when_its_time_is_over() -> None:
    """It cannot be interrupted: another of the same client would pile up beside it."""
    door = Admission(LimitsPart(scans=1, scan_seconds=0.1, waiting_seconds=0.3))
    scan = door.enter(ANN, "slow")
    assert eventually(lambda: scan.is_stopped)
    with pytest.raises(LimitReachedError, match=r"limits\.scans"):
        door.enter(ANN, "next")
    with scan.handing_over():  # nothing works for it any more
        door.leave(door.enter(ANN, "next"))
    with pytest.raises(LimitReachedError, match=r"limits\.scan_seconds"):
        scan.check()
