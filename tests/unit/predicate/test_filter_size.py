"""Filters that programs write: thousands of terms, deep nests, text that is none."""

from __future__ import annotations

import inspect
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate import (
    And,
    BoundPredicate,
    Expression,
    FileFacts,
    Not,
    Or,
    bind,
    col,
    matches,
    parse_where,
)
from lazydelta.protocol.schema import Field, PrimitiveType, StructType

DEPTH_MAX = 100  # levels that a filter may have
HALF = "\ud800"  # a lone surrogate: no UTF-8 has one
TERMS = 5_000
SCHEMA = StructType(tuple(Field(name, PrimitiveType("long"), True, {}) for name in ("a", "b")))


def bound(where: Any) -> BoundPredicate:
    return bind(parse_where(where), SCHEMA, ["a"], where="s3://lake/t")


def negated(times: int) -> Expression:
    condition = col("a") == 1
    for _ in range(times):
        condition = ~condition
    return condition


def bound_to(condition: Expression) -> BoundPredicate:
    return bind(condition, SCHEMA, [], where="s3://lake/t")


def far_down(frames: int, act: Callable[[], Any]) -> Any:
    """What `act` returns that many frames below."""
    return far_down(frames - 1, act) if frames else act()


def refused(build: Callable[[], object]) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as raised:
        build()
    str(raised.value).encode()  # what is shown can be printed
    return raised.value


# --- wide ----------------------------------------------------------------------


@pytest.mark.parametrize(("word", "kind"), [("or", Or), ("and", And)])
def test_a_flat_chain_of_thousands_of_terms_is_read_and_printed(word: str, kind: type[And | Or]) -> None:
    chain = parse_where(f" {word} ".join(f"a <> {number}" for number in range(TERMS)))
    assert chain == kind(tuple(col("a") != number for number in range(TERMS)))
    assert parse_where(str(chain)) == chain


def test_chains_within_chains_keep_their_order() -> None:
    read = parse_where("a = 1 or (a = 2 or a = 3) or a = 4 and b = 5 and not (b = 6 or b = 7) or a = 8")
    assert str(read) == "a = 1 OR a = 2 OR a = 3 OR (a = 4 AND b = 5 AND NOT (b = 6 OR b = 7)) OR a = 8"


def test_a_flat_chain_of_thousands_of_terms_judges_files_and_rows() -> None:
    predicate = bound(" or ".join(f"a = {2 * number}" for number in range(TERMS)))
    last = 2 * (TERMS - 1)
    facts = FileFacts(4, {"a": pa.array(["0", "1", str(last), str(last + 2)])})
    assert predicate.might_match(facts).tolist() == [True, False, True, False]
    assert predicate.must_match(facts).tolist() == [True, False, True, False]
    rows = pa.record_batch({"a": pa.array([0, 1, last, last + 2, None])})
    assert matches(predicate, rows).to_pylist() == [True, False, True, False, None]


def test_a_chain_built_in_python_is_as_flat() -> None:
    condition = col("b") < 0
    for number in range(1, 1_000):
        condition = condition | (col("b") == number)
    assert len(bound(condition).root.parts) == 1_000  # type: ignore[attr-defined]  # a disjunction
    assert bound(condition).stats_columns[0].sides == {"min", "max"}


def test_judging_files_needs_no_memory_per_term() -> None:
    predicate = bound(" or ".join(f"b = {number}" for number in range(1_000)))
    facts = FileFacts(8_192)
    tracemalloc.start()
    try:
        assert predicate.might_match(facts).all()
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 100 * facts.row_count  # three flags for each term would be thirty times as much


def test_judging_a_chain_leaves_what_is_known_of_a_column_alone() -> None:
    predicate = bound("(a is null or a = 1) and (a is null or a = 2)")
    facts = FileFacts(3, {"a": pa.array([None, "1", "2"])})
    first = predicate.might_match(facts)
    assert first.tolist() == [True, False, False]
    assert np.array_equal(first, predicate.might_match(facts))


@pytest.mark.parametrize("where", ["a < " + "9" * 5_000, col("a") < 10**5_000, {"a": {"lt": 10**5_000}}])
def test_a_number_of_thousands_of_digits_is_above_all_others(where: Any) -> None:
    predicate = bound(where)
    assert predicate.must_match(FileFacts(1, {"a": pa.array(["5"])})).tolist() == [True]
    assert parse_where(str(predicate.expression)) == predicate.expression


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("a = x'" + "9" * 5_001 + "'", "a filter cannot contain a literal of so many digits"),
        ("a < 1.5e" + "9" * 4_400, "a number is out of every range"),
    ],
    ids=["bytes", "exponent"],
)
def test_what_python_writes_no_number_of_is_refused(where: str, what: str) -> None:
    assert refused(lambda: parse_where(where)).what == what


# --- deep ----------------------------------------------------------------------


