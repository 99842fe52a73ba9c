"""The first rows by a column are those that a plain sort gives, whatever lies where."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from tests.support.hypothesis_profile import examples

Row = tuple[int, int | None]  # its file and its key


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Keys that follow the files, more or less."""
    files, spread = draw(st.integers(32, 48)), draw(st.sampled_from([0, 1, 5, 1000]))
    shift, gaps = st.integers(-spread, spread), draw(st.sampled_from([0.0, 0.1, 0.6]))
    rows: list[Row] = []
    for file in range(files):
        for _ in range(draw(st.integers(1, 3))):
            is_null = draw(st.floats(0, 1)) < gaps
            rows.append((file, None if is_null else file * 3 + draw(shift)))
    return rows


@settings(max_examples=examples(15))
@given(
    rows=tables(),
    limit=st.integers(1, 60),
    offset=st.integers(0, 3),
    is_descending=st.booleans(),
    nulls_first=st.booleans(),
    modulus=st.sampled_from([1, 2, 9]),
)
def test_the_first_rows_are_those_of_a_sort(
    rows: list[Row], limit: int, offset: int, *, is_descending: bool, nulls_first: bool, modulus: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        columns = {"file": [file for file, _ in rows], "key": pa.array([key for _, key in rows], pa.int32())}
        write_deltalake(str(path), pa.table(columns), partition_by=["file"])
        order = f"key {'desc' if is_descending else 'asc'} nulls {'first' if nulls_first else 'last'}"
        query = f"select key from t where file % {modulus} = 0 order by {order} limit {limit} offset {offset}"
        found = ld.sql(query, t=ld.open(path)).read_all().column("key").to_pylist()
    kept = [key for file, key in rows if file % modulus == 0]
    values = sorted((key for key in kept if key is not None), reverse=is_descending)
    nulls = [None] * (len(kept) - len(values))
    expected = [*nulls, *values] if nulls_first else [*values, *nulls]
    assert found == expected[offset : offset + limit]
