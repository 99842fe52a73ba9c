"""Clients of stores: shared by those who read alike, and by nobody else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lazydelta import limits
from lazydelta.settings import LocationOptions, Settings
from lazydelta.storage import access_digest, open_storage

MINE = Settings(storage_options={"account_key": "aHVzaA=="})


def client_of(url: str, settings: Settings = MINE) -> Any:
    return open_storage(url, settings)._link.store  # type: ignore[attr-defined]


def test_tables_of_one_container_share_a_client() -> None:
    assert client_of("abfss://lake@acct/one") is client_of("abfss://lake@acct/two")


@pytest.mark.parametrize("url", ["abfss://other@acct/one", "abfss://lake@other/one", "s3://lake/one"])
def test_another_container_or_account_has_another_client(url: str) -> None:
    options = (
        {"access_key_id": "a", "secret_access_key": "b"}
        if url.startswith("s3")
        else {"account_key": "aHVzaA=="}
    )
    assert client_of(url, Settings(storage_options=options)) is not client_of("abfss://lake@acct/one")


@pytest.mark.parametrize(
    "other",
    [
        Settings(storage_options={"account_key": "aHVzaGh1c2g="}),
        Settings(storage_options={"account_key": "aHVzaA==", "allow_http": "true"}),
        msgspec.structs.replace(MINE, request_timeout_seconds=7.0),
        msgspec.structs.replace(MINE, request_attempts_max=2),
    ],
)
def test_other_options_or_timeouts_have_another_client(other: Settings) -> None:
    assert client_of("abfss://lake@acct/one", other) is not client_of("abfss://lake@acct/one")


def test_a_variable_that_a_client_may_look_at_makes_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    before = client_of("abfss://lake@acct/one")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=x")
    assert client_of("abfss://lake@acct/one") is not before
    monkeypatch.delenv("AZURE_STORAGE_SAS_TOKEN")
    assert client_of("abfss://lake@acct/one") is before


def test_few_clients_are_held_and_the_latest_used_stay() -> None:
    first = client_of("abfss://lake@acct/one")
    for number in range(limits.CLIENTS_KEPT_MAX - 1):
        client_of(f"abfss://lake{number}@acct/one")
    assert client_of("abfss://lake@acct/one") is first
    for number in range(limits.CLIENTS_KEPT_MAX):
        client_of(f"abfss://lake{number}@acct/one")
    assert client_of("abfss://lake@acct/one") is not first


def test_two_signatures_in_two_urls_share_nothing() -> None:
    one = client_of("abfss://lake@acct/one?sv=1&sig=x", Settings())
    assert client_of("abfss://lake@acct/two?sv=1&sig=x", Settings()) is one
    assert client_of("abfss://lake@acct/one?sv=1&sig=y", Settings()) is not one
    assert (
        client_of("abfss://lake@acct/one", Settings(storage_options={"sas_token": "sv=1&sig=y"})) is not one
    )


def test_tables_of_one_provider_share_a_client_and_others_do_not() -> None:
    def provider() -> str:
        return "token"

    mine = Settings(credential_provider=provider)
    assert client_of("abfss://lake@acct/one", mine) is client_of("abfss://lake@acct/two", mine)
    other = Settings(credential_provider=lambda: "token")
    assert client_of("abfss://lake@acct/one", mine) is not client_of("abfss://lake@acct/one", other)


def test_who_reads_is_told_apart_by_everything_that_decides_it() -> None:
    settings = [
        Settings(),
        Settings(storage_options={"sas_token": "a"}),
        Settings(storage_options={"sas_token": "b"}),
        Settings(credential_provider=print),
        Settings(allowed_roots="/x"),
        Settings(locations={"s3://b": LocationOptions(options={"region": "a"})}),
        Settings(locations={"s3://b": LocationOptions(options={"region": "b"})}),
        Settings(locations={"s3://b": LocationOptions(credential_provider=print)}),
    ]
    digests = [access_digest(each, {}) for each in settings]
    digests += [access_digest(Settings(), {name: "x"}) for name in ("AWS_PROFILE", "AZURE_CLIENT_ID")]
    assert len(set(digests)) == len(digests)
    assert access_digest(settings[-1], {}) == digests[7]
