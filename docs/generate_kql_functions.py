"""Write docs/kql-functions.md: which parts of KQL are answered, and how the documented examples come out.

    python docs/generate_kql_functions.py

Contract: the names are those that a translation knows while it runs, and the counts are those of the cases in
tests/kql_cases, whose every status `tests/unit/engines/test_kql_documented.py` holds against a run.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "kql-functions.md"
sys.path.insert(0, str(PAGE.parents[1]))
_HEAD = """# Operators and functions of KQL

What is answered and what is refused. Written by `python docs/generate_kql_functions.py`; a test compares.
The translation is that of the library duckdb-kql, whose
authors measured Kusto's emulator; what it lacks or does otherwise than Kusto documents is added in
`lazydelta/engines/kql`, and listed here.

## The documented examples

Each example of Kusto's documentation that brings its own rows is a case (`tests/kql_cases`): its query, the
columns with the types that Microsoft's own parser tells, and the rows that the page shows. A test runs all of
them: an answer is right, or the query is refused by the name of what is not supported. Nothing is answered
wrongly. *To the microsecond* means that the page shows a datetime's seventh digit, which is not kept here.
Left out are examples by chance or of the present time, and misprints, each with its reason in the data;
examples over tables that the page does not show are no cases.

"""
_OPERATORS = (
    "where project project-away project-rename project-reorder project-keep extend summarize top sort order "
    "take limit distinct count join lookup union let mv-expand parse parse-where make-series render as "
    "getschema sample sample-distinct print range datatable materialize toscalar search serialize invoke"
)
_TESTS = """
## Tests

- `tests/unit/engines/test_kql_documented.py`: the documented examples.
- `tests/property/test_kql_against_sql.py`: the main operators against SQL written by hand, over random rows
  with nulls and over none.
- `tests/integration/test_kql_language_service.py`: Microsoft's own parser, from npm, accepts what is accepted
  here and tells the same columns with the same types, before a query runs as after it; what does not parse
  here, and types that do not go together, are refused there, too.
- `tests/unit/engines/kql`: types, NaN, nulls and decimals, regular expressions, names, bounds, errors with
  their places.
"""
_LIMITS = """
## Where it differs by design

- A datetime is kept to the microsecond, not to 100 ns: its seventh digit is cut where it is shown or
  calculated with, and `endofday` and its relatives give the last microsecond before the next day; a
  comparison with either is exact. A timespan with a seventh digit is refused.
- `dcount`, `percentile` and their relatives are exact, where Kusto estimates.
- Columns of one name and several types become `x_long` and `x_string` in a `union`, as in Kusto; with
  `kind=inner`, and with `withsource` where the first table has such a column, they are refused.
- Whole numbers that overflow are an error, where Kusto wraps.
- Functions of a row's neighbours need rows in order (`sort`, `top`, `serialize`, `range`, `datatable`), as in
  Kusto; the rows of a table have none.
- NaN compares false with everything and stands beside null in an order, as Kusto documents; `max` and
  `arg_max` pass over it unless there is nothing else, of which its documentation says nothing. As a key of
  groups and joins it equals itself.
- Decimals have 38 digits and are exact or refused: quotients, `avg` and `round` of them, and reals beside
  them that are no literals, are not supported. `todecimal` of a text that is no literal holds 21 digits
  before the point and 17 after it; more is an error.
- Regular expressions run in RE2, with Unicode's `\\w`, `\\d` and `\\s` as Kusto documents them. `\\b` is
  exact at the ends of a pattern beside a word (`\\berror\\b`) in `matches regex` and of groups in `extract`;
  elsewhere it is an error of a row whose words are not ASCII. Classes with `&&`, `--`, `~~` or classes inside
  are refused.
- `=~`, `has`, `contains` and their relatives fold cases by Unicode; Kusto promises it of ASCII only.
- Types are Kusto's all along the query: what it does not compare, add or group by is refused with its place.
  Texts are ordered by `<`, `>` and `between` here, which Kusto refuses; numbers and truths, ids and texts are
  not compared here, which it does.
- A dynamic beside a number is compared by the number that it holds, and so is what an array holds in
  `x in (array)`. Where that is a truth, or a text that reads as a number, it is an error of the row: write
  `tolong(x.a) == 1`.
- A dynamic equals a datetime, a timespan or a bool where it holds one: a text that reads so, a truth or a
  whole number; anything else is unequal to it. `<` and its relatives are refused there, as by Kusto: write
  `todatetime(x.a) < now()`.
- `trim('-', '--a--')` is `-a-`: one match goes at each end, as the emulator has it, whose pattern is
  `^(-)|(-)$`; `trim('-+', …)` takes all. Kusto's page on `trim` says all matches in one place and the match
  in another. `mv-expand x to typeof(long)` cuts 3.7 to 3, and what is no number is null.
- A column cannot be renamed to the name of another (`project-rename`) that keeps it.
- Columns of one result whose names differ by case alone (`a`, `A`) are refused.
- Weighted percentiles take up to 10,000 rows a group; `make-series` gives up to 1,048,576 steps, and more is
  an error, as is a step that is not greater than 0.
