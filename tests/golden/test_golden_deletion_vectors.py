"""The deletion vectors of golden tables, at every version: as many rows as the log says, all of the file."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.deletion_vectors import DeletionVectors
from lazydelta.settings import Settings
from lazydelta.storage import open_storage
from tests.golden.test_golden_tables import FOLDER, NAMES, table_folder

WITH_VECTORS = [name for name in NAMES if any(table_folder(name).rglob("deletion_vector_*.bin"))]

pytestmark = pytest.mark.skipif(not NAMES, reason="no golden tables: set LAZYDELTA_GOLDEN to their folder")


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


# Written by Delta's own tests for readers: the rows are in the comments of those tests.
@pytest.mark.skipif(not (FOLDER / "table-with-dv-small").is_dir(), reason="the table is not among them")
def test_the_small_table_lacks_its_first_and_last_row() -> None:
    scan = ld.open(str(Path(FOLDER) / "table-with-dv-small")).scan()
    assert [row["value"] for batch in scan.batches() for row in batch.to_pylist()] == list(range(1, 9))
