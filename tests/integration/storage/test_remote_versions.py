"""Objects that are replaced between two reads of one scan: noticed on every store, without more requests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest

from lazydelta.storage import Deadline, ObjectReplacedError, RangedFile, Storage
from tests.support.servers import TableServer

BODY = os.urandom(1_000_000)
OTHER = os.urandom(1_000_000)
READS: dict[str, Callable[[Storage], object]] = {
    "range": lambda storage: storage.get_range("f", 400_000, 10),
    "ranges": lambda storage: storage.get_ranges("f", [(400_000, 10), (900_000, 10)]),
    "stream": lambda storage: list(storage.get_stream("f", 100_000)),
}


def stored(store: TableServer) -> tuple[str, Storage]:
    url = store.url()
    store.put_all(url, {"f": BODY})
    return url, store.open(url)


def replace(store: TableServer, url: str) -> None:
    """Another object of the same length; on a disk the clock must have moved on."""
    time.sleep(0.02)
    store.put_all(url, {"f": OTHER})


@pytest.mark.parametrize("second", READS)
@pytest.mark.parametrize("first", READS)
def test_a_later_read_of_a_replaced_object_is_an_error_that_names_it(
    table_store: TableServer, first: str, second: str
) -> None:
    url, storage = stored(table_store)
    scan = storage.scoped(Deadline.after(0))
    READS[first](scan)
    READS[second](scan)
    before = scan.counters.snapshot().requests
    replace(table_store, url)
    with pytest.raises(ObjectReplacedError, match="was replaced while it was being read") as caught:
        READS[second](scan)
    assert caught.value.where == f"{storage.root}/f"
    assert scan.counters.snapshot().requests - before <= (2 if second == "ranges" else 1)
    with pytest.raises(ObjectReplacedError):
        READS[second](scan)  # nor does another request of the same scan go on with the new one
    READS[second](storage.scoped(Deadline.after(0)))  # another scan reads it


def test_a_file_object_notices_it_too(table_store: TableServer) -> None:
    url, storage = stored(table_store)
    file = RangedFile(storage, "f", len(BODY))
    assert file.read(100) == BODY[:100]
    replace(table_store, url)
    file.seek(-10, 2)
    with pytest.raises(ObjectReplacedError):
        file.read()


def test_what_was_read_while_the_table_was_opened_holds_for_its_scans(table_store: TableServer) -> None:
    url, storage = stored(table_store)
    opening = storage.scoped()
    opening.get_range("f", 999_000, 1000)
    replace(table_store, url)
    with pytest.raises(ObjectReplacedError):
        storage.scoped(Deadline.after(0)).get_range("f", 0, 10)


def test_whole_objects_may_change_between_reads(table_store: TableServer) -> None:
    """The hint `_last_checkpoint` does."""
    url, storage = stored(table_store)
    scan = storage.scoped(Deadline.after(0))
    assert scan.get("f") == BODY
    replace(table_store, url)
    assert scan.get("f") == OTHER
