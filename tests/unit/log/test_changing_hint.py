"""The hint changes with every checkpoint: reading it twice is no sign of damage."""

from __future__ import annotations

import time
from pathlib import Path

import lazydelta as ld
from lazydelta.log import find_segment
from lazydelta.settings import Settings
from lazydelta.storage import open_storage
from tests.support.cached import UNCACHED
from tests.support.table_builder import TableBuilder


def test_a_hint_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint().commit(["b"])
    storage = open_storage(str(tmp_path), Settings()).scoped()
    hints: list[int] = []
    assert find_segment(storage, on_hint=hints.append).floor == 0
    time.sleep(0.02)  # the clock of a file system is coarse
    table.checkpoint()
    assert find_segment(storage, on_hint=hints.append).floor == 1
    assert find_segment(storage.scoped(), on_hint=hints.append).floor == 1
    assert hints == [0, 1, 1]


def test_a_scan_that_looks_for_an_older_checkpoint_reads_the_hint_of_now(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, partition_columns=()).commit(["a"]).checkpoint().commit(["b"]).checkpoint()
    opened = ld.open(tmp_path, storage_options=UNCACHED)
    live = table.live()
    time.sleep(0.02)
    table.commit(["c"]).checkpoint().log_file(f"{1:020}.checkpoint.parquet").unlink()
    scan = opened.scan()
    assert {(file.path, file.dv_id) for file in scan.files()} == live
    assert scan.explain().fallbacks
