"""Credentials that a store refuses, and secrets that stay secret."""

from __future__ import annotations

import base64
import traceback

import pytest

from lazydelta.errors import AccessDeniedError, StorageError
from lazydelta.settings import Settings
from lazydelta.storage import ObjectNotFoundError, Storage, open_storage
from tests.support.proxy import Fault, HttpProxy, always
from tests.support.servers import AZURITE_ACCOUNT, TableServer

WRONG_KEY = base64.b64encode(b"HUSH" * 16).decode()


def refused(storage: Storage) -> list[AccessDeniedError]:
    """What reading, streaming, listing and writing raise."""
    calls = [
        lambda: storage.get("x"),
        lambda: storage.get_range("x", 0, 1),
        lambda: list(storage.get_stream("x", 1)),
        lambda: list(storage.list_from("_delta_log")),
        lambda: storage.put_if_absent("y", b""),
    ]
    errors = []
    for call in calls:
        with pytest.raises(AccessDeniedError) as caught:
            call()
        errors.append(caught.value)
    return errors


def test_a_wrong_azure_key_is_refused_at_once(azurite: TableServer) -> None:
    options = {**azurite.storage_options, "account_key": WRONG_KEY}
    storage = open_storage(azurite.url(), Settings(storage_options=options))
    for error in refused(storage):
        assert "account_key" in error.fix
        assert "sas_token" in error.fix
        assert error.where.startswith("abfss://")
        assert WRONG_KEY not in "".join(traceback.format_exception(error))
    assert storage.counters.snapshot().retries == 0
    assert WRONG_KEY not in repr(storage) + storage.root


def test_a_wrong_signature_is_refused_and_not_repeated(azurite: TableServer) -> None:
    options = {key: value for key, value in azurite.storage_options.items() if key != "account_key"}
    options["sas_token"] = "sv=2021-08-06&ss=b&srt=co&sp=rl&se=2020-01-01T00:00:00Z&sig=HUSHHUSH"
    for error in refused(open_storage(azurite.url(), Settings(storage_options=options))):
        assert "HUSH" not in "".join(traceback.format_exception(error))


def test_an_unknown_s3_key_is_refused_at_once(s3_server_that_checks_keys: TableServer) -> None:
    options = {**s3_server_that_checks_keys.storage_options, "secret_access_key": "HUSHHUSH"}
    storage = open_storage(s3_server_that_checks_keys.url(), Settings(storage_options=options))
    for error in refused(storage):
        assert "secret_access_key" in error.fix
        assert error.where.startswith("s3://tables/")
        assert "HUSH" not in "".join(traceback.format_exception(error))
    assert storage.counters.snapshot().retries == 0


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_without_an_explanation_is_a_refusal(
    remote_store: TableServer, remote_proxy: HttpProxy, status: int
) -> None:
    remote_proxy.plan = always(Fault(kind="status", status=status))
    storage = open_storage(remote_store.url(), Settings(storage_options=remote_store.through(remote_proxy)))
    refused(storage)
    assert len(remote_proxy.requests) == 5


def test_a_bucket_that_does_not_exist_is_named_as_such(remote_store: TableServer) -> None:
    url = remote_store.url().replace("tables", "no-such-container")
    storage = remote_store.open(url)
    for call in (lambda: storage.get("x"), lambda: list(storage.list_from("_delta_log"))):
        with pytest.raises(ObjectNotFoundError, match="bucket or container does not exist"):
            call()


def test_plain_http_that_was_not_allowed_says_so(azurite: TableServer) -> None:
    options = {**azurite.storage_options, "allow_http": "false"}
    storage = open_storage(f"abfss://tables@{AZURITE_ACCOUNT}/t", Settings(storage_options=options))
    with pytest.raises(StorageError) as caught:
        storage.get("x")
    assert "allow_http" in caught.value.fix
    assert storage.counters.snapshot().retries == 0
