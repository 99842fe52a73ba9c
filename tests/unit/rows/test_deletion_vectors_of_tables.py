"""Rows of whole tables whose files have deletion vectors: what is listed never comes out, all else does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.errors import CorruptDataError, UnsupportedTableError
from tests.support.actions import add, remove, stats
from tests.support.checkpoint_writer import KINDS
from tests.support.deletion_vector_writer import always, inline_vector, stored_vectors
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import built

ROW_COUNT = 1000
GONE = [0, 1, 99, 100, 101, 500, 999]


def builder(folder: Path) -> TableBuilder:
    return TableBuilder(folder, schema={"id": "long"}, partition_columns=())


def data_file(folder: Path, name: str, *, first: int = 0, row_group_rows: int = 100) -> dict[str, Any]:
    """A file of `ROW_COUNT` rows numbered from `first`; its `add` without a vector."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = pa.table({"id": range(first, first + ROW_COUNT)})
    pq.write_table(rows, folder / name, row_group_size=row_group_rows)
    size = (folder / name).stat().st_size
    return add(name, partition={}, size=size, stats=stats(ROW_COUNT))


def vector_of(folder: Path, kind: str, rows: Iterable[int], **form: Any) -> dict[str, Any]:
    if kind == "inline":
        return inline_vector(rows, **form)
    if kind == "outside":
        return stored_vectors(folder.parent / "clone source", [[1], rows], is_absolute=True)[1]
    return stored_vectors(folder, [[1], rows], prefix="ab" if kind == "prefixed" else "", **form)[1]


def ids_of(folder: Path, predicate: str | None = None, **open_options: Any) -> list[int]:
    scan = ld.open(str(folder), **open_options).scan(predicate)
    return [row for batch in scan.batches() for row in batch.column("id").to_pylist()]


LEFT = [row for row in range(ROW_COUNT) if row not in GONE]


