"""Credentials that come from Python: how often a provider is asked, and what it may answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.storage.in_time import awaited
from lazydelta.storage.providers import (
    ProviderProblem,
    RenewingProvider,
    options_of,
    provider_of,
    provider_serial,
)
from tests.support.row_tables import eventually


class Counted:
    """A provider that numbers what it gives out."""

    def __init__(self, lifetime_seconds: float | None = None) -> None:
        self.calls = 0
        self.lifetime_seconds = lifetime_seconds

    def __call__(self) -> dict[str, Any]:
        self.calls += 1
        answer: dict[str, Any] = {"token": f"token {self.calls}"}
        if self.lifetime_seconds is not None:
            answer["expires_at"] = datetime.now(UTC) + timedelta(seconds=self.lifetime_seconds)
        return answer


def let_pass(provider: RenewingProvider, seconds: float) -> None:
    """As if so much time had gone by since the credentials came."""
    held, gone = provider._held, timedelta(seconds=seconds)
    assert held is not None
    provider._held = msgspec.structs.replace(
        held, expires_at=held.expires_at - gone, renew_at=held.renew_at - gone
    )


def test_a_provider_is_asked_once_while_its_answer_lasts() -> None:
    counted = Counted(lifetime_seconds=3600)
    provider = provider_of(counted, kind="azure")
    answers = [provider() for _ in range(5)]
    assert {answer["token"] for answer in answers} == {"token 1"}
    assert counted.calls == 1
    assert all(
        answer["expires_at"] - datetime.now(UTC) <= timedelta(seconds=limits.CREDENTIAL_LEASE_SECONDS)
        for answer in answers
    )


def test_a_provider_is_asked_again_before_its_answer_ends() -> None:
    counted = Counted(lifetime_seconds=60)
    provider = provider_of(counted, kind="azure")
    assert provider()["token"] == "token 1"
    assert provider()["token"] == "token 1"
    let_pass(provider, 31)
    assert provider()["token"] == "token 2"


def test_what_is_held_serves_until_its_end_where_a_provider_fails_meanwhile() -> None:
    answers = iter([{"token": "t", "expires_at": datetime.now(UTC) + timedelta(seconds=60)}])
    provider = provider_of(lambda: next(answers), kind="azure")
    assert provider()["token"] == "t"
    let_pass(provider, 40)
    assert provider()["token"] == "t"
    let_pass(provider, 25)
    with pytest.raises(ProviderProblem, match="StopIteration"):
        provider()


def test_a_refusal_throws_the_answer_away_once() -> None:
    counted = Counted()
    provider = provider_of(counted, kind="azure")
    seen = provider.renewals
    assert provider()["token"] == "token 1"
    assert provider.renew(seen)
    assert provider()["token"] == "token 2"
    assert provider.renew(seen), "another request that was refused with the old answer"
    assert provider.renewals == seen + 1
    assert not provider.renew(provider.renewals), "refused with the new answer: age was not the reason"
    assert provider()["token"] == "token 2"


def test_requests_that_are_refused_together_ask_the_provider_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted()
    provider = provider_of(counted, kind="azure")
    provider()
    seen, outcomes = provider.renewals, []
    threads = [threading.Thread(target=lambda: outcomes.append(provider.renew(seen))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    provider()
    assert outcomes == [True] * 8
    assert counted.calls == 2
    monkeypatch.setattr(limits, "CREDENTIAL_RENEWAL_SECONDS_MIN", 0.0)
    assert provider.renew(provider.renewals)


def test_a_request_that_begins_during_a_renewal_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CREDENTIAL_LEASE_SECONDS", 1.5)  # longer than a busy machine takes to look
    provider = provider_of(Counted(), kind="azure")
    provider()
    renewing = threading.Thread(target=provider.renew, args=(provider.renewals,))
    renewing.start()
    assert eventually(lambda: provider._renewals == 1)
    during = provider.renewals  # obstore may still have the old answer
    assert during == 0
    renewing.join()
    assert provider.renew(during)
    assert provider.renewals == during + 1


@pytest.mark.parametrize(
    ("kind", "answer", "told"),
    [
        ("azure", "text", {"token": "text"}),
        ("azure", "Bearer text", {"token": "text"}),
        ("azure", {"token": "t", "expires_at": None}, {"token": "t"}),
        ("azure", {"sas_token": "sv=1&sig=x"}, {"sas_token": "sv=1&sig=x"}),
        ("azure", {"access_key": "aHVzaA==", "more": 1}, {"access_key": "aHVzaA=="}),
        (
            "s3",
            {"access_key_id": "a", "secret_access_key": "b"},
            {"access_key_id": "a", "secret_access_key": "b", "token": None},
        ),
        (
            "s3",
            {"access_key_id": "a", "secret_access_key": "b", "token": "c", "expires_at": 4_000_000_000},
            {"access_key_id": "a", "secret_access_key": "b", "token": "c"},
        ),
    ],
)
def test_every_form_of_answer_is_taken(kind: str, answer: Any, told: dict[str, Any]) -> None:
    found = provider_of(lambda: answer, kind=kind)()
    assert found.pop("expires_at").tzinfo is not None
    assert found == told


def test_a_coroutine_is_waited_for() -> None:
    async def ask() -> str:
        await asyncio.sleep(0)
        return "from a loop"

    assert provider_of(ask, kind="azure")()["token"] == "from a loop"

    async def in_a_notebook() -> dict[str, Any]:
        return provider_of(ask, kind="azure")()

    assert asyncio.run(in_a_notebook())["token"] == "from a loop"


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("azure", None),
        ("azure", {"HUSH": "HUSH"}),
        ("azure", {"token": ""}),
        ("azure", {"token": "HUSH\nHUSH"}),
        ("azure", {"token": "HUSH", "expires_at": "HUSH"}),
        ("azure", ["HUSH"]),
        ("s3", "HUSH"),
        ("s3", {"access_key_id": "HUSH"}),
        ("s3", {"access_key_id": "HUSH", "secret_access_key": None}),
    ],
)
def test_an_answer_that_is_no_credential_is_told_and_not_repeated(kind: str, answer: Any) -> None:
    with pytest.raises(ProviderProblem) as told:
        provider_of(lambda: answer, kind=kind)()
    assert "HUSH" not in str(told.value)


def test_what_a_provider_raises_is_told_by_its_type() -> None:
    def ask() -> None:
        raise OSError("HUSH")

    with pytest.raises(ProviderProblem, match="the provider raised OSError") as told:
        provider_of(ask, kind="azure")()
    assert "HUSH" not in str(told.value)
    assert told.value.__cause__ is told.value.__context__ is None


def test_a_credential_of_azure_identity_is_taken() -> None:
    asked: list[str] = []

    def get_token(scope: str) -> SimpleNamespace:
        asked.append(scope)
        return SimpleNamespace(token="jwt", expires_on=int(time.time()) + 600)

    found = provider_of(SimpleNamespace(get_token=get_token), kind="azure")()
    assert (found["token"], asked) == ("jwt", ["https://storage.azure.com/.default"])


def test_a_session_of_boto3_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3  # the tests have it by way of moto

    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    session = boto3.Session(aws_access_key_id="a", aws_secret_access_key="b", aws_session_token="c")
    found = provider_of(session, kind="s3")()
    assert (found["access_key_id"], found["secret_access_key"], found["token"]) == ("a", "b", "c")


def test_a_session_brings_its_region_and_a_provider_its_options() -> None:
    import boto3  # the tests have it by way of moto

    assert options_of(boto3.Session(region_name="eu-west-1"))["region"] == "eu-west-1"
    assert options_of(SimpleNamespace(config={"region": "a", "endpoint": "b"})) == {
        "region": "a",
        "endpoint": "b",
    }
    assert options_of(lambda: "token") == {}


@pytest.mark.parametrize("given", ["a token", 7, {"token": "HUSH"}])
def test_what_cannot_be_asked_is_refused(given: Any) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be asked") as told:
        provider_of(given, kind="azure")
    assert "HUSH" not in str(told.value)


def test_each_provider_has_a_number_of_its_own() -> None:
    one, other = Counted(), Counted()
    assert provider_serial(one) == provider_serial(one)
    assert provider_serial(one) != provider_serial(other)
    assert provider_serial(None) == 0
    unhashable = SimpleNamespace(get_token=None)
    unhashable.__dict__["x"] = []
    assert provider_serial({}) != provider_serial({}), "what cannot be told apart is never the same"


def test_what_is_held_is_not_shown() -> None:
    provider = RenewingProvider(lambda: "HUSH", kind="azure")
    provider()
    assert "HUSH" not in repr(provider)


def test_requests_that_wait_for_one_answer_ask_once_whether_it_comes_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    waits = threading.Semaphore(0)

    def waiting(*answer: Any) -> Any:
        waits.release()
        return awaited(*answer)

    monkeypatch.setattr("lazydelta.storage.providers.awaited", waiting)

    def slow(is_good: bool) -> dict[str, str]:
        calls.append(1)
        assert all(waits.acquire(timeout=60) for _ in range(6))
        if not is_good:
            raise ValueError("HUSHHUSH")
        return {"token": "t"}

    for is_good in (True, False):
        calls.clear()
        provider, outcomes = provider_of(lambda good=is_good: slow(good), kind="azure"), []

        def ask(asked: RenewingProvider, told: list[str]) -> None:
            try:
                told.append(asked()["token"])
            except ProviderProblem as problem:
                told.append(str(problem))

        threads = [threading.Thread(target=ask, args=(provider, outcomes)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes == (["t"] if is_good else ["the provider raised ValueError"]) * 6
        assert len(calls) == 1


def test_while_a_provider_is_asked_nobody_else_waits_for_its_lock() -> None:
    held = threading.Event()
    provider = provider_of(lambda: held.wait(60) and {"token": "t"}, kind="azure")
    asking = threading.Thread(target=provider.prepare)
    asking.start()
    assert provider.renewals == 0
    assert not provider.renew(0), "there is nothing to throw away"
    assert asking.is_alive(), "it is asked still"
    held.set()
    asking.join()
    assert provider()["token"] == "t"


def test_the_lifetime_of_credentials_begins_when_they_come() -> None:
    calls: list[int] = []

    def slow() -> dict[str, Any]:
        calls.append(1)
        time.sleep(0.3)
        return {"token": "t", "expires_at": datetime.now(UTC) + timedelta(seconds=60)}

    provider = provider_of(slow, kind="azure")
    for _ in range(3):
        provider()
    assert len(calls) == 1
    held = provider._held
    assert held is not None
    assert held.expires_at - held.renew_at <= timedelta(seconds=30), "half of what is left, not of what was"


def test_credentials_that_have_ended_already_are_not_asked_for_twice_by_one_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CREDENTIAL_LEASE_SECONDS", 60.0)
    counted = Counted(lifetime_seconds=-60)
    provider = provider_of(counted, kind="azure")
    provider.prepare()
    assert provider()["token"] == "token 1"
    let_pass(provider, 61)
    assert provider()["token"] == "token 2"


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_passes_as_it_is(ending: type[BaseException]) -> None:
    def ask() -> None:
        raise ending

    with pytest.raises(ending):
        provider_of(ask, kind="azure").prepare()


def test_a_provider_that_never_answers_does_not_keep_the_program_from_ending() -> None:
    code = """
        import time, lazydelta as ld
        options = {"delta.scan.timeout_seconds": "0.5", "region": "us-east-1"}
        try:
            ld.open("s3://bucket/t", storage_options=options, credential_provider=lambda: time.sleep(600))
        except ld.errors.StorageError as error:
            print(error.what)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("the table was not open within 0.5 s")
    assert done.stderr == ""


KEYS = {"access_key_id": "a", "secret_access_key": "b"}


@pytest.mark.parametrize("token", [5, b"HUSH", "HUSH\nHUSH", "HÜSH"])
@pytest.mark.parametrize("name", ["token", "session_token"])
def test_a_session_token_that_cannot_be_sent_is_told(name: str, token: Any) -> None:
    with pytest.raises(ProviderProblem, match=r"token is not text|token has a line break") as told:
        provider_of(lambda: {**KEYS, name: token}, kind="s3")()
    assert "HUSH" not in str(told.value)


@pytest.mark.parametrize("name", ["token", "session_token"])
def test_a_session_token_is_taken_under_both_of_its_names(name: str) -> None:
    assert provider_of(lambda: {**KEYS, name: "s"}, kind="s3")()["token"] == "s"
    assert provider_of(lambda: {**KEYS, name: None}, kind="s3")()["token"] is None


@pytest.mark.parametrize("end", [1.9e12, float("nan"), float("inf"), -1e20])
def test_an_end_that_is_no_time_is_told_as_such(end: float) -> None:
    with pytest.raises(ProviderProblem, match="expires_at is no time in seconds"):
        provider_of(lambda: {"token": "t", "expires_at": end}, kind="azure")()
