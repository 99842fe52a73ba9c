"""Stores that answer as no store should: listings that would not end, objects without an e-tag."""

from __future__ import annotations

import random
from urllib.parse import parse_qs, urlsplit

import pytest

from lazydelta.errors import StorageError
from lazydelta.settings import build_settings
from lazydelta.storage import Deadline, Storage, open_storage
from tests.support.odd_store import OddStore, listing_page


def opened(store: OddStore) -> Storage:
    return open_storage("s3://lake/t", build_settings(store.s3_options(), environment={}))


def page_of(path: str) -> int:
    """Which page of a listing is requested."""
    return int(parse_qs(urlsplit(path).query).get("continuation-token", ["0"])[0])


PAGE = 1000  # keys that the listing is read by


@pytest.mark.parametrize(
    ("before", "cycle"), [(0, 1), (0, PAGE), (2 * PAGE, PAGE), (PAGE, 1500), (500, 3 * PAGE)]
)
def test_a_listing_that_comes_again_is_noticed_before_it_is_long(before: int, cycle: int) -> None:
    def answer(path: str) -> tuple[int, bytes]:
        at = page_of(path) * PAGE
        numbers = [n if n < before else before + (n - before) % cycle for n in range(at, at + PAGE)]
        keys = [f"t/_delta_log/{number:06}" for number in numbers]
        return 200, listing_page(keys, continues_at=str(page_of(path) + 1))

    with OddStore(answer) as store:
        with pytest.raises(StorageError, match="begins again"):
            list(opened(store).list_from("_delta_log"))
        assert store.requests <= 3 * ((before + cycle) // PAGE + 1)


@pytest.mark.parametrize("seed", [None, 1])
def test_a_listing_in_any_order_is_read_to_its_end(seed: int | None) -> None:
    keys = [f"{number:06}" for number in reversed(range(3500))]
    if seed is not None:
        random.Random(seed).shuffle(keys)

    def answer(path: str) -> tuple[int, bytes]:
        at = page_of(path) * PAGE
        more = str(page_of(path) + 1) if at + PAGE < len(keys) else None
        return 200, listing_page([f"t/_delta_log/{key}" for key in keys[at : at + PAGE]], continues_at=more)

    with OddStore(answer) as store:
        found = [one.name for one in opened(store).list_from("_delta_log")]
    assert found == [f"_delta_log/{key}" for key in keys]


def test_a_store_without_e_tags_is_believed() -> None:
    with OddStore(lambda _path: (206, b"0123456789")) as store:
        store.headers = {"Content-Range": "bytes 0-9/10", "Last-Modified": "Sun, 08 Feb 2026 12:00:00 GMT"}
        scan = opened(store).scoped(Deadline())
        for etag in ('"one"', None, '"one"', None):
            store.headers.pop("ETag", None)
            store.headers |= {} if etag is None else {"ETag": etag}
            assert scan.get_range("x", 0, 10) == b"0123456789"
        store.headers["ETag"] = '"two"'
        with pytest.raises(StorageError, match="was replaced"):
            scan.get_range("x", 0, 10)
