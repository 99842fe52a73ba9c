"""Filters that name no column, or only columns that nothing was read for."""

from __future__ import annotations

from pathlib import Path

import pytest

import lazydelta as ld
from tests.support.table_builder import TableBuilder


@pytest.mark.parametrize("strategy", ["reverse", "forward"])
@pytest.mark.parametrize(("where", "kept"), [("true", 3), ("not false", 3), ("false", 0), ("1 = 1", 3)])
def test_a_constant_keeps_all_or_nothing(tmp_path: Path, where: str, kept: int, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b", "gone"]).checkpoint().commit(["c"], ["gone"])
    scan = ld.open(str(table.path)).scan(where, strategy=strategy)
    assert sum(batch.num_rows for batch in scan.file_batches(["path"])) == kept
