"""Temporary files of a process that is killed: none is left, or the next process removes them."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import LazyDeltaError, StorageError
from tests.support.handles import handles_of
from tests.support.row_tables import all_readings, readings_table

BACKWARDS = """
import sys, lazydelta as ld
rows = iter(ld.open(sys.argv[1], storage_options={"delta.memory.bytes": "1"}).scan(order="desc").batches())
next(rows)
"""
SPILLED = """
import sys, lazydelta as ld
query = "select i, count(*) as c from range(2000000) r(i) group by i order by i desc"
found = ld.sql(query, memory_limit="50MB", temp_directory=sys.argv[1])
found.next()
"""

ONE_QUERY = """
import sys, lazydelta as ld
print(ld.sql("select 1", temp_directory=sys.argv[1]).fetchall())
"""


@contextmanager
def waiting(program: str, argument: str, folder: Path) -> Iterator[None]:
    """A process that has done so much and goes on no more; killed at the end."""
    child = subprocess.Popen(
        [sys.executable, "-c", program + "\nprint('ready', flush=True)\nsys.stdin.read()", argument],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"ready\n"
        yield
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    return made


def test_rows_that_wait_to_be_turned_round_have_no_name(tmp_path: Path, folder: Path) -> None:
    with waiting(BACKWARDS, readings_table(tmp_path), folder):
        assert list(folder.rglob("*")) == []
    assert list(folder.rglob("*")) == []


def test_rows_on_a_disk_come_back_as_they_were_and_hold_no_handle(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ld.open(readings_table(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr("lazydelta.limits.MATERIALIZE_BYTES", 1)
    batches = table.scan(order="desc", batch_size=4).batches(prefetch_size=0)
    found = next(batches).to_pylist()
    assert handles_of(folder)
    found += [row for batch in batches for row in batch.to_pylist()]
    assert handles_of(folder) == []
    assert found == all_readings()[::-1]


def test_a_disk_that_refuses_rows_is_told_with_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ld.open(readings_table(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    monkeypatch.setattr("lazydelta.limits.MATERIALIZE_BYTES", 1)
    with pytest.raises(StorageError, match="rows could not be moved to disk") as told:
        list(table.scan(order="desc").batches())
    assert "TMPDIR" in told.value.fix


def test_what_sql_spilled_is_private_and_removed_by_the_next_query_there(folder: Path) -> None:
    with waiting(SPILLED, str(folder), folder):
        (left,) = folder.iterdir()
        assert stat.S_IMODE(left.stat().st_mode) == 0o700
        assert list(left.rglob("*.tmp")) != []
        assert ld.sql("select 1", temp_directory=folder).fetchall() == [(1,)]
        assert list(left.rglob("*.tmp")) != []  # of a process that lives
    assert left.exists()
    command = [sys.executable, "-c", ONE_QUERY, str(folder)]  # a process looks for what was left behind once
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[(1,)]\n"
    assert list(folder.iterdir()) == []


def test_a_session_takes_its_folder_along_however_it_ends(tmp_path: Path, folder: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1, 2, 3]}))
    with ld.connect({"t": str(tmp_path / "t")}, temp_directory=folder) as connection:
        assert connection.sql("select sum(id) from t").fetchall() == [(6,)]
        assert len(list(folder.iterdir())) == 1
    assert list(folder.iterdir()) == []
    left = ld.sql("select * from range(100000)", temp_directory=folder)
    assert left.next() is not None
    assert len(list(folder.iterdir())) == 1
    del left
    assert list(folder.iterdir()) == []
    with pytest.raises(LazyDeltaError):
        ld.sql("select nothing from nowhere", temp_directory=folder)
    assert list(folder.iterdir()) == []


def test_a_long_query_draws_nothing_on_stdout() -> None:
    assert ld.sql("select current_setting('enable_progress_bar')").fetchall() == [(False,)]


def test_a_query_that_does_not_spill_needs_no_folder(tmp_path: Path) -> None:
    assert ld.sql("select 1", temp_directory=tmp_path / "absent").fetchall() == [(1,)]
    assert not (tmp_path / "absent").exists()


def test_only_ones_own_private_folders_of_that_name_are_removed(folder: Path) -> None:
    (folder / "lazydelta-spill-link").symlink_to(folder / "target")
    (folder / "target").mkdir(mode=0o700)
    (folder / "target" / "kept").write_text("x")
    (folder / "lazydelta-spill-open").mkdir()
    (folder / "lazydelta-spill-open").chmod(0o755)
    (folder / "lazydelta-spill-file").write_text("x")
    (folder / "lazydelta-other").mkdir(mode=0o700)
    before = sorted(folder.rglob("*"))
    (folder / "lazydelta-spill-left").mkdir(mode=0o700)
    assert ld.sql("select 1", temp_directory=folder).fetchall() == [(1,)]
    assert sorted(folder.rglob("*")) == before


def test_a_folder_that_another_process_removes_before_it_is_locked_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, removed = fcntl.flock, list[Path]()

    def remove_first(handle: int, how: int) -> None:
        if not removed:
            (path,) = folder.iterdir()
            removed.append(path)
            path.rmdir()
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    found = ld.sql("select * from range(100000)", temp_directory=folder)
    assert found.next() is not None
    (made,) = folder.iterdir()
    assert [made] != removed
    del found
    assert list(folder.iterdir()) == []


def test_a_forked_child_leaves_the_folder_to_its_parent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = ld.connect({}, temp_directory=folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        connection.close()
    assert len(list(folder.iterdir())) == 1