"""


def page() -> str:
    """The page as it should be."""
    from tests.support.kql_cases import all_cases

    cases = all_cases()
    return _HEAD + _counts(cases) + _refused(cases) + _supported(cases) + _added() + _LIMITS + _TESTS


def _counts(cases: tuple[dict[str, Any], ...]) -> str:  # Any: JSON
    from tests.support.kql_cases import FOLDER, topic_cases

    rows = []
    total: Counter[str] = Counter()
    for path in sorted(FOLDER.glob("*.json")):
        counted = Counter(_status(case) for case in topic_cases(path))
        total += counted
        rows.append((path.stem, counted))
    rows.append(("**all**", total))
    assert sum(total.values()) == len(cases)
    lines = [
        f"| {name} | {counted['right']} | {counted['cut']} | {counted['refused']} | 0 "
        f"| {counted['left out']} |\n"
        for name, counted in rows
    ]
    head = "| topic | right | right to the microsecond | refused | wrong | left out |\n"
    return head + "|---|---|---|---|---|---|\n" + "".join(lines)


def _status(case: dict[str, Any]) -> str:  # Any: JSON
    if "left_out" in case:
        return "left out"
    if "refused" in case:
        return "refused"
    return "cut" if "cut" in case else "right"


def _refused(cases: tuple[dict[str, Any], ...]) -> str:  # Any: JSON
    counted = Counter(case["refused"] for case in cases if "refused" in case)
    names = ", ".join(f"`{name}` ({count})" for name, count in sorted(counted.items()))
    return f"\nRefused, by what the error names, with the number of examples: {names}.\n"


def _supported(cases: tuple[dict[str, Any], ...]) -> str:  # Any: JSON
    from duckdb_kql import translate
    from duckdb_kql.translate import functions

    from lazydelta.engines.kql import windows
    from lazydelta.engines.kql.library import extended

    with extended():
        scalars = {*functions.SCALAR_FUNCTIONS, *translate._SPECIAL_FORMS, *windows.NAMES}
        aggregates = set(functions.AGGREGATE_FUNCTIONS)
    examples = _examples(cases)
    internal = {"bag_pack_present_columns", "pack_all"}
    refused = {case["refused"] for case in cases if "refused" in case} - set(examples)
    shown = [name for name in scalars - aggregates - internal - refused if " " not in name]
    return (
        "\n## What is answered\n\nIn brackets: documented examples that come out right.\n\n"
        f"**Operators and statements**: {_listed(_OPERATORS.split(), examples)}.\n\n"
        f"**Aggregates**: {_listed(sorted(name for name in aggregates if ' ' not in name), examples)}.\n\n"
        f"**Functions**: {_listed(sorted([*shown, 'pack_all']), examples)}.\n\n"
        "**Operators in expressions**: `== != =~ !~ < <= > >= + - * / % and or in !in in~ !in~ between "
        "!between has !has has_cs has_any has_all hasprefix hassuffix contains startswith endswith` with "
        "their negations and `_cs` forms, `matches regex`, access to dynamic values "
        "(`d.a`, `d['a']`, `d[0]`).\n"
    )


def _examples(cases: tuple[dict[str, Any], ...]) -> Counter[str]:  # Any: JSON
    """Right examples by the name that their page is about."""
    return Counter(_subject(case["id"]) for case in cases if _status(case) in ("right", "cut"))


def _subject(case_id: str) -> str:
    name = re.sub(r"(-\d+)+$", "", case_id)
    for ending in ("-aggregation-function", "-function"):
        if name.endswith(ending):
            return name.removesuffix(ending).replace("-", "_")
    return re.sub(r"-(operator|statement)$", "", name)


def _listed(names: list[str], examples: Counter[str]) -> str:
    return ", ".join(f"`{name}`" + (f" ({examples[name]})" if examples[name] else "") for name in names)


def _added() -> str:
    from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS

    from lazydelta.engines.kql import added, lowering, mends, summaries, windows

    ours: dict[str, set[str]] = defaultdict(set)
    for name in {*added.functions(), *windows.NAMES} - {"bag_pack_present_columns", "row_window_session"}:
        ours["mended" if name in SCALAR_FUNCTIONS else "added"].add(name)
    for name in {**added.special_forms(), **mends.functions(), **mends.special_forms()}:
        if name in SCALAR_FUNCTIONS:
            ours["mended"].add(name)
    for name in {**added.aggregates(), **mends.aggregates(), **summaries.aggregates()}:
        if " " not in name:
            ours["mended" if name in AGGREGATE_FUNCTIONS else "added"].add(name)
    operators = sorted(lowering.OPERATORS_READ)
    texts = {kind: ", ".join(f"`{name}`" for name in sorted(names)) for kind, names in ours.items()}
    return (
        "\n## What is added to the library\n\n"
        f"Functions: {texts['added']}.\n\nOperators: {', '.join(f'`{name}`' for name in operators)}; also "
        "`where * has`, tabular functions and views of `let`, named arguments, `typeof()` in `extract`.\n\n"
        "## What is mended in the library\n\n"
        f"Functions: {texts['mended']}. A real divided by zero is infinite where it is a column, too; a text "
        "is never null after an outer join, in a union, or as `min` and `max` of nothing; sizes of "
        "`make_list` and `make_set` count; `bin` of times is exact below a second; texts have `\\u` "
        "escapes and the form of several lines; several names before one expression are refused instead of "
        "read as the first; `in` beside a dynamic compares in the value's type, and an array may be a column "
        "or a call.\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
