"""What a query may call its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.engines.kql.catalog import KqlCatalog, NamedTable, StoredFunction
from lazydelta.engines.kql.errors import KqlError
from lazydelta.engines.kql.run import run_kql
from lazydelta.engines.kql.translate import named_tables, translate
from tests.unit.engines.kql.conftest import Ask


@pytest.mark.parametrize(
    "source",
    [
        "T",
        "['T']",
        '["T"]',
        "table('T')",
        'table("T")',
        "table(@'T')",
        "external_table('T')",
        "external_table('T', 'AMapping')",
        "external_table( // the table\n 'T' )",
        "(T | where true)",
        "T // external_table('nothing')\n",
    ],
)
def test_a_table_is_named_in_all_these_ways(ask: Ask, source: str) -> None:
    assert ask(f"{source} | count").fetchall() == [(1440,)]


def test_names_with_odd_characters(telemetry: Path) -> None:
    table = ld.open(telemetry)
    for name in ("a b", "ä'ö", 'q"x', "a.b", "back\\slash", "select"):
        source = table.scan().source
        escaped = name.replace("\\", "\\\\").replace("'", "\\'")
        for written in (f"['{escaped}']", f"external_table('{escaped}')"):
            with run_kql(f"{written} | count", {name: source}) as found:
                assert found.fetchall() == [(1440,)], written


def test_tables_of_databases_are_those_that_the_catalog_says(telemetry: Path) -> None:
    schema = ld.open(telemetry).schema
    catalog = KqlCatalog(
        {"lake.T": schema, "U": schema},
        databases={"lake": {"T": "lake.T"}, "a b": {"U": "U"}},
        clusters=["here"],
    )
    for written, name in {
        "database('lake').T": "lake.T",
        "database('lake').table('T')": "lake.T",
        "database('lake').external_table('T')": "lake.T",
        "database('lake').['T']": "lake.T",
        "database('a b').U": "U",
        "cluster('here').database('lake').T": "lake.T",
        "cluster('https://HERE.kusto.windows.net/').database('lake').T": "lake.T",
        "table('U')": "U",
    }.items():
        assert translate(f"{written} | take 1", catalog).tables == (name,), written
    with pytest.raises(KqlError, match="there is no database 'lak'") as unknown:
        translate("database('lak').T", catalog)
    assert (unknown.value.code, unknown.value.line, unknown.value.column) == ("SEM0100", 1, 1)
    assert "did you mean lake?" in unknown.value.fix
    with pytest.raises(KqlError, match="there is no table 'X'"):
        translate("database('lake').X", catalog)
    with pytest.raises(KqlError, match="'production' is not this server"):
        translate("cluster('production').database('lake').T", catalog)


def test_unions_of_patterns_read_the_tables_that_match(telemetry: Path) -> None:
    tables = {"Events1": telemetry, "Events2": telemetry, "Other": Path("/nowhere")}
    found = ld.kql("union withsource=Name Ev* | summarize n = count() by Name", **tables)
    assert sorted(found.fetchall()) == [("Events1", 1440), ("Events2", 1440)]


def test_stored_functions_are_views_and_take_arguments(telemetry: Path) -> None:
    functions = [
        StoredFunction("Recent", "external_table('T') | where timestamp >= datetime(2026-02-10 23:00)"),
        StoredFunction("Below", "T | where number < most", "(most:long)"),
    ]
    with ld.kql("Recent | where number >= 1430", T=telemetry, functions=functions) as found:
        assert found.read_all().num_rows == 10
        assert found.report().files_read == 1
    assert ld.kql("Recent() | count", T=telemetry, functions=functions).fetchall() == [(60,)]
    assert ld.kql("Below(7) | count", T=telemetry, functions=functions).fetchall() == [(7,)]


def test_only_tables_that_a_query_may_name_are_opened(telemetry: Path) -> None:
    assert ld.kql("A | count", A=telemetry, B="/nowhere").fetchall() == [(1440,)]


def test_names_are_found_before_anything_is_opened() -> None:
    found = named_tables("let x = database('db').A; external_table('B') | join (C) on id | union D*, ['e f']")
    assert {
        NamedTable("A", "db"),
        NamedTable("B"),
        NamedTable("C"),
        NamedTable("D*"),
        NamedTable("e f"),
    } <= set(found)
    assert NamedTable("Data*").is_of("Database")
    assert not NamedTable("Data").is_of("Database")


def test_a_let_hides_a_table(ask: Ask) -> None:
    assert ask("let T = datatable(number:long)[1, 2]; T | count").fetchall() == [(2,)]
    assert ask("let T = T | take 3; T | count").fetchall() == [(3,)]


@pytest.mark.parametrize(
    "query",
    [
        "L | join kind=inner (R) on k",
        "L | join kind=fullouter (R) on k | count",
        "L | lookup (R) on k",
        "L | union R",
        "union L, R",
        "union withsource=K L",
    ],
)
def test_columns_that_differ_by_case_alone_are_refused_at_the_end_of_a_query_too(query: str) -> None:
    lets = "let L = datatable(a:long, k:string)[1, 'x']; let R = datatable(A:long, k:string)[9, 'x'];"
    with pytest.raises(KqlError, match="differ only in case"):
        run_kql(f"{lets} {query}", {})


def test_names_that_differ_by_case_alone_may_meet_where_one_of_them_goes() -> None:
    lets = "let L = datatable(a:long, k:string)[1, 'x']; let R = datatable(A:long, v:string)[1, 'q'];"
    assert run_kql(f"{lets} L | lookup (R) on $left.a == $right.A", {}).fetchall() == [(1, "x", "q")]
    assert run_kql(f"{lets} L | join kind=leftsemi (R) on $left.a == $right.A", {}).fetchall() == [(1, "x")]
