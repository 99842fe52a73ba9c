"""Random tables that Delta on Spark wrote, with every feature: rows are Spark's, whichever way they are read.

Why: each feature has its own tests; here they meet. A table is made by a seeded generator (Spark is too slow
to shrink an example), and many questions are asked of it. Peers are compared where they can read the table.
`LAZYDELTA_TABLES=40 pytest --long …` makes so many tables, `LAZYDELTA_SEED=17` begins with that one.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta import limits
from tests.support.cached import CACHED, UNCACHED
from tests.support.random_lake import SESSION, RandomLake
from tests.support.random_lake_answers import Answer, counted, rows_of, spark_answers
from tests.support.random_lake_features import features_of
from tests.support.random_lake_filters import Filter
from tests.support.random_lake_peers import CannotReadError, DuckDelta, delta_rs_rows
from tests.support.skips import skip
from tests.support.spark_reads import by_each_reader
from tests.support.spark_settings import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

USUAL_TABLES = 4
TABLES = int(os.environ.get("LAZYDELTA_TABLES") or USUAL_TABLES)
FIRST_SEED = int(os.environ.get("LAZYDELTA_SEED") or 0)
LONG = pytest.mark.long("more random tables; one of them is in the default suite")
SEEDS = [
    pytest.param(FIRST_SEED, id="one"),
    *(pytest.param(seed, marks=LONG) for seed in range(FIRST_SEED, FIRST_SEED + TABLES)),
]
STEPS = 6
FILTERS_IN_SPARK = 3  # each is a job of its own there
WITHOUT_SIDECAR = UNCACHED | {"delta.sidecar.enabled": "false"}
WAYS = (WITHOUT_SIDECAR, UNCACHED, CACHED)

# Where the rows of a peer are others without a word, so that they say nothing about the table.
FLAWS = {
    "delta-rs": {"INT96"},  # through nanoseconds, which end in 2262
    # It writes variants its own way where the test reads them back, and gives nulls for what lists hold
    # whose levels have other names than today's.
    "duckdb": {"INT96", "variant", "legacy lists"},
}
# Of the usual tables at least one has each of these.
FEATURES = (
    "mapped by none", "mapped by name", "mapped by id", "deletionVectors", "deletion vector u",
    "deletion vector p", "typeWidening", "a widened column", "rowTracking", "row ids", "timestampNtz",
    "INT96", "variantType", "identityColumns", "generatedColumns", "void", "clone", "absolute path",
    "path encoded twice", "partition of null", "struct", "array", "map",
    "decimal as INT32", "decimal as INT64",
    "decimal as FIXED_LEN_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "many row groups", "add_field", "rename_field",
    "delete", "update", "merge", "classic checkpoint", "multi-part checkpoint", "V2 checkpoint", "sidecar",
    "delta-rs compared", "duckdb compared",
)  # fmt: skip

SEEN: Counter[str] = Counter()  # what happened over all tables


@pytest.fixture(scope="module")
def duck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDelta]:
    worker = DuckDelta(tmp_path_factory.mktemp("duck"))
    yield worker
    worker.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_those_of_spark_whichever_way_they_are_read(
    spark: SparkSession, duck: DuckDelta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", seed % 2 * limits.NUMBER_MAX)
    lake = RandomLake(spark, tmp_path / "t able", seed)
    lakes = [lake]
    with configured(spark, SESSION):
        try:
            lake.create()
            lake.grow(STEPS)
            check_lake(lake, duck)
            if seed % 3 == 1:
                lakes.append(lake.clone(tmp_path / "clone"))
                lakes[-1].grow(2)
                check_lake(lakes[-1], duck)
        except BaseException as failure:
            told = "\n".join(line for one in lakes for line in [f"-- {one.table}", *one.history])
            failure.add_note(f"to do it again: LAZYDELTA_SEED={seed} pytest -k one\n{told}")
            raise
    for one in lakes:
        SEEN.update(one.done)
        SEEN["changes refused"] += len(one.refused)
    SEEN["tables"] += 1


def check_lake(lake: RandomLake, duck: DuckDelta) -> None:
    dice = random.Random(lake.seed)
    answers = spark_answers(lake, dice, filters=12, earlier=1)
    check_folder(lake.folder, answers, dice)
    check_in_spark(lake, answers)
    check_peers(lake.folder, answers[0], duck)


def check_in_spark(lake: RandomLake, answers: list[Answer]) -> None:
    """Read back in Spark: by its own reader where files are plain, and by ours."""
    allowed = UNCACHED | {"delta.allowed_roots": str(lake.folder.parent)}
    for answer in answers:
        how: dict[str, Any] = {"version": answer.version, "storage_options": allowed}
        for frame in by_each_reader(lake.spark, lake.folder, **how):
            assert_same(rows_of(frame), answer.rows)
        for one, wanted in answer.kept[:FILTERS_IN_SPARK]:
            how |= {"where": one.ours, "columns": [answer.key]}
            for frame in by_each_reader(lake.spark, lake.folder, **how):
                assert sorted(rows_of(frame).column(0).to_pylist()) == wanted, one.ours


def check_folder(folder: Path, answers: list[Answer], dice: random.Random) -> None:
    """The newest version in every way, and some earlier ones."""
    newest, *earlier = answers
    check_ways(folder, newest)
    check_order(folder, dice)
    check_columns(folder, newest, dice)
    check_filters(folder, newest, dice)
    for answer in earlier:
        table = opened(folder, dice.choice(WAYS), version=answer.version)
        assert_same(table.to_arrow(), answer.rows)
        check_filters(folder, answer, dice)


def opened(folder: Path, options: dict[str, str] = UNCACHED, *, version: int | None = None) -> ld.Table:
    """A clone lies beside its source, and may read there."""
    allowed = options | {"delta.allowed_roots": str(folder.parent)}
    return ld.open(str(folder), version=version, storage_options=allowed)


# --- rows ----------------------------------------------------------------------


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    found.validate(full=True)
    assert found.column_names == expected.column_names
    ours, theirs = counted(found), counted(expected)
    assert ours - theirs == Counter(), "rows that Spark does not give"
    assert theirs - ours == Counter(), "rows that Spark gives"


def assert_equal(found: pa.Table, expected: pa.Table) -> None:
    """The same rows in the same order; Arrow itself takes no NaN for another."""
    assert found.schema.equals(expected.schema)
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


def check_ways(folder: Path, answer: Answer) -> None:
    """Batches, all at once, data frames, datasets, SQL; with a sidecar and without, cached or not."""
    for options in (*WAYS, CACHED):
        table = opened(folder, options)
        rows = table.to_arrow()
        assert table.version == answer.version
        assert rows.schema.equals(table.schema)
        assert_same(rows, answer.rows)
    table = opened(folder)
    rows = table.to_arrow()
    assert_equal(pa.Table.from_batches(table.scan(batch_size=7).batches(), table.schema), rows)
    assert_equal(table.scan().batches(lazy=False).read_all(), rows)
    assert_equal(table.to_pyarrow_dataset().to_table(), rows)
    assert counted(table.sql("select * from t").read_all()) == counted(rows)
    whole = pl.from_arrow(rows)
    assert isinstance(whole, pl.DataFrame)
    assert table.to_polars().collect().equals(whole)
    assert len(table.to_pandas()) == rows.num_rows


def check_order(folder: Path, dice: random.Random) -> None:
    """Pages are the whole, cut, and descending is ascending reversed."""
    table = opened(folder)
    ascending = table.scan(order="asc").to_arrow()
    assert counted(ascending) == counted(table.to_arrow())
    for order in ("asc", "desc"):
        whole = reversed_rows(ascending) if order == "desc" else ascending
        assert_equal(table.scan(order=order).to_arrow(), whole)
        size, pages, token = dice.choice((1, 7, 1000)), [table.schema.empty_table()], None
        for _ in range(12):
            page = table.scan().page(size, after=token, order=order)
            pages.append(page.rows)
            token = page.next_token
            if token is None:
                break
        found = pa.concat_tables(pages)
        assert_equal(found, whole if token is None else whole.slice(0, found.num_rows))


def reversed_rows(rows: pa.Table) -> pa.Table:
    return rows.take(list(range(rows.num_rows - 1, -1, -1)))


def check_columns(folder: Path, answer: Answer, dice: random.Random) -> None:
    """Some columns in any order, rows by their ids, and as many as a limit allows."""
    table, expected = opened(folder), answer.rows
    names = dice.sample(expected.column_names, dice.randint(1, expected.num_columns))
    assert_same(table.to_arrow(names), expected.select(names))
    limit = dice.randint(0, expected.num_rows + 1)
    some = table.scan(limit=limit).to_arrow()
    assert some.num_rows == min(limit, expected.num_rows)
    assert counted(some) <= counted(expected)
    if answer.row_ids is not None:
        assert_same(table.to_arrow(answer.row_ids.column_names), answer.row_ids)
        SEEN["row ids"] += 1


# --- filters -------------------------------------------------------------------


def check_filters(folder: Path, answer: Answer, dice: random.Random) -> None:
    """Random filters keep the rows that Spark's keep."""
    table = opened(folder, dice.choice(WAYS), version=answer.version)
    for one, wanted in answer.kept:
        SEEN["filters"] += 1
        SEEN["filters that keep some"] += 0 < len(wanted) < answer.rows.num_rows
        check_filter(table, one, answer.key, wanted, dice)


