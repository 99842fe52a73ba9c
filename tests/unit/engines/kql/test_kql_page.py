"""The page about KQL tells the limits that hold; its examples are compared by tests/test_readme.py."""

from __future__ import annotations

from lazydelta import limits
from tests.test_readme import ROOT

PAGE = ROOT / "docs" / "kql.md"


def test_the_limits_are_those_that_hold() -> None:
    text = PAGE.read_text("utf-8")
    for number in (
        limits.KQL_CHARACTERS_MAX,
        limits.KQL_WORDS_MAX,
        limits.KQL_NESTING_MAX,
        limits.KQL_RANGE_ROWS_MAX,
        limits.KQL_ARRAY_MAX,
    ):
        assert f"{number:,}" in text, number
