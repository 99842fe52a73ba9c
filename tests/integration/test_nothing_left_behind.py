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
from lazydelta.rows.materialize import backwards
from lazydelta.storage.scratch_folder import ScratchFolder, _swept, sweep
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
SCRATCH = """
import sys
from pathlib import Path
from lazydelta.storage.scratch_folder import ScratchFolder
folder = ScratchFolder(Path(sys.argv[1]), "lazydelta-test-")
(folder.path / "deep").mkdir()
(folder.path / "deep" / "rows").write_text("a secret")
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
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr("lazydelta.limits.MATERIALIZE_BYTES", 1)
    rows = pa.RecordBatch.from_pylist(all_readings())
    held: list[str] = []

    def slices() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows.num_rows, 7):
            yield rows.slice(start, 7)
        held.extend(handles_of(folder))

    found = list(backwards(slices()))
    assert held
    assert handles_of(folder) == []
    assert [row for batch in found for row in batch.to_pylist()] == all_readings()[::-1]


def test_a_disk_that_refuses_rows_is_told_with_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    monkeypatch.setattr("lazydelta.limits.MATERIALIZE_BYTES", 1)
    with pytest.raises(StorageError, match="rows could not be moved to disk") as told:
        list(backwards(pa.record_batch({"id": [at]}) for at in range(3)))
    assert "TMPDIR" in told.value.fix


def test_what_sql_spilled_is_private_and_removed_by_the_next_query_there(folder: Path) -> None:
    with waiting(SPILLED, str(folder), folder):
        (left,) = folder.iterdir()
        assert stat.S_IMODE(left.stat().st_mode) == 0o700
        assert list(left.rglob("*.tmp")) != []
        assert ld.sql("select 1", temp_directory=folder).fetchall() == [(1,)]
        assert list(left.rglob("*.tmp")) != []  # of a process that lives
    assert left.exists()
    _swept.clear()
    assert ld.sql("select 1", temp_directory=folder).fetchall() == [(1,)]
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


def test_a_scratch_folder_is_swept_once_its_process_is_dead_and_not_before(folder: Path) -> None:
    with waiting(SCRATCH, str(folder), folder):
        sweep(folder, "lazydelta-test-")
        (left,) = folder.iterdir()
        assert (left / "deep" / "rows").read_text() == "a secret"
    sweep(folder, "lazydelta-test-")
    assert list(folder.iterdir()) == []


def test_only_ones_own_private_folders_of_that_name_are_swept(folder: Path) -> None:
    (folder / "lazydelta-test-link").symlink_to(folder / "target")
    (folder / "target").mkdir(mode=0o700)
    (folder / "target" / "kept").write_text("x")
    (folder / "lazydelta-test-open").mkdir()
    (folder / "lazydelta-test-open").chmod(0o755)
    (folder / "lazydelta-test-file").write_text("x")
    (folder / "lazydelta-other").mkdir(mode=0o700)
    before = sorted(folder.rglob("*"))
    sweep(folder, "lazydelta-test-")
    assert sorted(folder.rglob("*")) == before
    sweep(folder / "absent", "lazydelta-test-")


def test_a_folder_that_is_swept_before_it_is_locked_is_made_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, swept = fcntl.flock, list[Path]()

    def sweep_first(handle: int, how: int) -> None:
        if not swept:
            (path,) = folder.iterdir()
            swept.append(path)
            path.rmdir()
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    made = ScratchFolder(folder, "lazydelta-test-")
    assert made.path.is_dir()
    assert made.path not in swept
    made.remove()
    made.remove()
    assert list(folder.iterdir()) == []


def test_a_forked_child_leaves_the_folder_to_its_parent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ScratchFolder(folder, "lazydelta-test-")
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        made.remove()
    assert made.path.is_dir()
    made.remove()
    assert not made.path.exists()
