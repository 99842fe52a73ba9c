"""Queries that would take all memory or all time are refused at once."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest

from bench.peers.measure import status_kb
from lazydelta import limits
from lazydelta.engines.kql.errors import KqlError
from lazydelta.errors import LazyDeltaError
from tests.unit.engines.kql.conftest import Ask

_DOUBLED = "".join(f"let a{at + 1} = strcat(a{at}, a{at}); " for at in range(14))
TOO_LARGE = {
    "a megabyte of text": f"print '{'x' * 1_000_000}'",
    "many words": "print " + "+".join(["1"] * limits.KQL_WORDS_MAX),
    "deep brackets": "print " + "(" * 500 + "1" + ")" * 500,
    "deep calls": "print " + "tolower(" * 300 + "'a'" + ")" * 300,
    "deep arrays": "print dynamic(" + "[" * 5000 + "]" * 5000 + ")",
    "lets that double": f"let a0 = 'x'; {_DOUBLED} print a14",
    "nested calls that repeat": "print " + "strcat(" * 12 + "'a'" + ", 'b')" * 12,
    "a range of billions": "range x from 1 to 10000000000 step 1 | count",
    "an array of billions": "print range(1, 10000000000, 1)",
    "text of gigabytes": "print strrep(strrep('x', 1000000), 1000000)",
    "a megabyte in each row": "T | extend s = strrep('x', 1000000)",
    "a megabyte of each row's number": "T | extend s = strrep('x', number * 10000)",
    "a text of each row": "T | extend s = strrep(tostring(number), 100000)",
    "texts that double": "T | extend s = 'x' " + "| extend s = strcat(s, s) " * 25,
    "columns that double": "T | extend s0 = 'x' "
    + "".join(f"| extend s{at + 1} = strcat(s{at}, s{at}) " for at in range(25)),
    "texts that replace themselves": "T | extend s = strrep('a', 200) "
    + "| extend s = replace_string(s, 'a', 'aaaaaaaa') " * 6,
    "an array in each row": "T | extend a = range(1, 1000000)",
    "an array of each row's number": "T | extend a = range(1, number * 1000)",
    "digits of each row's number": "T | extend h = tohex(1, number * 1000000)",
}


@pytest.mark.parametrize("query", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_is_refused(ask: Ask, query: str) -> None:
    with pytest.raises(KqlError) as wrong:
        ask(query).read_all()
    assert len(str(wrong.value)) < 2000


def test_a_long_chain_is_answered_or_refused_but_never_a_crash(ask: Ask) -> None:
    for links in (300, 2000):
        query = "T | where " + " or ".join(f"number == {at}" for at in range(links)) + " | count"
        try:
            assert ask(query).fetchall() == [(min(links, 1440),)]
        except KqlError as refused:
            assert refused.code in ("SYN0003", "General_BadRequest")


def test_the_depth_of_the_caller_does_not_matter(ask: Ask) -> None:
    def deeper(levels: int) -> str:
        if levels:
            return deeper(levels - 1)
        try:
            ask("print " + "(" * 30 + "1" + ")" * 30).read_all()
        except KqlError as refused:
            return refused.code
        return "answered"

    assert deeper(sys.getrecursionlimit() - 250) in ("answered", "SYN0003")


def test_what_people_write_is_not_too_large(ask: Ask) -> None:
    listed = ", ".join(f"'sensor-{at}'" for at in range(1000))
    assert ask(f"T | where device_id in ({listed}) | count").fetchall() != [(0,)]
    assert ask("T " + "| where number >= 0 " * 100 + "| count").fetchall() == [(1440,)]
    assert ask("range x from 1 to 1000000 step 1 | count").fetchall() == [(1_000_000,)]


def test_values_of_rows_do_not_take_the_memory_of_a_server(ask: Ask) -> None:
    before_mb = status_kb("VmHWM") / 1024
    rows = "range n from 1 to 100000 step 1"
    for query in (
        f"{rows} | extend s = strrep('x', n * 10) | summarize sum(strlen(s))",
        f"{rows} | extend s = strcat(tostring(n), strrep('ab', n % 32000)) | summarize max(s)",
        f"{rows} | extend a = range(1, n % 8000) | summarize sum(array_length(a))",
        f"{rows} | extend s = strrep('x', 60000) | where n % 2 == 0",
        f"{rows} | extend s = strrep('x', 1000000) | where n % 2 == 0",
    ):
        with suppress(LazyDeltaError):  # a refusal is as good
            for at, _ in enumerate(ask(query, memory_limit="128MB")):
                if at > 2:
                    break
    assert status_kb("VmHWM") / 1024 - before_mb < 700
    assert ask("print strlen(strrep('x', 1000000)), array_length(range(1, 1000000))").fetchall() == [
        (1_000_000, 1_000_000)
    ]
    joined = "T | extend a = strcat(device_id, '-', tostring(number)) " + "| extend a = strcat(a, '/') " * 30
    assert ask(f"{joined} | where number == 1 | project strlen(a) > 30").fetchall() == [(True,)]


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("range x from 1 to 7 step 3", [1, 4, 7]),
        ("range x from 3 to 1 step -1", [3, 2, 1]),
        ("range x from 1.0 to 2.2 step 0.5", [1.0, 1.5, 2.0]),
        ("range x from 1 to 0 step 1", []),
        ("let n = 2; range x from 1 to n step 1", [1, 2]),
    ],
)
def test_ranges_are_those_of_kusto(ask: Ask, query: str, values: list[float]) -> None:
    assert [value for (value,) in ask(query).fetchall()] == values
