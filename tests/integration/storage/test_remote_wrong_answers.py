"""Answers of a real store that were altered on their way: the right bytes or an error, never others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from lazydelta.errors import AccessDeniedError, StorageError
from lazydelta.settings import Settings, build_settings
from lazydelta.storage import ObjectNotFoundError, Storage, open_storage
from tests.support.odd_store import OddStore, listing_page
from tests.support.proxy import Fault, HttpProxy, _unchunked, _with_length, at
from tests.support.servers import TableServer

NAME = "_delta_log/00000000000000000007.json"
BODY = b'{"commitInfo":{}}\n' * 40
CHUNK_BYTES = 100

Answer = tuple[bytes, bytes]  # head, body
NO_SUCH_RANGE: Answer = (b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n", b"")


class AlteringProxy(HttpProxy):
    """`alter` gets the number of an answer, from 1 on, and the answer; what it returns is sent."""

    alter: Callable[[int, Answer], Answer] = staticmethod(lambda _number, answer: answer)
    answers = 0

    def _ask(self, request: bytes, method: str) -> Answer:
        answer = super()._ask(request, method)
        self.answers += 1
        return self.alter(self.answers, answer)


@pytest.fixture
def altering(remote_store: TableServer) -> Iterator[AlteringProxy]:
    with AlteringProxy(remote_store.port) as proxy:
        yield proxy


def through(altering: AlteringProxy, remote_store: TableServer, body: bytes = BODY) -> Storage:
    url = remote_store.url()
    remote_store.put_all(url, {NAME: body})
    options = remote_store.through(altering)
    return open_storage(url, Settings(storage_options=options, backoff_first_seconds=0.01))


def whole(storage: Storage) -> bytes:
    return b"".join(storage.get_stream(NAME, CHUNK_BYTES))


def with_more(_number: int, answer: Answer) -> Answer:
    head, body = answer
    longer = _unchunked(head, body) + b"\n{}"
    return _with_length(head, len(longer)), longer


@pytest.mark.parametrize(
    "read", [whole, lambda storage: storage.get(NAME), lambda storage: storage.get_range(NAME, 8, 90)]
)
def test_a_body_that_is_longer_than_it_says_is_an_error(
    remote_store: TableServer, altering: AlteringProxy, read: Callable[[Storage], bytes]
) -> None:
    storage = through(altering, remote_store)
    altering.alter = with_more
    with pytest.raises(StorageError, match=r"the store sent \d+ of \d+ bytes"):
        read(storage)


def test_a_body_that_is_longer_once_is_asked_for_again(
    remote_store: TableServer, altering: AlteringProxy
) -> None:
    storage = through(altering, remote_store)
    altering.alter = lambda number, answer: with_more(number, answer) if number == 1 else answer
    assert whole(storage) == BODY
    assert altering.answers == 2


@pytest.mark.parametrize("read", [whole, lambda storage: storage.get(NAME)])
def test_an_object_is_empty_only_where_the_store_sends_it_so(
    remote_store: TableServer, altering: AlteringProxy, read: Callable[[Storage], bytes]
) -> None:
    altering.alter = lambda number, answer: NO_SUCH_RANGE if number == 1 else answer
    assert read(through(altering, remote_store)) == BODY
    altering.answers = 0
    assert read(through(altering, remote_store, b"")) == b""
    altering.alter = lambda _number, _answer: NO_SUCH_RANGE
    with pytest.raises(StorageError, match="shorter than the bytes asked for"):
        read(through(altering, remote_store))


@pytest.mark.parametrize(
    "folder",
    [
        "TokenRequests",
        "security-credentials",
        "get-access-token",
        "AzureCli+x",
        "a b/AzureCli",
        "NotPartial",
        "NoSuchBucket",
        "BadScheme",
        "InvalidRangeRequest",
        "kind: Redirect",
        "169.254.169.254",
        "ProviderProblem: x",
    ],
)
def test_what_a_folder_is_called_does_not_say_what_failed(
    remote_store: TableServer, remote_proxy: HttpProxy, folder: str
) -> None:
    url = f"{remote_store.url()}/{quote(folder)}"
    remote_store.put_all(url, {NAME: BODY})
    settings = Settings(storage_options=remote_store.through(remote_proxy), backoff_first_seconds=0.01)
    storage = open_storage(url, settings)
    failing = at({1: Fault(kind="status", status=500)})
    for read in (
        lambda: storage.get(NAME),
        lambda: whole(storage),
        lambda: storage.get_range(NAME, 0, len(BODY)),
    ):
        remote_proxy.reset()
        remote_proxy.plan = failing
        assert read() == BODY
    remote_proxy.reset()
    remote_proxy.plan = failing
    assert [found.name for found in storage.list_from("_delta_log")] == [NAME]
    with pytest.raises(ObjectNotFoundError, match="there is no such object"):
        storage.get("absent")


def test_a_name_in_a_listing_that_cannot_be_asked_for_is_told() -> None:
    with OddStore(lambda _path: (200, listing_page(["t/_delta_log//x"]))) as store:
        storage = open_storage("s3://lake/t", build_settings(store.s3_options(), environment={}))
        with pytest.raises(StorageError, match="an object below here has a name that cannot be asked for"):
            list(storage.list_from("_delta_log"))


def test_a_clock_that_is_wrong_is_told() -> None:
    with OddStore(lambda _path: (403, b"<Error><Code>RequestTimeTooSkewed</Code></Error>")) as store:
        storage = open_storage("s3://lake/t", build_settings(store.s3_options(), environment={}))
        with pytest.raises(AccessDeniedError, match="the clock of this machine"):
            storage.get(NAME)


def test_an_answer_that_makes_no_sense_is_not_told_as_a_broken_connection(
    remote_store: TableServer, altering: AlteringProxy
) -> None:
    def without_the_length(_number: int, answer: Answer) -> Answer:
        head, body = answer
        return head.replace(f"/{len(BODY)}".encode(), b"/*"), body

    storage = through(altering, remote_store)
    altering.alter = without_the_length
    with pytest.raises(StorageError, match="its answer cannot be read"):
        storage.get(NAME)
