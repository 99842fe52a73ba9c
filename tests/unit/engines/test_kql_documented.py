"""Every example of Kusto's documentation is answered as its page says, or refused by name."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from lazydelta.engines.kql.errors import KqlError
from lazydelta.engines.kql.run import run_kql
from lazydelta.errors import LazyDeltaError
from tests.support.kql_cases import Case, Rows, all_cases, answer, cases, differences
from tests.support.kql_session import KqlSession, kql_session

CASES_A_GROUP = 25
EVERY = 75
# Refused when the query is bound or run, where places in the text are not known any more.
PLACELESS = ("union",)


@pytest.fixture(scope="module")
def session() -> Iterator[KqlSession]:
    with kql_session() as made:
        yield made


def _groups() -> list[tuple[Case, ...]]:
    every = cases()
    return [every[start : start + CASES_A_GROUP] for start in range(0, len(every), CASES_A_GROUP)]


@pytest.mark.parametrize("group", _groups(), ids=lambda group: f"{group[0]['id']}…")
def test_documented_examples_are_answered_as_documented_or_refused_by_name(
    group: tuple[Case, ...], session: KqlSession
) -> None:
    wrong = {case["id"]: found for case in group if (found := _complaint(case, session))}
    assert wrong == {}


@pytest.mark.parametrize("case", cases()[::EVERY], ids=lambda case: case["id"])
def test_some_of_them_are_answered_so_in_a_session_of_their_own(case: Case) -> None:
    assert not _complaint(case, None)


def test_every_case_is_told_once_and_says_what_it_is_for() -> None:
    counted = Counter(case["id"] for case in all_cases())
    assert [name for name, count in counted.items() if count > 1] == []
    lacking = [case["id"] for case in cases() if not {"query", "columns", "rows"} <= case.keys()]
    assert lacking == []
    unexplained = [case["id"] for case in all_cases() if "left_out" in case and len(case["left_out"]) < 8]
    assert unexplained == []


def _complaint(case: Case, session: KqlSession | None) -> Any:  # Any: a list of differences, or a sentence
    try:
        columns, rows = _answer(case["query"], session)
    except LazyDeltaError as error:
        return _about_refusal(case, error)
    if "refused" in case:
        return "is answered, but was said to be refused"
    return differences(case, columns, rows)


def _answer(query: str, session: KqlSession | None) -> tuple[list[list[str]], Rows]:
    """Of a session that all share, which is sooner there; what fails in it is told by one of its own."""
    with contextlib.suppress(duckdb.Error):
        if session is not None:
            return answer(session.result(query))
    result = run_kql(query, {})
    try:
        return answer(result)
    finally:
        result.close()


def _about_refusal(case: Case, error: LazyDeltaError) -> str | None:
    name = case.get("refused")
    if name is None:
        return f"is refused: {error}"
    if name not in str(error.args[0]):
        return f"{name} is not named: {error}"
    is_placed = isinstance(error, KqlError) and error.line is not None
    return None if is_placed or name in PLACELESS else f"the place is not told: {error}"