@pytest.mark.parametrize("kind", ["inline", "relative", "prefixed", "outside"])
def test_the_rows_of_a_vector_of_every_kind_do_not_come_out(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "t"
    file = data_file(folder, "a.parquet")
    builder(folder).commit(adds=[file | {"deletionVector": vector_of(folder, kind, GONE)}])
    options = {"delta.allowed_roots": str(tmp_path / "clone source")}
    assert ids_of(folder, storage_options=options) == LEFT
    assert ids_of(folder, "id >= 99 and id <= 103", storage_options=options) == [102, 103]


def test_a_vector_outside_the_table_is_refused_unless_its_root_is_allowed(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    file = data_file(folder, "a.parquet")
    builder(folder).commit(adds=[file | {"deletionVector": vector_of(folder, "outside", GONE)}])
    with pytest.raises(UnsupportedTableError, match="outside its root") as told:
        ids_of(folder)
    assert str(tmp_path / "clone source") in told.value.fix


@pytest.mark.parametrize("form", [{}, {"as_runs": always}, {"as_runs": lambda at: at == 0}])
@pytest.mark.parametrize("kind", ["inline", "relative", "prefixed"])
def test_the_rust_kernel_reads_the_vectors_of_these_tests_alike(
    tmp_path: Path, kind: str, form: dict[str, Any]
) -> None:
    file = data_file(tmp_path, "a.parquet")
    builder(tmp_path).commit(adds=[file | {"deletionVector": vector_of(tmp_path, kind, GONE, **form)}])
    peer = QueryBuilder().register("t", DeltaTable(str(tmp_path))).execute("select id from t order by id")
    assert pa.table(peer.read_all()).column("id").to_pylist() == ids_of(tmp_path) == LEFT


@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_that_a_checkpoint_holds_counts_as_one_of_a_commit(tmp_path: Path, kind: str) -> None:
    file = data_file(tmp_path, "a.parquet")
    vectors = stored_vectors(tmp_path, [GONE])
    builder(tmp_path).commit(adds=[file | {"deletionVector": vectors[0]}]).checkpoint(kind)
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    assert ids_of(tmp_path) == LEFT


def test_a_vector_that_a_sidecar_holds_counts_too(tmp_path: Path) -> None:
    stored, inline = data_file(tmp_path, "a.parquet"), data_file(tmp_path, "b.parquet", first=ROW_COUNT)
    (vector,) = stored_vectors(tmp_path, [GONE])
    adds = [stored | {"deletionVector": vector}, inline | {"deletionVector": inline_vector([0])}]
    built(builder(tmp_path).commit(adds=adds).checkpoint())
    scan = ld.open(str(tmp_path)).scan()
    rows = [row for batch in scan.batches() for row in batch.column("id").to_pylist()]
    assert sorted(rows) == LEFT + list(range(ROW_COUNT + 1, 2 * ROW_COUNT))
    assert scan.explain().source.startswith("sidecar")


def test_each_version_has_the_vector_it_had(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet")
    first, second = stored_vectors(tmp_path, [[5], [5, 6]])
    table = builder(tmp_path).commit(adds=[file])
    table.commit(removes=[remove("a.parquet")], adds=[file | {"deletionVector": first}])
    table.commit(
        removes=[remove("a.parquet", deletion_vector=first)], adds=[file | {"deletionVector": second}]
    )
    counts = [len(ids_of(tmp_path, version=version)) for version in range(3)]
    assert counts == [ROW_COUNT, ROW_COUNT - 1, ROW_COUNT - 2]


def test_a_file_whose_rows_are_all_deleted_gives_none(tmp_path: Path) -> None:
    gone, kept = data_file(tmp_path, "a.parquet"), data_file(tmp_path, "b.parquet", first=ROW_COUNT)
    vector = inline_vector(range(ROW_COUNT), as_runs=always)
    builder(tmp_path).commit(adds=[gone | {"deletionVector": vector}, kept])
    assert ids_of(tmp_path) == list(range(ROW_COUNT, 2 * ROW_COUNT))


def test_row_indexes_count_the_deleted_rows(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet")
    builder(tmp_path).commit(adds=[file | {"deletionVector": inline_vector(GONE)}])
    batches = ld.open(str(tmp_path)).scan("id < 104").batches(["id", "_row_index"])
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert rows == [(row, row) for row in LEFT if row < 104]


def test_the_row_groups_of_a_file_read_its_vector_once(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", row_group_rows=10)
    (vector,) = stored_vectors(tmp_path, [GONE])
    builder(tmp_path / "without").commit(
        adds=[data_file(tmp_path / "without", "a.parquet", row_group_rows=10)]
    )
    builder(tmp_path).commit(adds=[file | {"deletionVector": vector}])
    costs = []
    for folder in (tmp_path / "without", tmp_path):
        table = ld.open(str(folder))
        counters = table._snapshot.storage.counters
        before = counters.snapshot().requests
        assert sum(batch.num_rows for batch in table.scan().batches()) > 0
        costs.append(counters.snapshot().requests - before)
    assert costs[1] == costs[0] + 1


def test_a_vector_that_lists_rows_past_the_end_of_its_file_is_damage(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet")
    builder(tmp_path).commit(adds=[file | {"deletionVector": inline_vector([3, ROW_COUNT])}])
    with pytest.raises(CorruptDataError, match="lists row 1000, but the data file has 1000 rows") as told:
        ids_of(tmp_path)
    assert told.value.where == f"file://{tmp_path}/a.parquet"


def test_a_vector_that_is_gone_stops_the_scan_before_any_row_of_its_file(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet")
    (vector,) = stored_vectors(tmp_path, [GONE])
    builder(tmp_path).commit(adds=[file | {"deletionVector": vector}])
    next(tmp_path.glob("*.bin")).unlink()
    batches = ld.open(str(tmp_path)).scan().batches()
    with pytest.raises(CorruptDataError, match="its file is not there"):
        next(batches)


def test_files_alone_are_listed_whatever_became_of_their_vectors(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet")
    (vector,) = stored_vectors(tmp_path, [GONE])
    builder(tmp_path).commit(adds=[file | {"deletionVector": vector}])
    next(tmp_path.glob("*.bin")).unlink()
    assert len(list(ld.open(str(tmp_path)).scan().files())) == 1


ROWS = st.one_of(
    st.sets(st.integers(0, ROW_COUNT - 1), max_size=30),
    st.tuples(st.integers(0, 900), st.integers(0, 100)).map(lambda run: set(range(run[0], sum(run)))),
    st.just(set(range(0, ROW_COUNT, 2))),
)


@given(st.lists(ROWS, min_size=1, max_size=3), st.sampled_from([77, 1000]), st.booleans(), st.booleans())
def test_a_table_has_the_rows_that_no_vector_lists(
    vectors: list[set[int]], row_group_rows: int, is_inline: bool, is_run: bool
) -> None:
    form: dict[str, Any] = {"as_runs": always} if is_run else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stored = stored_vectors(folder, vectors, **form)
        adds, expected = [], []
        for at, rows in enumerate(vectors):
            file = data_file(folder, f"{at}.parquet", first=at * ROW_COUNT, row_group_rows=row_group_rows)
            vector = inline_vector(rows, **form) if is_inline else stored[at]
            adds.append(file | {"deletionVector": vector})
            expected += [at * ROW_COUNT + row for row in range(ROW_COUNT) if row not in rows]
        builder(folder).commit(adds=adds)
        assert sorted(ids_of(folder)) == expected