@pytest.mark.parametrize("levels", [200, 5_000])
@pytest.mark.parametrize(
    "text_of",
    [
        lambda levels: "(" * levels + "a = 1" + ")" * levels,
        lambda levels: "not " * levels + "a = 1",
        lambda levels: "a = 1 or (b = 1 and (" * levels + "a = 1" + "))" * levels,
        lambda levels: "a = " + "(" * levels + "1" + ")" * levels,
    ],
    ids=["parentheses", "not", "and in or", "a value"],
)
def test_text_that_nests_too_deeply_is_an_error(text_of: Callable[[int], str], levels: int) -> None:
    error = refused(lambda: parse_where(text_of(levels)))
    assert error.what == "the filter nests too deeply"
    assert text_of(levels)[:100] in error.where
    assert len(error.where) < 400
    assert "write it flatter, or use in (…)" in error.fix


def test_json_that_nests_too_deeply_is_an_error() -> None:
    assert "deeply" in refused(lambda: parse_where("[" * 50_000 + "]" * 50_000)).what


@pytest.mark.parametrize("levels", [DEPTH_MAX, TERMS])
def test_a_python_filter_that_nests_too_deeply_is_an_error(levels: int) -> None:
    deep = negated(levels)
    assert "deeply" in refused(lambda: parse_where(deep)).what
    error = refused(lambda: bound_to(deep))
    assert ("deeply" in error.what, error.where) == (True, "s3://lake/t")


def test_a_list_with_a_python_filter_that_nests_too_deeply_is_an_error() -> None:
    assert "deeply" in refused(lambda: parse_where([negated(TERMS)])).what


def test_the_deepest_filter_is_bound_printed_and_judged_far_down_the_stack() -> None:
    condition = col("a") == 1
    for _ in range((DEPTH_MAX - 1) // 3):
        condition = Not((condition & (col("a") == 2)) | (col("a") == 3))

    predicate = far_down(400, lambda: bound(condition))
    facts = FileFacts(1, {"a": pa.array(["3"])})
    assert far_down(400, lambda: predicate.might_match(facts)).tolist() == [False]
    rows = pa.record_batch({"a": [3]})
    assert far_down(400, lambda: matches(predicate, rows)).to_pylist() == [False]
    assert far_down(400, lambda: str(condition)).startswith("NOT (")


def test_a_filter_bound_at_the_end_of_the_stack_is_an_error_of_the_filter() -> None:
    condition = negated(DEPTH_MAX - 1)
    room = DEPTH_MAX // 2  # frames left: enough to refuse, not enough to bind
    frames = sys.getrecursionlimit() - len(inspect.stack(0)) - room
    assert "deeply" in refused(lambda: far_down(frames, lambda: bound_to(condition))).what


# --- broken --------------------------------------------------------------------


@pytest.mark.parametrize("names", [(5,), (None,), (b"a",), (["a"],), ("a", 5), (5, "a")])
def test_a_column_name_that_is_no_text_is_an_error(names: Any) -> None:
    assert "is not a text" in refused(lambda: col(*names)).what


@pytest.mark.parametrize("pattern", [5, None, b"a%"])
def test_a_pattern_that_is_no_text_is_an_error(pattern: Any) -> None:
    refused(lambda: col("a").like(pattern))
    refused(lambda: col("a").starts_with(pattern))


@pytest.mark.parametrize(
    "where",
    [
        f"a = '{HALF}'",
        f'"{HALF}" = 1',
        HALF,
        f'{{"a": "{HALF}"}}',
        '{"a": "\\ud800"}',
        {"a": HALF},
        {"a": [HALF]},
        {"a": {"like": HALF}},
        {"a": {HALF: 1}},
        {HALF: 1},
        [("a", "=", HALF)],
        [("a", "in", [HALF])],
        [("a", "like", HALF)],
        [("a", HALF, 1)],
        [(HALF, "=", 1)],
    ],
)
def test_half_a_character_in_a_filter_is_an_error(where: Any) -> None:
    refused(lambda: parse_where(where))


@pytest.mark.parametrize(
    "build",
    [
        lambda: col(HALF),
        lambda: col("a", HALF),
        lambda: col("a") == HALF,
        lambda: col("a").is_in([HALF]),
        lambda: col("a").between("a", HALF),
        lambda: col("a").like(HALF),
        lambda: col("a").starts_with(HALF),
    ],
)
def test_half_a_character_in_a_python_filter_is_an_error(build: Callable[[], object]) -> None:
    assert "half a character" in refused(build).what


@pytest.mark.parametrize(
    "where", [5, 1.5, True, None, b"a = 1", bytearray(b"a = 1"), memoryview(b"a"), object(), {"a"}, range(3)]
)
def test_a_filter_of_another_kind_is_an_error(where: Any) -> None:
    refused(lambda: parse_where(where))