def check_filter(table: ld.Table, one: Filter, key: str, wanted: list[int], dice: random.Random) -> None:
    found = table.scan(one.ours).to_arrow([key])
    assert sorted(found.column(0).to_pylist()) == wanted, one.ours
    if dice.random() < 0.3:
        spelled = '"' + key.replace('"', '""') + '"'
        rows = table.sql(f"select {spelled} from t where {one.duckdb}").read_all()
        assert sorted(rows.column(0).to_pylist()) == wanted, one.duckdb
    if dice.random() < 0.2:
        page = table.scan(one.ours).page(1000, columns=[key], order="desc")
        ordered = table.scan(one.ours, order="asc").to_arrow([key])
        assert page.rows.column(0).to_pylist()[::-1] == ordered.column(0).to_pylist(), one.ours


# --- peers ---------------------------------------------------------------------


def check_peers(folder: Path, answer: Answer, duck: DuckDelta) -> None:
    """Where a peer reads the table, its rows are the same."""
    features, expected = features_of(folder), counted(answer.rows, one_zero=True)
    SEEN.update(features)
    for name, read in (
        ("delta-rs", lambda: delta_rs_rows(folder, answer.version)),
        ("duckdb", lambda: duck.rows(folder)),
    ):
        try:
            found = counted(read(), one_zero=True)
        except CannotReadError as refusal:
            SEEN[f"{name} cannot read: {str(refusal)[:100]}"] += 1
            continue
        if found != expected and features & FLAWS[name]:
            SEEN[f"{name} differs: {', '.join(sorted(features & FLAWS[name]))}"] += 1
            continue
        assert found - expected == Counter(), f"rows of {name} alone"
        assert expected - found == Counter(), f"rows that {name} lacks"
        SEEN[f"{name} compared"] += 1


@LONG
@pytest.mark.usefixtures("spark")  # so that it runs in the process that made the tables
def test_every_feature_was_met_and_every_peer_compared() -> None:
    told = "\n".join(f"{count:6} {what}" for what, count in sorted(SEEN.items()))
    print(told)
    if SEEN["tables"] < USUAL_TABLES or FIRST_SEED:
        skip("some usual tables are missing")
    lacking = [name for name in FEATURES if not SEEN[name]]
    assert lacking == [], told
    assert SEEN["filters that keep some"] > SEEN["filters"] / 10, told
