"""The hint changes with every checkpoint: reading it twice is no sign of damage."""

from __future__ import annotations

import time
from pathlib import Path

import lazydelta as ld
from lazydelta.log.segment import read_hint
from lazydelta.settings import Settings
from lazydelta.storage import open_storage
from tests.support.cached import UNCACHED
from tests.support.table_builder import TableBuilder


def test_a_hint_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint().commit(["b"])
    storage = open_storage(str(tmp_path), Settings()).scoped()
    first = read_hint(storage)
    time.sleep(0.02)  # the clock of a file system is coarse
    table.checkpoint()
    second = read_hint(storage)
    assert first is not None
    assert second is not None
    assert (first.version, second.version) == (0, 1)
    assert read_hint(storage.scoped()) == second


def test_pages_of_one_table_go_on_while_checkpoints_are_written(tmp_path: Path) -> None:
    names = [f"{number:03}.parquet" for number in range(30)]
    table = TableBuilder(tmp_path, partition_columns=()).commit(names).checkpoint()
    scan = ld.open(tmp_path, storage_options=UNCACHED).scan()
    found, token = [], None
    for number in range(3):
        page = scan.file_page(10, after=token)
        found += [file.path for file in page.files]
        token = page.next_token
        time.sleep(0.02)
        table.commit([f"new-{number}"]).checkpoint()
    assert found == names
    assert token is None
