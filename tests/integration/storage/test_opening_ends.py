"""Opening a table ends: whatever a store lists, and however long a credential provider takes."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.errors import AccessDeniedError, StorageError, TableNotFoundError
from tests.support.odd_store import NO_OBJECT, Answer, OddStore, is_listing, listing_page
from tests.support.settling import settled

URL = "s3://lake/t"
LOG = [f"t/_delta_log/{version:020}.json" for version in range(9)]
WEB_PAGE = b"<!DOCTYPE html><html><body>Sign in to the network HUSHHUSH</body></html>"


def listed(pages: Callable[[], bytes]) -> Answer:
    """A store without objects that answers listings by these pages."""
    return lambda path: (200, pages()) if is_listing(path) else NO_OBJECT


def test_pages_that_are_empty_for_ever_are_given_up_and_asked_for_no_more() -> None:
    def page() -> bytes:
        time.sleep(0.01)
        return listing_page([], continues_at="x")

    with OddStore(listed(page)) as store:
        options = store.s3_options(**{"delta.request.timeout_seconds": "2"})
        with pytest.raises(StorageError, match=r"did not come within 2 s") as told:
            ld.open(URL, storage_options=options)
        assert "delta.request.timeout_seconds" in told.value.fix
        assert settled(lambda: store.requests) > 0, "nothing goes on in the background"


@pytest.mark.parametrize("keys", [LOG, [f"t/_delta_log/{number:020}.json" for number in range(1000)]])
def test_a_listing_that_begins_again_is_an_error(keys: list[str]) -> None:
    with OddStore(listed(lambda: listing_page(keys, continues_at="x"))) as store:
        with pytest.raises(StorageError, match="begins again"):
            ld.open(URL, storage_options=store.s3_options())
        assert store.requests < 200


def test_opening_obeys_the_timeout_of_a_scan() -> None:
    pages = itertools.count()

    def page() -> bytes:
        first = next(pages) * 1000
        keys = [f"t/_delta_log/{version:020}.json" for version in range(first, first + 1000)]
        return listing_page(keys, continues_at="x")

    with OddStore(listed(page)) as store:
        options = store.s3_options(**{"delta.scan.timeout_seconds": "1"})
        with pytest.raises(StorageError, match="the table was not open within 1 s") as told:
            ld.open(URL, storage_options=options)
        assert "delta.scan.timeout_seconds" in told.value.fix


@pytest.mark.parametrize("timeout", ["0", "9"])
def test_a_listing_is_read_where_an_event_loop_runs(timeout: str) -> None:
    async def opening(options: dict[str, str]) -> None:
        with pytest.raises(StorageError, match="begins again"):
            ld.open(URL, storage_options=options)

    with OddStore(listed(lambda: listing_page(LOG, continues_at="x"))) as store:
        asyncio.run(opening(store.s3_options(**{"delta.scan.timeout_seconds": timeout})))


class Provider:
    """Counts how often it is asked, by which threads."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        return self.answer()


EMPTY = listed(lambda: b"<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>")


def test_a_provider_that_takes_too_long_does_not_hold_up_the_caller() -> None:
    held = threading.Event()
    provider = Provider(lambda: held.wait() and {"token": "t"})
    with OddStore(EMPTY) as store:
        options = store.azure_options(**{"delta.scan.timeout_seconds": "2"})
        try:
            with pytest.raises(StorageError, match=r"the table was not open within 2 s"):
                ld.open("abfss://c@acct/t", storage_options=options, credential_provider=provider)
        finally:
            held.set()
        assert provider.asked == 1


def test_a_provider_that_is_slow_is_asked_once() -> None:
    def slow() -> dict[str, Any]:
        time.sleep(0.3)
        return {"token": "t", "expires_at": time.time() + 60}

    provider = Provider(slow)
    with OddStore(EMPTY) as store:
        with pytest.raises(TableNotFoundError):
            ld.open("abfss://c@acct/t", storage_options=store.azure_options(), credential_provider=provider)
        assert (provider.asked, store.requests > 0) == (1, True)


