"""A file with a matching row is never dropped, and a file that must match has no other rows.

Statistics are made as writers make them, with all that writers cut, round, leave out and let go stale; which
rows match is decided exactly, by `rows.matches`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazydelta.predicate import (
    BoundPredicate,
    Column,
    Expression,
    FileFacts,
    Not,
    all_of,
    any_of,
    bind,
    matches,
)
from tests.support.hypothesis_profile import examples
from tests.support.written_files import (
    LITERALS,
    PARTITIONS,
    PATTERNS,
    SCHEMA,
    VALUES,
    WrittenFile,
    batch_of,
    json_statistics,
    row_of,
    typed_statistics,
)

OPERATORS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
HABITS: list[dict[str, Any]] = [
    {"cuts_text": "spark", "sees_nan": True},
    {"cuts_text": "plain", "decimals_through_f64": True},
    {"cuts_text": "old", "is_tight": False},
]
SECTIONS = ["numRecords", "minValues", "maxValues", "nullCount"]


def pairs_of_columns_and_habits() -> Iterator[Any]:
    """Every column with every habit; in the default suite where the habit can matter."""
    matters = {"spark": set(VALUES), "plain": {"price", "exact"}, "old": {"text", "double", "price", "day"}}
    long = pytest.mark.long("a habit of writers that hardly touches this column")
    for habits in HABITS:
        name = habits["cuts_text"]
        for column in sorted(VALUES):
            marks = [] if column in matters[name] else [long]
            yield pytest.param(column, habits, id=f"{column}-{name}", marks=marks)


@pytest.mark.parametrize(("column", "habits"), list(pairs_of_columns_and_habits()))
def test_every_pair_of_values_is_judged_rightly_by_every_comparison(
    column: str, habits: dict[str, Any]
) -> None:
    pairs = list(combinations_with_replacement([None, *VALUES[column]], 2))
    files = [WrittenFile(rows=[row_of(**{column: value}) for value in pair], **habits) for pair in pairs]
    whole = [file for file, pair in zip(files, pairs, strict=True) if None not in pair]  # the last ones
    batch = batch_of([row for file in files for row in file.rows])
    for expression in _every_leaf(column):
        predicate = bind(expression, SCHEMA, PARTITIONS, where="memory")
        verdicts = np.array(matches(predicate, batch).to_pylist(), object).reshape(len(files), 2)
        facts = FileFacts(len(files), {}, json_statistics(files, predicate.stats_columns))
        for condition, truth in ((predicate, True), (_negated(predicate), False)):
            lean = FileFacts(len(whole), {}, json_statistics(whole, condition.stats_columns, lean=True))
            assert (condition.might_match(lean) == condition.might_match(facts)[-len(whole) :]).all()
            has_match, all_match = (verdicts == truth).any(axis=1), (verdicts == truth).all(axis=1)
            dropped = has_match & ~condition.might_match(facts)
            wrong = condition.must_match(facts) & ~all_match
            assert not dropped.any(), f"{condition.expression} dropped {pairs[dropped.argmax()]}"
            assert not wrong.any(), f"{condition.expression} held certain for {pairs[wrong.argmax()]}"


@st.composite
def files(draw: st.DrawFn, columns: Sequence[str]) -> WrittenFile:
    cells = {name: st.sampled_from([None, *VALUES[name]]) for name in columns if name in VALUES}
    rows = draw(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=3))
    return WrittenFile(
        rows=[row_of(**row) for row in rows],
        is_deleted=[draw(st.sampled_from([False, False, True])) for _ in rows],
        partition={
            "part": draw(st.sampled_from([None, *LITERALS["part"]])),
            "hour": draw(st.sampled_from([None, "", "0", "5", "-1", "oops"])),
        },
        is_tight=draw(st.booleans()),
        cuts_text=draw(st.sampled_from(["spark", "plain", "old"])),
        sees_nan=draw(st.booleans()),
        decimals_through_f64=draw(st.booleans()),
        left_out=draw(st.frozensets(st.sampled_from(SECTIONS), max_size=1)),
    )


def expressions(columns: Sequence[str]) -> st.SearchStrategy[Expression]:
    leaves = st.sampled_from(columns).flatmap(lambda name: st.sampled_from(list(_every_leaf(name))))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: all_of(*parts)),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: any_of(*parts)),
        ),
        max_leaves=4,
    )


@settings(max_examples=examples(80))
@given(data=st.data())
def test_a_file_with_a_matching_row_is_kept_and_one_that_must_match_has_no_other(data: st.DataObject) -> None:
    columns = data.draw(st.lists(st.sampled_from(sorted(LITERALS)), min_size=1, max_size=3, unique=True))
    written = data.draw(st.lists(files(columns), min_size=1, max_size=4))
    predicate = bind(data.draw(expressions(columns)), SCHEMA, PARTITIONS, where="memory")
    read = data.draw(st.sampled_from([json_statistics, typed_statistics]))
    facts = FileFacts(
        len(written),
        {name: pa.array([file.partition[name] for file in written], pa.string()) for name in PARTITIONS},
        read(written, predicate.stats_columns),
        pa.array([sum(file.is_deleted) for file in written]),
    )
    might, must = predicate.might_match(facts), predicate.must_match(facts)
    might_by_partitions = predicate.might_match_partitions(facts)
    for at, file in enumerate(written):
        for reading in _partition_readings(file.partition):
            verdicts = matches(predicate, batch_of(file.valid_rows, reading)).to_pylist()
            assert might[at] or True not in verdicts, f"dropped: {predicate.expression}"
            assert might_by_partitions[at] or True not in verdicts, f"dropped: {predicate.expression}"
            assert not must[at] or set(verdicts) <= {True}, f"not all match: {predicate.expression}"


def _every_leaf(name: str) -> Iterator[Expression]:
    column = Column((name, "inner") if name == "outer" else (name,))
    literals = LITERALS[name]
    yield column.is_null()
    for literal in literals:
        for operator in OPERATORS:
            yield getattr(column, operator)(literal)
        yield column.is_in([literal])
    yield column.is_in([])
    yield column.is_in(literals)
    yield column.is_in([*literals[:2], None])
    if name in ("text", "part"):
        yield from (column.like(pattern) for pattern in PATTERNS)


def _negated(predicate: BoundPredicate) -> BoundPredicate:
    return bind(Not(predicate.expression), SCHEMA, PARTITIONS, where="memory")


def _partition_readings(partition: dict[str, str | None]) -> list[dict[str, Any]]:
    """Every way to read the partition values: the empty string is also null, an odd text may be anything."""
    texts = [None, ""] if partition["part"] == "" else [partition["part"]]
    hours: dict[str | None, list[int | None]] = {"": [None], None: [None], "oops": [None, 0, 5]}
    hours_read = hours.get(partition["hour"]) or [int(partition["hour"] or 0)]
    return [{"part": text, "hour": hour} for text in texts for hour in hours_read]
