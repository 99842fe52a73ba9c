"""A scan whose consumer may stop after a few files gives the same files as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.scan import FileScan, files_of
from tests.support.actions import add, stats
from tests.support.table_builder import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Most files in a checkpoint, then a tail of small commits."""
    old = [add(f"old-{at}", stats=stats(10)) for at in range(500)]
    builder = TableBuilder(tmp_path).commit(old).checkpoint()
    for at in range(30):
        builder.commit([add(f"new-{at}", stats=stats(10))], [f"old-{at}"])
    return builder


def hurried(table: TableBuilder, **how: object) -> FileScan:
    """As a limit on rows makes it."""
    return ld.open(str(table.path)).scan(**how)._source.with_config(limit=1).rows().files  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_a_hurried_scan_gives_the_same_files(table: TableBuilder, order: str | None) -> None:
    found = [file.path for batch in hurried(table, order=order).batches() for file in files_of(batch)]
    usual = [file.path for file in ld.open(str(table.path)).scan(order=order).files()]
    assert sorted(found) == sorted(usual)
    assert order is None or found == usual
