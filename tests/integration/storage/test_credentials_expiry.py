"""Credentials that end while a table is read: asked for anew where that is possible, named where not."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import AccessDeniedError
from tests.support.checked_s3 import CheckedS3
from tests.support.proxy import Fault, HttpProxy, Request, always
from tests.support.secure_stores import ACCOUNT, SecureAzurite
from tests.support.servers import AZURITE_ACCOUNT, AZURITE_KEY, CONTAINER, TableServer
from tests.support.signing import bearer_token, container_signature

FILES = 12
IDS = list(range(FILES * 10))


class Provider:
    """Gives out what `make` makes, and counts."""

    def __init__(self, make: Any, *, tells_end: Callable[[int], float] | None = None) -> None:
        self.make = make
        self.tells_end = tells_end
        self.calls = 0

    def __call__(self) -> dict[str, Any]:
        self.calls += 1
        answer = dict(self.make(self.calls))
        if self.tells_end is not None:
            answer["expires_at"] = datetime.now(UTC) + timedelta(seconds=self.tells_end(self.calls))
        return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of small files, so that its rows are read file by file."""
    path = tmp_path_factory.mktemp("expiry") / "t"
    for number in range(FILES):
        rows = pa.table({"id": IDS[number * 10 : number * 10 + 10]})
        deltalake.write_deltalake(str(path), rows, mode="append")
    return path


@pytest.fixture(scope="module")
def table_url(secure_azurite: SecureAzurite, folder: Path) -> str:
    server = secure_azurite.server()
    url = server.url("expiry")
    server.upload(folder, url)
    return url


def read_with_a_pause(table: ld.Table, pause_seconds: float) -> list[int]:
    """Every row, with a pause after the first batch; nothing is read ahead meanwhile."""
    found: list[int] = []
    for batch in table.scan().batches(prefetch_size=0):
        if not found:
            time.sleep(pause_seconds)
        found += batch.column("id").to_pylist()
    return sorted(found)


def test_a_provider_that_tells_the_end_is_asked_before_it(
    secure_azurite: SecureAzurite, table_url: str
) -> None:
    lifetimes = {1: 0.4}  # seconds that the first answer tells; the store would take it for longer
    provider = Provider(lambda _: {"token": bearer_token()}, tells_end=lambda call: lifetimes.get(call, 3600))
    table = ld.open(table_url, storage_options=secure_azurite.options(), credential_provider=provider)
    assert read_with_a_pause(table, 0.5) == IDS
    assert provider.calls == 2, "once the first was about to end, and not at every request"


def test_a_provider_that_does_not_tell_the_end_is_asked_after_a_refusal(
    secure_azurite: SecureAzurite, table_url: str
) -> None:
    key = secure_azurite.keys[ACCOUNT]
    lifetimes = {1: 1.5}  # seconds; the later ones last
    provider = Provider(
        lambda call: {
            "sas_token": container_signature(ACCOUNT, key, CONTAINER, seconds=lifetimes.get(call, 3600))
        }
    )
    table = ld.open(table_url, storage_options=secure_azurite.options(), credential_provider=provider)
    assert read_with_a_pause(table, 2.0) == IDS
    assert provider.calls == 2


def test_a_provider_whose_new_credentials_are_refused_too_ends_in_an_error(
    secure_azurite: SecureAzurite, table_url: str
) -> None:
    provider = Provider(lambda _: {"token": bearer_token(seconds=-5)})
    with pytest.raises(AccessDeniedError, match="have expired") as told:
        ld.open(table_url, storage_options=secure_azurite.options(), credential_provider=provider)
    assert provider.calls == 2, "once, and once more"
    assert "credential_provider" in told.value.fix


def test_a_signature_that_is_refused_in_the_middle_is_named(azurite: TableServer, folder: Path) -> None:
    url = azurite.url("expiry")
    azurite.upload(folder, url)
    signature = container_signature(AZURITE_ACCOUNT, AZURITE_KEY, CONTAINER)
    with HttpProxy(azurite.port) as proxy:
        options = {name: value for name, value in azurite.through(proxy).items() if name != "account_key"}
        batches = ld.open(f"{url}?{signature}", storage_options=options).scan().batches(prefetch_size=0)
        assert next(batches).num_rows
        proxy.plan = always(Fault(kind="status", status=403))
        with pytest.raises(AccessDeniedError) as told:
            list(batches)
    assert "sig=" not in str(told.value)


@pytest.mark.long("waits until a signature has ended")
def test_a_signature_that_ends_in_the_middle_is_named(secure_azurite: SecureAzurite, table_url: str) -> None:
    signature = container_signature(ACCOUNT, secure_azurite.keys[ACCOUNT], CONTAINER, seconds=15)
    table = ld.open(f"{table_url}?{signature}", storage_options=secure_azurite.options())
    with pytest.raises(AccessDeniedError) as told:
        read_with_a_pause(table, 16.0)
    assert "sig=" not in str(told.value)


def test_keys_of_s3_that_are_refused_are_asked_for_anew(checked_s3: CheckedS3, folder: Path) -> None:
    url = checked_s3.server.url("expiry")
    checked_s3.server.upload(folder, url)
    good = {**checked_s3.session, "token": checked_s3.session["session_token"]}
    bad = {**good, "secret_access_key": "of another session"}
    provider = Provider(lambda call: bad if call == 1 else good)
    table = ld.open(url, storage_options=checked_s3.options(), credential_provider=provider)
    assert sorted(table.to_arrow().column("id").to_pylist()) == IDS
    assert provider.calls == 2


@pytest.mark.parametrize("status", [401, 403])
def test_many_requests_that_are_refused_at_once_ask_the_provider_once(
    azurite: TableServer, folder: Path, status: int
) -> None:
    url = azurite.url("expiry")
    azurite.upload(folder, url)
    provider = Provider(lambda _: {"access_key": AZURITE_KEY})
    refused: list[Request] = []

    def refuse_data_for_a_moment(request: Request) -> Fault | None:
        if ".parquet" not in request.path or provider.calls > 1 or AZURITE_ACCOUNT not in request.path:
            return None
        refused.append(request)
        return Fault(kind="status", status=status)

    with HttpProxy(azurite.port) as proxy:
        options = {name: value for name, value in azurite.through(proxy).items() if name != "account_key"}
        table = ld.open(url, storage_options=options, credential_provider=provider)
        proxy.plan = refuse_data_for_a_moment
        assert sorted(table.to_arrow().column("id").to_pylist()) == IDS
    assert refused
    assert provider.calls == 2
