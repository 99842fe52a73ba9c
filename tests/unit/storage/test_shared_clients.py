"""Clients of stores: shared by those who read alike, and by nobody else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lazydelta.settings import Settings
from lazydelta.storage import open_storage
from lazydelta.storage import shared_clients as clients
from lazydelta.storage.address import parse_address

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
    for number in range(clients._CLIENTS_MAX - 1):
        client_of(f"abfss://lake{number}@acct/one")
    assert client_of("abfss://lake@acct/one") is first
    for number in range(clients._CLIENTS_MAX):
        client_of(f"abfss://lake{number}@acct/one")
    assert len(clients._clients) == clients._CLIENTS_MAX
    assert client_of("abfss://lake@acct/one") is not first


def test_what_is_held_does_not_tell_the_secret() -> None:
    clients.shared_client(parse_address("abfss://lake@acct/one"), MINE, {"AZURE_STORAGE_TOKEN": "HUSHHUSH"})
    shown = repr(list(clients._clients))
    assert "aHVzaA" not in shown
    assert "HUSH" not in shown
