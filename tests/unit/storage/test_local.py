"""What only a local folder can show; the shared contract runs in the integration tests."""

from __future__ import annotations

import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lazydelta.errors import AccessDeniedError, StorageError
from lazydelta.settings import Settings
from lazydelta.storage import Deadline, LocalStorage, ObjectNotFoundError, Storage, is_quick, open_storage
from tests.support.handles import handles_of


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path), Settings())


def names(storage: Storage, folder: str, after: str | None = None) -> list[str]:
    return sorted(info.name for info in storage.list_from(folder, after))


def test_folders_are_not_objects_and_what_stands_for_a_file_is_listed_so_that_reading_it_fails(
    tmp_path: Path, storage: Storage
) -> None:
    (tmp_path / "log" / "sub").mkdir(parents=True)
    (tmp_path / "log" / "a").write_bytes(b"x")
    (tmp_path / "log" / "alive").symlink_to(tmp_path / "log" / "a")
    (tmp_path / "log" / "dead").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "log" / "pipe")
    (tmp_path / "log" / "x.json").mkdir()
    assert names(storage, "log") == ["log/a", "log/alive", "log/dead", "log/pipe", "log/x.json"]
    with pytest.raises(ObjectNotFoundError):
        storage.get("log/dead")
    for name, what in (("log/pipe", "a pipe"), ("log/x.json", "a folder")):
        with pytest.raises(StorageError, match=f"{what} is in the place of a file"):
            storage.get(name)


def test_a_file_where_a_folder_should_be_lists_as_empty(tmp_path: Path, storage: Storage) -> None:
    (tmp_path / "log").write_bytes(b"x")
    assert names(storage, "log") == []
    with pytest.raises(ObjectNotFoundError):
        storage.get("log/a")


def test_a_folder_is_not_an_object(tmp_path: Path, storage: Storage) -> None:
    (tmp_path / "log").mkdir()
    for read in (lambda: storage.get("log"), lambda: list(storage.get_stream("log", 10))):
        with pytest.raises(StorageError):
            read()


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/hostname", "a//b", "", ".", "a\0b"])
def test_a_name_cannot_lead_out_of_the_table(storage: Storage, name: str) -> None:
    with pytest.raises(StorageError, match="not a name inside the table"):
        storage.get(name)


def test_a_write_leaves_nothing_beside_it(tmp_path: Path, storage: Storage) -> None:
    assert storage.put_if_absent("log/a.json", b"1")
    assert not storage.put_if_absent("log/a.json", b"2")
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["a.json"]
    assert (tmp_path / "log" / "a.json").read_bytes() == b"1"


def test_a_reader_never_sees_half_a_write(tmp_path: Path, storage: Storage) -> None:
    body = os.urandom(1 << 20)
    stop = threading.Event()
    seen: list[bytes] = []

    def watch() -> None:
        while not stop.is_set():
            for info in storage.list_from("log"):
                if info.name.endswith(".json"):
                    seen.append(storage.get(info.name))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(20):
        storage.put_if_absent(f"log/{number}.json", body)
    stop.set()
    watcher.join()
    assert all(each == body for each in seen)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so root steps down; anybody else stays who they are."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_permission_denied_is_access_denied() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name, mode in (("open", 0o644), ("closed", 0)):
            (Path(folder) / name).write_bytes(b"x")
            (Path(folder) / name).chmod(mode)
        storage = open_storage(folder, Settings())
        with as_nobody():
            assert storage.get("open") == b"x"
            with pytest.raises(AccessDeniedError):
                storage.get("closed")


def test_a_refusal_of_the_file_system_is_access_denied(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(AccessDeniedError) as caught:
        next(storage.get_stream("a", 10))
    assert caught.value.where == f"{storage.root}/a"
    with pytest.raises(AccessDeniedError):
        list(storage.list_from("log"))


def test_after_its_deadline_a_scan_asks_for_nothing(tmp_path: Path, storage: Storage) -> None:
    (tmp_path / "a").write_bytes(b"x")
    late = storage.scoped(Deadline.after(1e-9)).scoped()
    calls = [
        lambda: late.get("a"),
        lambda: late.get_range("a", 0, 1),
        lambda: late.get_ranges("a", [(0, 1)]),
        lambda: list(late.get_stream("a", 1)),
        lambda: list(late.list_from("")),
        lambda: late.put_if_absent("b", b""),
    ]
    for call in calls:
        with pytest.raises(StorageError, match="the scan's deadline"):
            call()
    assert storage.counters.snapshot().requests == 0
    assert storage.get("a") == b"x"


def test_a_stream_that_is_dropped_closes_its_file(tmp_path: Path, storage: Storage) -> None:
    (tmp_path / "a").write_bytes(bytes(100))
    stream = storage.get_stream("a", 10)
    next(stream)
    assert handles_of(tmp_path) == [str(tmp_path / "a")]
    stream.close()  # type: ignore[attr-defined]
    assert handles_of(tmp_path) == []


def test_its_repr_and_root_are_the_uri(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "a b"), Settings())
    assert storage.root == f"file://{tmp_path}/a%20b"
    assert repr(storage) == f"LocalStorage('{storage.root}')"


def test_a_folder_is_quick_once_a_read_was_and_its_scoped_copies_know(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    storage = open_storage(str(tmp_path), Settings())
    assert not is_quick(storage)  # nobody knows yet
    assert any(storage.get("small") == b"x" and is_quick(storage) for _ in range(1000))
    assert is_quick(storage.scoped())


def test_a_folder_far_away_is_not_quick_until_reads_are(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    storage = LocalStorage(str(tmp_path), "file:///far", read_seconds=deque([0.02] * 4, 4))
    assert not is_quick(storage)
    assert any(storage.get("small") == b"x" and is_quick(storage) for _ in range(1000))