def test_a_provider_that_fails_is_asked_once() -> None:
    provider = Provider(lambda: 1 / 0)
    with OddStore(EMPTY) as store:
        with pytest.raises(AccessDeniedError, match="the provider raised ZeroDivisionError"):
            ld.open("abfss://c@acct/t", storage_options=store.azure_options(), credential_provider=provider)
        assert (provider.asked, store.requests) == (1, 0)


@pytest.mark.parametrize("timeout", ["0", "9"])
@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_passes_through_a_provider(ending: type[BaseException], timeout: str) -> None:
    def answer() -> None:
        raise ending

    with OddStore(EMPTY) as store:
        options = store.azure_options(**{"delta.scan.timeout_seconds": timeout})
        with pytest.raises(ending):
            ld.open("abfss://c@acct/t", storage_options=options, credential_provider=answer)


@pytest.mark.parametrize("status", [200, 403, 404, 407])
def test_a_web_page_is_not_taken_for_a_store(status: int) -> None:
    with OddStore(lambda _: (status, WEB_PAGE)) as store:
        with pytest.raises(StorageError, match="what answers is not a store") as told:
            ld.open(URL, storage_options=store.s3_options())
        assert "HUSH" not in str(told.value)
        assert "proxy" in told.value.fix


def test_a_web_page_with_all_that_an_object_has_is_not_taken_for_an_empty_store() -> None:
    """As from a server that sends its front page for every address, in parts if asked."""
    with OddStore(lambda path: (200 if is_listing(path) else 206, WEB_PAGE)) as store:
        part = f"bytes 0-{len(WEB_PAGE) - 1}/{len(WEB_PAGE)}"
        store.headers = {
            "ETag": '"e"',
            "Last-Modified": "Mon, 16 Feb 2026 08:15:52 GMT",
            "Content-Range": part,
        }
        for url, options in ((URL, store.s3_options()), ("abfss://c@acct/t", store.azure_options(token="t"))):
            with pytest.raises(StorageError, match=r"what answers is not a store \(a web page\)"):
                ld.open(url, storage_options=options)
        assert store.requests == 2, "no other attempt would help"


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_without_an_address_is_told_as_another_region(status: int) -> None:
    with OddStore(lambda _: (status, b"<Error><Code>PermanentRedirect</Code></Error>")) as store:
        with pytest.raises(StorageError, match="kept elsewhere") as told:
            ld.open(URL, storage_options=store.s3_options())
        assert "region" in told.value.fix
        with pytest.raises(StorageError, match="kept elsewhere") as told:
            ld.open("abfss://c@acct/t", storage_options=store.azure_options(token="t"))
        assert "account" in told.value.fix
        assert store.requests == 2


def test_redirects_without_an_end_are_told() -> None:
    with OddStore(lambda _: (302, b"")) as store:
        store.headers = {"Location": "/again"}
        with pytest.raises(StorageError, match="redirects without an end"):
            ld.open(URL, storage_options=store.s3_options())
        assert store.requests < 20


def test_a_web_page_of_a_gateway_that_is_overloaded_is_tried_again() -> None:
    with OddStore(lambda _: (502, WEB_PAGE)) as store:
        with pytest.raises(StorageError, match=r"HTTP 502\); gave up after 2 attempts"):
            ld.open(URL, storage_options=store.s3_options(**{"delta.request.attempts_max": "2"}))
        assert store.requests == 2


def test_a_signature_that_has_ended_is_named_as_the_reason() -> None:
    refusal = b"<Error><Code>AuthorizationFailure</Code><Message>no</Message></Error>"
    with OddStore(lambda _: (403, refusal)) as store:
        signature = "sv=2021-08-06&se=2026-02-08T12%3A30%3A00Z&sp=rl&sig=HUSHHUSH%3D"
        with pytest.raises(AccessDeniedError, match="ended on 2026-02-08 12:30:00 UTC") as told:
            ld.open("abfss://c@acct/t", storage_options=store.azure_options(sas_token=signature))
        assert "credential_provider" in told.value.fix
        later = signature.replace("2026", "2999")
        with pytest.raises(AccessDeniedError, match="the store refused the credentials"):
            ld.open("abfss://c@acct/t", storage_options=store.azure_options(sas_token=later))
