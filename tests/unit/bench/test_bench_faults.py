"""The benchmark behind resets: who meets them, and how the promise is judged."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.faults import FaultRuns, judge_faults, told
from bench.faults_server import make_breaking_server
from bench.ladder_runs import Run
from bench.ladder_server import BUCKET


@contextmanager
def serving(folder: Path, reset_share: float) -> Iterator[int]:
    server = make_breaking_server(folder, latency_ms=0, reset_share=reset_share, seed=3)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def answer(port: int, path: str) -> bytes | None:
    """The body, or None where the connection was reset."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    except (ConnectionError, http.client.BadStatusLine):
        return None
    finally:
        connection.close()


def test_a_share_of_the_requests_meets_a_reset_and_the_account_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"body")
    with serving(tmp_path, 0.0) as port:
        assert [answer(port, f"/{BUCKET}/x") for _ in range(20)] == [b"body"] * 20
    with serving(tmp_path, 0.3) as port:
        found = [answer(port, f"/{BUCKET}/x") for _ in range(60)]
        assert 5 < found.count(None) < 35
        assert found.count(None) + found.count(b"body") == 60
    with serving(tmp_path, 1.0) as port:
        assert answer(port, f"/{BUCKET}/x") is None
        assert answer(port, "/-/account") is not None


def run(seconds: float, *, retries: int = 0, failure: str | None = None) -> Run:
    facts = {} if failure else {"all_s": seconds, "retries": retries, "own_requests": 10 + retries}
    return Run(table="t", level="L7", query="hour", place="store", round=0, facts=facts, failure=failure)


@pytest.mark.parametrize(("seconds", "holds"), [(0.45, True), (0.47, False)])
def test_two_round_trips_and_two_backoffs_are_allowed_at_the_median(seconds: float, holds: bool) -> None:
    results = FaultRuns(
        files=1,
        latency_ms=30,
        reset_share=0.05,
        calm=[run(0.2)] * 3,
        broken=[run(0.2), run(seconds, retries=1), run(9.0, retries=3)],
    )
    checks = judge_faults(results)
    assert [check.passed for check in checks] == [True, holds]
    page = told(results, checks)
    assert "2 of 3 runs met a reset, 4 attempts were repeated" in page
    assert ("FAILS" in page) is not holds


def test_a_wrong_answer_or_none_at_all_fails() -> None:
    results = FaultRuns(files=1, latency_ms=30, reset_share=0.05, calm=[], broken=[run(0, failure="lost")])
    assert [check.passed for check in judge_faults(results)] == [False, False]
