"""The test double for failures keeps the contract it is there to test."""

from __future__ import annotations

from pathlib import Path

import pytest

from lazydelta.errors import AccessDeniedError, StorageError
from lazydelta.settings import Settings
from lazydelta.storage import ObjectNotFoundError, Storage, open_storage
from tests.support.faulty_storage import fail_at, fail_by_seed, fail_every, faulty


@pytest.fixture
def inner(tmp_path: Path) -> Storage:
    storage = open_storage(str(tmp_path), Settings())
    for name in ("a", "b", "c"):
        storage.put_if_absent(f"log/{name}", b"0123456789")
    return storage


def test_calls_are_numbered_across_scopes(inner: Storage) -> None:
    storage = faulty(inner, fail_at(3))
    storage.get("log/a")
    storage.scoped().get("log/b")
    with pytest.raises(StorageError):
        storage.scoped().get_range("log/c", 0, 1)
    assert storage.get("log/c") == b"0123456789"
    assert storage.log.calls[2] == ("get_range", "log/c")
    assert storage.log.faults == 1


def test_every_nth_call_fails(inner: Storage) -> None:
    storage = faulty(inner, fail_every(2, "not_found"))
    storage.get("log/a")
    with pytest.raises(ObjectNotFoundError):
        storage.get("log/a")
    storage.get("log/a")


def test_a_cut_gives_a_part_of_a_stream_and_nothing_of_a_body(inner: Storage) -> None:
    stream = faulty(inner, fail_at(1, "cut")).get_stream("log/a", 4)
    assert next(stream) == b"0123"
    with pytest.raises(StorageError):
        next(stream)
    entries = faulty(inner, fail_at(1, "cut")).list_from("log")
    assert next(entries).name.startswith("log/")
    with pytest.raises(StorageError):
        next(entries)
    with pytest.raises(StorageError):
        faulty(inner, fail_at(1, "cut")).get_ranges("log/a", [(0, 1)])


def test_a_seed_fails_the_same_calls_each_time(inner: Storage) -> None:
    def outcome(seed: int) -> list[bool]:
        storage = faulty(inner, fail_by_seed(seed, 0.5, ["denied"]))
        answers = []
        for _ in range(20):
            try:
                storage.get("log/a")
                answers.append(True)
            except AccessDeniedError:
                answers.append(False)
        return answers

    assert outcome(1) == outcome(1)
    assert outcome(1) != outcome(2)
    assert set(outcome(1)) == {True, False}
