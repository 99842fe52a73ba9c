"""What a query says of itself: what reached the scans, what did not, and what was read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import lazydelta as ld
from lazydelta.engines.query_report import QueryReport, ScanUse
from tests.support.row_tables import readings_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    return ld.open(readings_table(tmp_path_factory.mktemp("explain")))


def _only_scan(report: QueryReport) -> ScanUse:
    (used,) = report.tables
    (scan,) = used.scans
    return scan


def test_columns_and_filter_that_reached_the_scan_are_told(table: ld.Table) -> None:
    found = table.sql("select device from t where _event_hour = '2026021003' and device like '%1'")
    found.read_all()
    scan = _only_scan(found.explain())
    assert scan.columns == ["device"]
    assert (scan.pushed, scan.filter_is_exact) == ("_event_hour = '2026021003'", True)
    assert scan.report is not None and scan.report.rows is not None
    assert scan.report.files_skipped == {"partition": 7}
    assert (scan.report.files_emitted, scan.report.rows.rows_read) == (1, 30)
    assert scan.report.rows.bytes_read > 0
    assert any(text.startswith("FILTER") for text in found.explain().left_to_duckdb)


def test_what_only_arrow_can_decide_is_told_apart(table: ld.Table) -> None:
    found = table.sql("select id from t where value < 'nan'::double and id < 100")
    found.read_all()
    scan = _only_scan(found.explain())
    assert scan.filter is not None
    assert not scan.filter_is_exact or scan.pushed is not None


def test_a_limit_that_ends_the_scan_is_told(table: ld.Table) -> None:
    found = table.sql("select * from t limit 3 offset 2")
    found.read_all()
    scan = _only_scan(found.explain())
    assert (scan.columns, scan.row_limit) == (None, 5)
    found = table.sql("select * from t where device like '%1' limit 3")
    found.read_all()
    assert _only_scan(found.explain()).row_limit is None


def test_before_the_first_row_the_plan_is_told_and_nothing_read(table: ld.Table) -> None:
    found = table.sql("select device, max(id) from t group by device")
    report = found.explain()
    assert (report.is_finished, report.rows_emitted) == (False, 0)
    assert report.left_to_duckdb[0].startswith("HASH_GROUP_BY")
    (used,) = report.tables
    assert used.scans == []
    assert found.next() is not None
    assert found.explain().rows_emitted > 0
    assert len(found.explain().tables[0].scans) == 1


def test_a_query_that_was_left_tells_what_it_did(table: ld.Table) -> None:
    found = table.sql("select t.* from t, range(100000)")
    assert found.next() is not None
    found.close()
    report = found.explain()
    assert not report.is_finished
    assert report.rows_emitted > 0
    assert "(not finished)" in str(report)


def test_every_table_is_told_with_its_version_and_those_not_touched_are_not(table: ld.Table) -> None:
    old = ld.open(table.url, version=2)
    found = ld.sql("select count(*) from a join b using (id)", a=table, b=old, c=table)
    assert found.fetchall() == [(90,)]
    report = found.explain()
    assert {(used.name, used.version) for used in report.tables} == {("a", 7), ("b", 2)}
    text = str(report)
    assert "table a" in text and "table b" in text and "table c" not in text


def test_a_self_join_tells_each_scan(table: ld.Table) -> None:
    found = table.sql("select count(a.id) from t a, t b where a.id = b.id and b.value < 1")
    found.read_all()
    assert len(found.explain().tables[0].scans) == 2


def test_it_can_be_written_as_json_and_carries_no_credentials(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    found = ld.open(url, storage_options={"account_key": "c2VjcmV0"}).sql("select max(id) from t")
    found.read_all()
    written = msgspec.json.encode(found.explain())
    assert b"c2VjcmV0" not in written
    assert msgspec.json.decode(written)["tables"][0]["scans"][0]["report"]["rows"]["rows_read"] == 240
    assert "c2VjcmV0" not in str(found.explain())


def test_a_huge_filter_is_told_in_part(table: ld.Table) -> None:
    ids = ", ".join(map(str, range(0, 9000, 3)))
    found = table.sql(f"select count(id) from t where id in ({ids})")
    assert found.fetchall() == [(80,)]
    assert len(str(found.explain())) < 10_000


def test_a_statement_that_is_no_query_has_no_tables_to_tell(table: ld.Table) -> None:
    found = table.sql("create table c as select 1 as x")
    found.read_all()
    assert found.explain().tables == []
    assert "not one SELECT" not in str(found.explain())
