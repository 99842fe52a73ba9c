"""The native library panics: an error of ours, and nothing is left held."""

from __future__ import annotations

from collections.abc import Callable

import obstore
import pytest
from obstore.exceptions import GenericError
from obstore.store import AzureStore

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.settings import Settings
from lazydelta.storage import Deadline, Storage, open_storage


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    """A storage whose every call of the native library ends in a real panic of it."""
    with monkeypatch.context() as patch:
        patch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "secretname")
        client = AzureStore("container")  # its repr panics: the account came from the environment
    for name in ("get", "list", "put", "head", "delete", "sign"):
        monkeypatch.setattr(obstore, name, lambda *_, **__: repr(client))
    options = {"account_name": "someone", "account_key": "c29tZWtleQ=="}
    return open_storage("az://container/table", Settings(storage_options=options, request_attempts_max=2))


CALLS: dict[str, Callable[[Storage], object]] = {
    "get": lambda storage: storage.get("x"),
    "range": lambda storage: storage.get_range("x", 0, 10),
    "ranges": lambda storage: storage.get_ranges("x", [(0, 10), (10_000_000, 10)]),
    "stream": lambda storage: list(storage.get_stream("x", 10)),
    "list": lambda storage: list(storage.list_from("_delta_log")),
    "put": lambda storage: storage.put_if_absent("x", b"1"),
    "delete": lambda storage: storage.delete("x"),
}


def test_the_library_really_panics(storage: Storage) -> None:
    with pytest.raises(BaseException, match="Account name") as caught:
        obstore.get(None, "x")  # type: ignore[arg-type]  # replaced above
    assert not isinstance(caught.value, Exception)


@pytest.mark.parametrize("seconds", [0.0, 600.0], ids=["by this thread", "by another"])
@pytest.mark.parametrize("call", CALLS)
def test_a_panic_is_a_storage_error(storage: Storage, call: str, seconds: float) -> None:
    scoped = storage.scoped(Deadline.after(seconds))
    for _ in range(limits.CONNECTIONS_MAX + 1):  # no permit is lost
        with pytest.raises(StorageError, match="panicked") as caught:
            CALLS[call](scoped)
        assert "secretname" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_panic_that_an_event_loop_waits_for_is_one_too() -> None:
    options = {"access_key_id": "a", "secret_access_key": "b", "region": "eu-west-1", "allow_http": "true"}
    options |= {"endpoint": "http://b.127.0.0.1:9", "virtual_hosted_style_request": "true"}
    storage = open_storage("s3://b/t", Settings(storage_options=options))
    with pytest.raises(StorageError, match="panicked"):
        list(storage.list_from("x"))


def test_a_store_that_throttles_is_not_asked_for_how_long_where_signing_panics(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throttled(*_: object, **__: object) -> None:
        raise GenericError("Server returned non-2xx status code: 503 Service Unavailable: ServerBusy")

    monkeypatch.setattr(obstore, "get", throttled)
    with pytest.raises(StorageError, match="gave up after 2 attempts"):
        storage.get("x")
    assert storage.counters.snapshot().requests_by_kind.get("retry_after", 0) == 0
