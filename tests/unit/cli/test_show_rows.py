"""Rows in each format, written by the command's own function."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.cli.show_rows import show_rows
from lazydelta.errors import InvalidRequestError
from tests.support.row_tables import readings_table

ODD_VALUES = (
    "select '\\xFF'::blob as b, interval 1 day as i, union_value(n := 5) as u, map {1: 'NaN'::double} as m, "
    "'infinity'::timestamp as t, timestamptz '20000-01-01 00:00:00Z' as z, ['NaN'::double, null] as l"
)
AS_TEXT = ["/w==", "P1D", "5", '{"1":"NaN"}', "infinity", "20000-01-01 00:00:00.000000Z", '["NaN",null]']


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    return ld.open(readings_table(tmp_path_factory.mktemp("show"), hours=1))


def test_odd_values_in_json_lines(readings: ld.Table, tmp_path: Path) -> None:
    show_rows(readings.sql(ODD_VALUES), format_="jsonl", output=str(tmp_path / "o"))
    assert json.loads((tmp_path / "o").read_text()) == {
        "b": "/w==",
        "i": "P1D",
        "u": 5,
        "m": {"1": "NaN"},
        "t": "infinity",
        "z": "20000-01-01T00:00:00.000000Z",
        "l": ["NaN", None],
    }


def test_odd_values_in_csv(readings: ld.Table, tmp_path: Path) -> None:
    show_rows(readings.sql(ODD_VALUES), format_="csv", output=str(tmp_path / "o"))
    with (tmp_path / "o").open(newline="") as file:
        assert list(csv.reader(file)) == [["b", "i", "u", "m", "t", "z", "l"], AS_TEXT]


def test_odd_values_in_a_table(readings: ld.Table, capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(readings.sql(ODD_VALUES), format_="table", output=None)
    assert capsys.readouterr().out.splitlines()[1].split("  ") == AS_TEXT


def test_what_parquet_cannot_hold_is_told_and_leaves_no_file(readings: ld.Table, tmp_path: Path) -> None:
    found = readings.sql("select interval 1 day as i")
    with pytest.raises(InvalidRequestError, match="cannot be written as Parquet") as told:
        show_rows(found, format_="parquet", output=str(tmp_path / "o"))
    assert "cast(x as varchar)" in told.value.fix
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_rows_has_a_header(readings: ld.Table, capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(readings.sql("select id, device from t where id < 0"), format_="table", output=None)
    assert capsys.readouterr().out == "id  device\n0 rows\n"
