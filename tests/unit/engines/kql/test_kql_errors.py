"""What is wrong with a query, with Kusto's code and the place."""

from __future__ import annotations

import pickle

import pytest

from lazydelta.engines.kql.errors import KqlError, UnsupportedKqlError
from lazydelta.engines.kql.run import run_kql
from lazydelta.errors import InvalidRequestError
from tests.unit.engines.kql.conftest import Ask

# The query; code, line, column; what it says; what the fix says.
WRONG = [
    ("T | wher number == 1", "SYN0002", 1, 5, "'wher' is no operator", "did you mean where?"),
    ("T\n| where number ==", "SYN0002", 2, 18, "does not parse", "expected here"),
    ("T | where (number == 1", "SYN0002", 1, 11, "'(' is not closed", "close it"),
    ("T | where number == 1)", "SYN0002", 1, 22, "closes no bracket", "leave it out"),
    ("T | where number number", "SYN0002", 1, 18, "does not parse", "expected here"),
    ("T | where count() > 1", "SEM0001", 1, 11, "count() is an aggregate", "aggregate before"),
    (
        "T | project number, 1 + sum(number)",
        "SEM0001",
        1,
        25,
        "sum() is an aggregate",
        "summarize x = sum(…)",
    ),
    ("T | project sum(number)", "SEM0001", 1, 13, "sum() is an aggregate", "summarize x = sum(…)"),
    ("T | top 3 by max(number)", "SEM0001", 1, 14, "max() is an aggregate", "summarize x = max(…)"),
    ("print dcountif(1, true)", "SEM0001", 1, 7, "dcountif() is an aggregate", "summarize"),
    ("let s = sum(1); T | extend s", "SEM0001", 1, 13, "sum() is an aggregate", "summarize"),
    ("T | where number in ((T | extend count()))", "SEM0001", 1, 34, "count() is an aggregate", "before"),
    ("T | summarize percentile(number, -1)", "SEM0064", 1, 34, "a number from 0 to 100", "such a number"),
    ("T | summarize percentiles(number, 5, 101)", "SEM0064", 1, 38, "a number from 0 to 100", "such"),
    ("T | summarize percentiles_array(number, dynamic([5, -5]))", "SEM0064", 1, 41, "from 0 to 100", "such"),
    ("T | summarize make_list(number, -2)", "SEM0064", 1, 33, "a number from 0 on", "such a number"),
    ("T | summarize make_set_if(number, true, -2)", "SEM0064", 1, 41, "a number from 0 on", "such a number"),
    ("T | top -1 by number", "SEM0001", 1, 9, "whole number from 0 on", "without it"),
    ("", "SYN0002", None, None, "the query is empty", "write one"),
    ("// nothing", "SYN0002", None, None, "the query is empty", "write one"),
    ("Tt | take 1", "SEM0100", 1, 1, "there is no table 'Tt'", "did you mean T?"),
    (
        "T | join (external_table('X')) on number",
        "SEM0100",
        1,
        11,
        "there is no table 'X'",
        "the tables are: T",
    ),
    ("T | where numbre == 1", "SEM0100", 1, 11, "there is no column 'numbre'", "did you mean number?"),
    ("T\n| project\n  Number", "SEM0100", 3, 3, "there is no column 'Number'", "did you mean number?"),
    ("T | extend x = 1 | where y > 1", "SEM0100", 1, 26, "there is no column 'y'", "the columns are"),
    ("T | project-rename x = valu", "SEM0100", 1, 24, "there is no column 'valu'", "did you mean value?"),
    ("T | join (T) on numbr", "SEM0100", 1, 17, "there is no column 'numbr'", "did you mean number?"),
    ("T | project-keep zz*", "SEM0100", 1, 5, "no column would be left", "mend"),
    ("T | project by", "SYN0002", 1, 15, "does not parse", "that name is written ['by']"),
    ("T | where", "SYN0002", 1, 5, "nothing stands after 'where'", "where x > 1"),
    ("T | project | take 1", "SYN0002", 1, 5, "nothing stands after 'project'", "project x"),
    ("T | join (T | project-away) on number", "SYN0002", 1, 15, "nothing stands after", "project-away x"),
    ("T | project title", "SYN0002", 1, 18, "does not parse", "that name is written ['title']"),
    ("T | order by count", "SYN0002", 1, 5, "cannot be read", "that name is written ['count']"),
    ("T | where kind == 1", "SYN0002", 1, 5, "cannot be read", "that name is written ['kind']"),
    ("T | where device_id == 'a", "SYN0002", 1, 24, "begins with ' is not closed", "close it with '"),
    ("T | project number, value, number", "SEM0034", 1, 28, "two columns are named 'number'", "another name"),
    ("T | extend x = value, y = value, x = 1", "SEM0034", 1, 34, "two columns are named 'x'", "another name"),
    ("T | join (T | project x=1, x=2) on x", "SEM0034", 1, 28, "two columns are named 'x'", "another name"),
    ("T | parse-kv device_id as (x:long)", "SEM0001", 1, 5, "parse-kv is not supported", "docs/kql.md"),
    ("macro-expand G as X (X.T)", "SEM0001", 1, 1, "macro-expand is not supported", "docs/kql.md"),
    ("print strlenn('a')", "SEM0001", 1, 7, "none of this name here; did you mean strlen?", "docs/kql.md"),
    ("T | where value == 'x'", "SEM0064", 1, 11, "Cannot compare values of types real and string", "toreal"),
    (
        "T | where device_id > 5",
        "SEM0064",
        1,
        11,
        "of types string and long. Try adding explicit casts",
        "tolong",
    ),
    ("T | where timestamp > '2026-02-10'", "SEM0064", 1, 11, "of types datetime and string", "todatetime(…)"),
    (
        "T | extend x = device_id * 2",
        "SEM0064",
        1,
        16,
        "The operator '*' is not defined for the operand types string and long.",
        "convert one side",
    ),
    ("T | evaluate bag_unpack(value)", "SEM0001", 1, 5, "evaluate is not supported", "docs/kql.md"),
    (
        "T | extend x = no_such(value)",
        "SEM0001",
        1,
        16,
        "the function no_such is not supported",
        "docs/kql.md",
    ),
    (
        "set query_datetimescope_column='x'; T",
        "SEM0001",
        1,
        1,
        "set query_datetimescope_column",
        "docs/kql.md",
    ),
    (".create table X (a:long)", "SEM0001", 1, 1, ".create is not supported", "write a query"),
    (".drop table T", "SEM0001", 1, 1, "only queries run here", "write a query"),
    ("  .ingest into table T", "SEM0001", 1, 3, "only queries run here", "write a query"),
    ("external_table(name) | take 1", "SEM0001", 1, 1, "external_table", "docs/kql.md"),
    (
        "external_table() | take 1",
        "SEM0100",
        1,
        1,
        "needs the name of a table",
        "write external_table('name')",
    ),
    (
        "datatable(a:long)[9223372036854775807, 1] | summarize sum(a)",
        "General_BadRequest",
        None,
        None,
        "larger than a long holds",
        "sum(toreal(x))",
    ),
    ("print tolong(9223372036854775807) + 1", "General_BadRequest", None, None, "out of range", "mend"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=[one[0] for one in WRONG])
def test_an_error_says_what_and_where_and_what_to_do(
    ask: Ask, wrong: tuple[str, str, int | None, int | None, str, str]
) -> None:
    query, code, line, column, what, fix = wrong
    with pytest.raises(KqlError) as raised:
        ask(query).read_all()
    error = raised.value
    assert (error.code, error.line, error.column) == (code, line, column)
    assert what in error.what
    assert fix in error.fix
    assert error.exit_code == 2
    if line is not None:
        assert error.where.startswith(f"KQL, line {line}, column {column}: ")


def test_an_unsupported_part_is_named(ask: Ask) -> None:
    with pytest.raises(UnsupportedKqlError) as wrong:
        ask("T | facet by device_id")
    assert wrong.value.operator.startswith("facet")


def test_errors_survive_pickling(ask: Ask) -> None:
    for query in ("T | facet by device_id", "T | where numbre == 1"):
        with pytest.raises(KqlError) as wrong:
            ask(query)
        again = pickle.loads(pickle.dumps(wrong.value))
        assert (str(again), again.args, type(again)) == (
            str(wrong.value),
            wrong.value.args,
            type(wrong.value),
        )


def test_a_query_that_is_no_text_is_refused(ask: Ask) -> None:
    with pytest.raises(InvalidRequestError) as wrong:
        ask(5)
    assert wrong.value.fix == "give KQL as text"


def test_the_hint_of_an_unknown_column_lists_columns_alone() -> None:
    query = "let L = datatable(k:long)[1]; let R = datatable(j:long)[1]; L | join kind=inner (R) on k"
    with pytest.raises(KqlError) as caught:
        run_kql(query, {})
    assert caught.value.fix == "the columns are: j"
