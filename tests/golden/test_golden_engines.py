"""Tables that other engines wrote, through datasets and data frames: the rows are those of a scan."""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import lazydelta as ld
from tests.golden.test_golden_rows import WITH_ROWS, counted
from tests.golden.test_golden_tables import needs_golden, table_folder

pytestmark = needs_golden


@pytest.mark.parametrize("name", WITH_ROWS)
def test_a_golden_table_is_the_same_as_a_dataset_by_its_files_and_in_data_frames(name: str) -> None:
    table = ld.open(str(table_folder(name)))
    rows, dataset = table.to_arrow(), table.to_pyarrow_dataset()
    assert dataset.to_table().equals(rows)
    assert dataset.count_rows() == rows.num_rows
    files = [fragment.to_table() for fragment in dataset.get_fragments()]
    assert pa.concat_tables([rows.schema.empty_table(), *files]).equals(rows)
    assert len(table.to_pandas()) == rows.num_rows
    frame = table.to_polars().collect()
    expected = pl.from_arrow(rows)
    assert isinstance(expected, pl.DataFrame)
    assert frame.schema == expected.schema
    assert frame.equals(expected)


@pytest.mark.parametrize("name", WITH_ROWS)
def test_duckdb_reads_a_golden_table_as_it_reads_the_rows(name: str) -> None:
    table = ld.open(str(table_folder(name)))
    rows = table.to_arrow()
    with duckdb.connect() as connection:
        connection.register("lazy", table.to_pyarrow_dataset())
        connection.register("eager", rows)
        found, expected = (
            connection.sql(f"select * from {view}").to_arrow_table() for view in ("lazy", "eager")
        )
        assert counted(found) == counted(expected)
        for column in rows.column_names:
            quoted = '"' + column.replace('"', '""') + '"'
            lazy, eager = (
                connection.execute(f"select count(*) from {view} where {quoted} is not null").fetchall()
                for view in ("lazy", "eager")
            )
            assert lazy == eager
