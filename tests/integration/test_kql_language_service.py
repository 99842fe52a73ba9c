"""Microsoft's own parser agrees: what we accept it accepts, with our columns; and the other way round."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lazydelta.engines.kql.columns import kql_type
from lazydelta.engines.kql.errors import MISMATCH, SYNTAX, KqlError
from lazydelta.engines.kql.translate import KqlCatalog, translate
from tests.property.test_kql_against_sql import ORDERED, PAIRS
from tests.property.test_kql_against_sql import SCHEMA as PAIRED
from tests.support.kql_cases import cases
from tests.support.kql_session import kql_session
from tests.support.kusto_language_service import UNKNOWN_NAME_CODES, Verdict, verdicts
from tests.unit.engines.kql.test_kql_kinds import MISMATCHES
from tests.unit.engines.kql.test_kql_kinds import ROWS as MIXED

# The vendored grammar of the translation library is older than these.
NEWER_THAN_THE_GRAMMAR = ("parse-kv",)
BROKEN = (
    "T |",
    "T | where",
    "T | where a >",
    "T | where (a > 1",
    "T | summarize by",
    "T | project a,",
    "T | extend x = ",
    "T | take",
    "T | top 3",
    "T | sort",
    "T | join (U",
    "let x = ; T",
    "T | where a == 'x",
    "T | wherex a",
    "T T",
    "datatable(a:long)[1",
    "print 1 +",
    "range x from 1 to",
    "T | summarize count( by a",
    "T | mv-expand",
    "| where a",
    "T || take 1",
    "T | project a b",
)
# Of every type of column, what comes out of operators and functions.
TYPED = (
    "V | project x = a / g, y = e / a, v = a * f, u = c - c, q = a + e, p = g * 1.0",
    "V | project s = g + g, d = g - g, p = g * g, q = g / g, m = g % g, n = -g, x = g + 1, y = g + a, z = g",
    "V | project a1 = abs(g), a2 = ceiling(a), a3 = ceiling(e), a4 = log(a), a5 = sqrt(a), a6 = pow(a, 2)",
    "V | project bin(a, 2), bin(e, 2), bin(f, 1h), bin(c, 1h), floor(a, 2)",
    "V | project x1 = strlen(b), x2 = indexof(b, 'x'), x3 = countof(b, 'x'), x4 = tolong(b), x5 = toint(b)",
    "V | project x1 = array_length(d), x2 = datetime_diff('day', c, c), x3 = dayofweek(c), x4 = hourofday(c)",
    "V | project x1 = getyear(c), x2 = dayofmonth(c), x3 = monthofyear(c), x4 = week_of_year(c)",
    "V | summarize count(), dcount(a), avg(a), avg(e), avg(f), min(c), max(f), min(g), stdev(a), variance(e)",
    "V | summarize percentile(a, 50), percentile(e, 50), percentile(f, 50), percentiles(e, 5, 99.5)",
    "V | summarize make_list(a), make_set(b), make_bag(d), make_list_if(a, h), percentiles_array(e, 5, 95)",
    "V | summarize arg_max(a, b, e), arg_min(c, *) by h",
    "V | summarize take_any(*) by b",
    "V | summarize take_any(a, b), any(e)",
    "V | summarize sum(a), sum(g), sum(e), sumif(g, h), binary_all_or(a), covariance(a, e), countif(h) by b",
    "V | make-series n = count() default = 0, avg(e) on c from datetime(2026-01-01) to datetime(2026-01-02) "
    "step 1h by b",
    "V | search 'x'",
    "V | where * has 'x'",
    "V | mv-expand d",
    "V | mv-expand d to typeof(long), x = d",
    "V | parse b with * 'x' y:long 'z' w",
    "V | sample-distinct 3 of b",
    "V | sort by a | project x = prev(a), y = next(b), i = row_number(), s = row_cumsum(e)",
    "V | extend x = bag_keys(d), y = set_union(d, d), z = d[0], w = d.a, v = pack_all(), u = parse_json(b)",
    "V | extend x = format_datetime(c, 'yyyy'), y = format_timespan(f, 'hh'), z = tostring(d)",
    "V | extend x = todatetime(b), y = totimespan(b), z = tobool(b), w = toguid(b), v = toreal(b)",
    "V | lookup kind=leftouter (V | project a, other = b) on a",
    "V | join kind=leftouter (V) on a | project-away *1",
    "V | top 3 by e | distinct a, b | count",
    "print x = 1, y = 1.5, z = 'a', w = 1h, v = datetime(2026-01-01), u = dynamic([1]), t = true, s = int(1)",
    "range x from 1 to 3 step 1 | extend y = x * 1s",
)
# Of functions, the letters of the columns of `V` that each argument may be of; the first call is a right one.
ARGUMENTS = {
    "array_index_of(d, a, g)": ("d", "abcdefgh", "ag"),
    "array_rotate_left(d, a)": ("d", "ag"),
    "array_split(d, a)": ("d", "adg"),
    "bag_merge(d, d, d)": ("d", "d", "d"),
    "bag_remove_keys(d, d)": ("d", "d"),
    "base64_encode_fromarray(d)": ("d",),
    "bitset_count_ones(a)": ("ag",),
    "datetime_local_to_utc(c, b)": ("c", "bd"),
    "endofday(c, a)": ("c", "ag"),
    "format_ipv4(b, a)": ("abcdefgh", "ag"),
    "has_any_index(b, d)": ("bd", "d"),
    "has_any_ipv4(b, b, b)": ("bd", "bd", "bd"),
    "has_ipv4(b, b)": ("bd", "bd"),
    "hash_md5(b)": ("abcefgh",),
    "indexof(b, b, a)": ("abcdefgh", "abcdefgh", "ag"),
    "ipv4_compare(b, b, a)": ("bd", "bd", "ag"),
    "ipv4_is_in_range(b, b)": ("bd", "bd"),
    "ipv4_is_private(b)": ("bd",),
    "jaccard_index(d, d)": ("d", "d"),
    "parse_ipv4_mask(b, a)": ("bd", "ag"),
    "replace_strings(b, d, d)": ("bd", "d", "d"),
    "series_abs(d)": ("d",),
    "series_add(d, d)": ("adeg", "adeg"),
    "series_cosine_similarity(d, d)": ("d", "d"),
    "series_fill_const(d, a)": ("d", "aeg"),
    "series_stats_dynamic(d)": ("d",),
    "split(b, b, a)": ("abcdefgh", "bd", "ag"),
    "startofweek(c, a)": ("c", "ag"),
    "toguid(b)": ("bd",),
    "unicode_codepoints_to_string(a)": ("adg",),
    "url_encode_component(b)": ("bd",),
}
TABLE = "(a:long, b:string, c:datetime, d:dynamic, e:real, f:timespan, g:int, h:bool)"
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("c", pa.timestamp("us", "UTC")),
        ("d", pa.list_(pa.string())),
        ("e", pa.float64()),
        ("f", pa.duration("us")),
        ("g", pa.int32()),
        ("h", pa.bool_()),
    ]
)


def _arguments() -> dict[str, bool]:
    """Calls with each argument of each type, and whether it is a right one."""
    expected = {}
    for call, places in ARGUMENTS.items():
        name, _, inside = call.partition("(")
        given = inside.removesuffix(")").split(", ")
        for place, letters in enumerate(places):
            for letter in "abcdefgh":
                written = ", ".join([*given[:place], letter, *given[place + 1 :]])
                expected[f"V | extend z = {name}({written})"] = letter in letters
    return expected


@pytest.fixture(scope="module")
def told() -> dict[str, list[Verdict]]:
    """What it says of all queries of these tests, by one process."""
    paired = {"T": _as_kql(PAIRED), "U": _as_kql(PAIRED), "V": TABLE}
    asked: dict[str, tuple[list[str], dict[str, str]]] = {
        "cases": ([case["query"] for case in cases()], {}),
        "tables": ([*PAIRS, *ORDERED, *TYPED], paired),
        "mismatches": ([query for query, *_ in MISMATCHES], {"T": _as_kql(MIXED.schema)}),
        "arguments": ([*_arguments()], {"V": TABLE}),
        "broken": ([*BROKEN], {"T": TABLE, "U": TABLE}),
    }
    said = iter(verdicts([(query, tables) for queries, tables in asked.values() for query in queries]))
    return {name: [next(said) for _ in queries] for name, (queries, _) in asked.items()}


def test_every_query_of_the_cases_that_we_answer_parses_there(told: dict[str, list[Verdict]]) -> None:
    refused = {
        case["id"]: one.errors
        for case, one in zip(cases(), told["cases"], strict=True)
        if "refused" not in case and one.errors and not _is_about_names(one)
    }
    # Its binder knows no make_timespan of four parts.
    refused.pop("make-timespan-function-0", None)
    assert refused == {}


def test_the_columns_of_the_cases_are_those_that_it_tells(told: dict[str, list[Verdict]]) -> None:
    others = {
        case["id"]: (case["columns"], one.columns)
        for case, one in zip(cases(), told["cases"], strict=True)
        if one.columns and "mended" not in case and not one.errors
        if [tuple(column) for column in case["columns"]] != one.columns
    }
    assert others == {}


def test_queries_over_a_table_give_the_columns_that_it_tells(told: dict[str, list[Verdict]]) -> None:
    queries, said = [*PAIRS, *ORDERED, *TYPED], told["tables"]
    assert {
        query: verdict.errors for query, verdict in zip(queries, said, strict=True) if verdict.errors
    } == {}
    with kql_session() as session:
        session.give({"T": PAIRED.empty_table(), "U": PAIRED.empty_table(), "V": SCHEMA.empty_table()})
        ours = {query: [(column.name, column.type) for column in session.columns(query)] for query in queries}
    theirs = {query: verdict.columns for query, verdict in zip(queries, said, strict=True)}
    assert {query: (ours[query], theirs[query]) for query in queries if ours[query] != theirs[query]} == {}


def test_types_that_do_not_go_together_here_do_not_there(told: dict[str, list[Verdict]]) -> None:
    queries = [query for query, *_ in MISMATCHES]
    kinder = {query for query, one in zip(queries, told["mismatches"], strict=True) if not one.errors}
    # The service itself refuses these: it says so when they run.
    assert kinder <= {
        "T | summarize x = sum(r) | where x == 'a'",
        "datatable(a:long)[1] | where a == 'x'",
        "T | extend x = d[0] + 1",
        "T | where d[0] == d[1]",
        "T | where n in ('a')",
        "T | where n in (T | project s)",
        "T | extend x = iff(ok, 1, 'a')",
        "T | extend x = case(ok, n, s)",
        "let x = 5; T\n| where s == x",
        "T | mv-expand d | where d + 1 > 2",
        "T | where d[0] > 'x'",
    }


def test_arguments_are_of_the_types_that_it_takes(told: dict[str, list[Verdict]]) -> None:
    expected = _arguments()
    theirs = {query: not one.errors for query, one in zip(expected, told["arguments"], strict=True)}
    assert {query: said for query, said in theirs.items() if said != expected[query]} == {}
    catalog = KqlCatalog({"V": SCHEMA})
    assert [query for query, is_right in expected.items() if _is_mismatch(query, catalog) == is_right] == []


def test_what_does_not_parse_here_does_not_parse_there(told: dict[str, list[Verdict]]) -> None:
    ours = [query for query in BROKEN if _is_syntax_error(query)]
    assert ours == list(BROKEN)
    kinder = [query for query, one in zip(BROKEN, told["broken"], strict=True) if not one.errors]
    assert kinder == []


def test_a_case_that_we_refuse_as_no_kql_is_newer_than_the_grammar() -> None:
    strangers = [
        case["id"]
        for case in cases()
        if _is_syntax_error(case["query"]) and case["refused"] not in NEWER_THAN_THE_GRAMMAR
    ]
    assert strangers == []


@pytest.mark.parametrize("query", BROKEN)
def test_a_query_that_does_not_parse_says_where(query: str) -> None:
    with pytest.raises(KqlError) as caught:
        translate(query, KqlCatalog({"T": SCHEMA, "U": SCHEMA}))
    assert caught.value.code == SYNTAX
    assert caught.value.line is not None


def _as_kql(schema: pa.Schema) -> str:
    return "(" + ", ".join(f"{field.name}:{kql_type(field.type)}" for field in schema) + ")"


def _is_syntax_error(query: str) -> bool:
    try:
        translate(query, KqlCatalog({"T": SCHEMA, "U": SCHEMA}))
    except KqlError as error:
        return error.code == SYNTAX
    return False


def _is_mismatch(query: str, catalog: KqlCatalog) -> bool:
    try:
        translate(query, catalog)
    except KqlError as error:
        assert error.code == MISMATCH, query
        return True
    return False


def _is_about_names(verdict: Verdict) -> bool:
    return all(code in UNKNOWN_NAME_CODES for code, _, _ in verdict.errors)
