"""Tables that other engines wrote, by SQL: whoever reads the files, the rows are those of the scan."""

from __future__ import annotations

import pytest

import lazydelta as ld
from lazydelta import limits
from tests.golden.test_golden_rows import WITH_ROWS, counted, rows_of
from tests.golden.test_golden_tables import needs_golden, table_folder

pytestmark = needs_golden


@pytest.mark.parametrize("name", WITH_ROWS)
def test_sql_gives_the_rows_of_the_scan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ld.open(str(table_folder(name)))
    expected = counted(rows_of(table))
    for bytes_min in (0, limits.NUMBER_MAX):
        monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", bytes_min)
        found = table.sql("select * from t")
        assert bytes_min == 0 or found.handed_over is None
        rows = found.read_all()
        assert rows.column_names == table.schema.names
        assert counted(rows) == expected


def test_some_are_handed_over_and_some_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", 0)
    handed_over = set()
    for name in WITH_ROWS:
        with ld.open(str(table_folder(name))).sql("select * from t") as found:
            handed_over.add(found.handed_over)
    assert handed_over == {"t", None}
