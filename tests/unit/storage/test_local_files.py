"""Local files: what is no file is refused without a wait, and links lead nowhere that is not allowed."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lazydelta.errors import StorageError
from lazydelta.settings import Settings
from lazydelta.storage import LocalStorage, Storage, open_storage
from tests.support.handles import handles_of

pytestmark = pytest.mark.timeout(60)  # a pipe that is waited for would never end


def read_by_a_library(storage: Storage, name: str) -> bytes:
    assert isinstance(storage, LocalStorage)
    with storage.reading(name, [(0, 1)]) as file:
        return Path(file.path).read_bytes()


READS: list[Callable[[Storage, str], object]] = [
    lambda storage, name: storage.get(name),
    lambda storage, name: storage.get_range(name, 0, 1),
    lambda storage, name: list(storage.get_stream(name, 10)),
    read_by_a_library,
]
ALL_READS = pytest.mark.parametrize("read", READS, ids=["get", "get_range", "get_stream", "reading"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "table"
    folder.mkdir()
    (folder / "file").write_bytes(b"inside")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(b"outside")
    return folder


def opened(table: Path, allowed_roots: str = "") -> Storage:
    return open_storage(str(table), Settings(allowed_roots=allowed_roots))


@ALL_READS
@pytest.mark.parametrize(
    ("kind", "told"), [("pipe", "a pipe"), ("socket", "a socket"), ("device", "a device"), ("link", "a pipe")]
)
def test_what_is_no_file_is_refused_at_once(
    table: Path, read: Callable[[Storage, str], object], kind: str, told: str
) -> None:
    name = table / "x"
    with closing(socket.socket(socket.AF_UNIX)) as bound:
        if kind == "pipe":
            os.mkfifo(name)
        elif kind == "socket":
            bound.bind(str(name))
        elif kind == "device":
            name.symlink_to(os.devnull)
        else:
            os.mkfifo(table / "pipe")
            name.symlink_to(table / "pipe")
        handles = handles_of(table, os.devnull)
        with pytest.raises(StorageError, match=f"{told} is in the place of a file") as error:
            read(opened(table), "x")
        assert error.value.where.endswith("/table/x")
        assert handles_of(table, os.devnull) == handles


@ALL_READS
def test_a_folder_in_the_place_of_a_file_is_told(table: Path, read: Callable[[Storage, str], object]) -> None:
    (table / "x").mkdir()
    with pytest.raises(StorageError, match="a folder is in the place of a file"):
        read(opened(table), "x")


@ALL_READS
@pytest.mark.parametrize("what", ["file", "folder", "chain"])
def test_a_link_that_leads_out_is_refused_unless_its_root_is_allowed(
    tmp_path: Path, table: Path, read: Callable[[Storage, str], object], what: str
) -> None:
    outside, name = tmp_path / "elsewhere", "x"
    if what == "file":
        (table / "x").symlink_to(outside / "file")
    elif what == "folder":
        (table / "sub").symlink_to("../elsewhere")
        name = "sub/file"
    else:
        (table / "y").symlink_to(outside / "file")
        (table / "x").symlink_to("y")
    with pytest.raises(StorageError, match="leads to a file outside its root") as error:
        read(opened(table), name)
    assert f'delta.allowed_roots="{outside}"' in error.value.fix
    assert handles_of(tmp_path) == []
    for allowed in (str(outside), str(tmp_path), f"file://{outside}", "*"):
        assert read(opened(table, allowed), name)
    with pytest.raises(StorageError, match="outside its root"):
        read(opened(table, str(tmp_path / "else")), name)  # a name that begins alike is another


@ALL_READS
def test_links_that_stay_inside_are_followed(table: Path, read: Callable[[Storage, str], object]) -> None:
    (table / "sub").mkdir()
    (table / "sub" / "relative").symlink_to("../file")
    (table / "sub" / "absolute").symlink_to(table / "file")
    (table / "other").symlink_to("sub")
    for name in ("sub/relative", "sub/absolute", "other/relative"):
        assert read(opened(table), name)


@ALL_READS
def test_a_table_or_an_allowed_root_may_be_a_link_and_become_another(
    tmp_path: Path, table: Path, read: Callable[[Storage, str], object]
) -> None:
    current, allowed = tmp_path / "current", tmp_path / "allowed"
    current.symlink_to(table)
    allowed.symlink_to(tmp_path / "elsewhere")
    (table / "x").symlink_to(allowed / "file")
    storage = opened(current, str(allowed))
    assert read(storage, "file")
    assert read(storage, "x")
    second = tmp_path / "second"
    table.rename(second)
    current.unlink()
    current.symlink_to(second)
    assert read(storage.scoped(), "file")


def test_a_folder_that_leads_out_is_neither_listed_nor_written_to(tmp_path: Path, table: Path) -> None:
    outside = tmp_path / "elsewhere"
    (table / "sub").symlink_to(outside)
    storage = opened(table)
    for attempt in (
        lambda: list(storage.list_from("sub")),
        lambda: storage.put_if_absent("sub/new", b"x"),
        lambda: storage.put_if_absent("sub/deep/new", b"x"),
        lambda: storage.delete("sub/file"),
    ):
        with pytest.raises(StorageError, match="outside its root"):
            attempt()
    assert [path.name for path in outside.iterdir()] == ["file"]
    allowed = opened(table, str(outside))
    assert allowed.put_if_absent("sub/new", b"x")
    assert len(list(allowed.list_from("sub"))) == 2


def test_without_a_list_of_open_files_the_path_is_judged(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lazydelta.storage.local_files._DESCRIPTORS", str(tmp_path / "none"))
    (table / "x").symlink_to(tmp_path / "elsewhere" / "file")
    storage = opened(table)
    assert storage.get("file") == read_by_a_library(storage, "file") == b"inside"
    with pytest.raises(StorageError, match="outside its root"):
        storage.get("x")


def test_a_root_that_is_the_whole_disk_holds_everything(table: Path) -> None:
    (table / "x").symlink_to(table.parent / "elsewhere" / "file")
    assert opened(table, "/").get("x") == b"outside"
    assert opened(Path("/")).get(str(table / "x").lstrip("/")) == b"outside"


def test_plain_files_are_those_that_a_library_may_open_by_itself(tmp_path: Path, table: Path) -> None:
    outside = tmp_path / "elsewhere"
    (table / "sub").mkdir()
    (table / "out").symlink_to(outside)
    (table / "in").symlink_to("file")
    (table / "dead").symlink_to("nothing")
    (table / "leads out").symlink_to(outside / "file")
    os.mkfifo(table / "pipe")
    (table / "to a pipe").symlink_to("pipe")
    names = ["file", "in", "sub", "out/file", "dead", "leads out", "pipe", "to a pipe", "gone", "file/x"]
    storage = opened(table)
    assert isinstance(storage, LocalStorage)
    assert [name for name, is_so in zip(names, storage.are_plain(names), strict=True) if is_so] == [
        "file",
        "in",
    ]
    storage = opened(table, str(outside))
    assert isinstance(storage, LocalStorage)
    assert storage.are_plain(["out/file", "leads out", "pipe"]) == [True, True, False]


def test_a_whole_file_is_read_though_it_grows_meanwhile_or_comes_in_parts(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = bytes(range(256)) * 20
    (table / "file").write_bytes(body)
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: read(fd, min(length, 1000), at))
    assert opened(table).get("file") == body

    def growing(fd: int, length: int, at: int) -> bytes:
        if at == 0:
            with (table / "file").open("ab") as file:
                file.write(b"and more")
        return read(fd, length, at)

    monkeypatch.setattr(os, "pread", growing)
    assert opened(table).get("file") == body + b"and more"
