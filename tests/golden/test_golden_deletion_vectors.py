"""The deletion vectors of golden tables, at every version: as many rows as the log says, all of the file."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.rows import DataFile, DeletionVectors
from lazydelta.settings import Settings
from lazydelta.storage import open_storage
from tests.golden.test_golden_tables import FOLDER, NAMES, needs_golden, table_folder

WITH_VECTORS = [name for name in NAMES if any(table_folder(name).rglob("deletion_vector_*.bin"))]

pytestmark = needs_golden


@pytest.mark.parametrize("name", WITH_VECTORS)
def test_the_vectors_of_every_version_can_be_read(name: str) -> None:
    folder = table_folder(name)
    vectors, seen = DeletionVectors(open_storage(str(folder), Settings())), 0
    for version in range(ld.open(str(folder)).version + 1):
        for file in ld.open(str(folder), version=version).scan().files():
            if file.deletion_vector is None or not (folder / file.path).exists():
                continue
            data_file = DataFile(
                path=file.path, size=file.size, partition_values={}, deletion_vector=file.deletion_vector
            )
            row_count = pq.read_metadata(folder / file.path).num_rows
            vectors.check_rows(data_file, row_count)
            assert len(vectors.positions(data_file, 0, row_count)) == file.deletion_vector.cardinality
            seen += 1
    assert seen


# Ten rows, 0 to 9; in a file first, then in the log, of an even number of words and of an odd one.
DELETED = {
    "table-with-dv-small": [set(), {0, 9}],
    "cdf-table-with-dv": [set(), {0, 9}, set(), {0, 1, 4, 5}, {0, 5}, {3}, set()],
}


@pytest.mark.parametrize("name", [name for name in DELETED if name in NAMES])
def test_each_version_lacks_the_rows_that_were_deleted_then(name: str) -> None:
    for version, deleted in enumerate(DELETED[name]):
        scan = ld.open(str(FOLDER / name), version=version).scan()
        values = [row["value"] for batch in scan.batches() for row in batch.to_pylist()]
        assert values == [row for row in range(10) if row not in deleted]
