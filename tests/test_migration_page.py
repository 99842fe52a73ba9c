"""docs/how-to/from-delta-rs.md: both columns of its table run, and give the same."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

import lazydelta

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "from-delta-rs.md"
ROWS = re.findall(r"^\| `(.+?)` \| `(.+?)` \|", PAGE.read_text("utf-8"), re.M)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("migration") / "t")
    for hour in ("21", "22", "23"):
        rows = pa.table({"hour": [hour] * 3, "device": ["a", "b", "a"], "value": [1.0, 2.0, float(hour)]})
        write_deltalake(place, rows, mode="append", partition_by=["hour"])
    return place


def test_the_table_is_read() -> None:
    assert len(ROWS) >= 12


@pytest.mark.parametrize("place", range(len(ROWS)))
def test_both_columns_give_the_same(url: str, place: int) -> None:
    theirs, ours = ROWS[place]
    names = {"DeltaTable": DeltaTable, "lazydelta": lazydelta, "pa": pa, "pc": pc, "url": url}
    expected = eval(theirs, {**names, "d": DeltaTable(url)})
    assert eval(ours, {**names, "t": lazydelta.open(url)}) == expected
    assert expected or expected == 0
