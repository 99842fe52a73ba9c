"""A commit of any size takes the memory of one slice, and is still one commit."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta import limits
from tests.support.table_builder import TableBuilder


def big_commit(table: TableBuilder, adds: int, *, removes_first: list[str] | None = None) -> None:
    """Append a commit larger than what is held whole, its removes before its adds."""
    version = table.version + 1
    with (table.log / f"{version:020d}.json").open("w") as file:
        for path in removes_first or []:
            file.write(json.dumps({"remove": {"path": path, "dataChange": True}}) + "\n")
        stats = json.dumps({"numRecords": 1, "minValues": {"value": 1.0}, "maxValues": {"value": 2.0}})
        for number in range(adds):
            body = {"path": f"big-{number:07d}", "size": 1, "modificationTime": 1, "dataChange": True}
            file.write(
                json.dumps({"add": {**body, "partitionValues": {"date": None}, "stats": stats}}) + "\n"
            )


@pytest.mark.parametrize("strategy", ["reverse", "forward"])
def test_a_commit_larger_than_memory_allows_is_read_in_slices(tmp_path: Path, strategy: str) -> None:
    table = TableBuilder(tmp_path).commit(["old", "gone"]).checkpoint()
    big_commit(table, 40_000, removes_first=["gone"])
    assert (table.log / f"{1:020d}.json").stat().st_size > limits.COMMIT_WHOLE_BYTES_MAX
    scan = ld.open(str(tmp_path)).scan(strategy=strategy)
    tracemalloc.start()
    try:
        paths = set()
        for batch in scan.file_batches(["path"]):
            assert batch.num_rows <= limits.BATCH_ROWS
            paths.update(batch.column("path").to_pylist())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert paths == {"old", *(f"big-{n:07d}" for n in range(40_000))}
    # The set of paths above is the larger part of this.
    assert peak < 40 * limits.MIB


def test_a_checkpoint_in_json_with_many_transactions_takes_the_memory_of_a_slice(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint("v2-json", sidecars=1)
    (path,) = table.log.glob("*.checkpoint*.json")
    lines = (json.dumps({"txn": {"appId": f"{number:064}", "version": 1}}) for number in range(300_000))
    path.write_text(path.read_text() + "\n".join(lines) + "\n")
    size = path.stat().st_size
    tracemalloc.start()
    try:
        assert len(list(ld.open(tmp_path, storage_options={"delta.cache.bytes": "0"}).scan().files())) == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 2
