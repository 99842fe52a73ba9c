"""What nulls, NaN and texts that writers cut mean: in data, in statistics, and in ranges over many files.

Files, row groups and parts may be ruled out only where no row can match; what is ruled out is counted, so
that nothing here holds only because everything was read.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from tests.support.actions import add, stats
from tests.support.keys import Action
from tests.support.reading import live_paths
from tests.support.table_builder import TableBuilder

NAN = "NaN"  # as writers put it into JSON
UNCACHED = {"delta.cache.bytes": "0"}
FLOORS = ["commits", "checkpoint", "sidecar", "sidecar without its manifest"]


def file(path: str, **bounds: tuple[Any, Any] | None) -> Action:
    """A file whose columns hold little, but for those given; None: nothing is said of it."""
    told = {"x": (1, 2), "f": (1.0, 2.0), "s": ("zy", "zz")} | bounds
    sides = [{name: pair[side] for name, pair in told.items() if pair is not None} for side in (0, 1)]
    return add(
        path, partition={}, stats=stats(10, low=sides[0], high=sides[1], nulls=dict.fromkeys(sides[0], 0))
    )


# Two files share a row group, whose own minimum and maximum pass over what is null or NaN.
PAIRS = {
    "null": [file("null-a"), file("null-b", x=None)],
    "usual": [file("usual-a"), file("usual-b")],
    "nan": [file("nan-a"), file("nan-b", f=(1.0, NAN))],
    "cut": [file("cut-a", s=("aa", "ab")), file("cut-b", s=("aa", "abd"))],
    "only-nan": [file("only-nan-a"), file("only-nan-b", f=(NAN, NAN))],
}
ALL = sorted(f"{name}-{letter}" for name in PAIRS for letter in "ab")
# What is kept, and how many of the five row groups a sidecar rules out.
KEPT: dict[str, tuple[list[str], int]] = {
    # A null in a statistic says nothing.
    "x > 5": (["null-b"], 4),
    "x = 5": (["null-b"], 4),
    "x in (5, 6)": (["null-b"], 4),
    "not x < 5": (["null-b"], 4),
    "x <> 1": (ALL, 0),
    # Nor does NaN, in a minimum or in a maximum; and it is greater than any number.
    "f = 100": (["nan-b", "only-nan-b"], 3),
    "f < 0.5": (["only-nan-b"], 4),
    "f > 100": (ALL, 0),
    # A maximum stands for all texts that begin with it. Of a range, the one that is cut may be the lesser.
    "s = 'abx'": (["cut-a"], 4),
    "s like 'abx%'": (["cut-a"], 4),
    "s > 'abx' and s < 'abz'": (["cut-a"], 4),
    "s = 'abdx'": (["cut-a", "cut-b"], 4),
    "s = 'ac'": ([], 5),
    "s = 'aa'": (["cut-a", "cut-b"], 4),
}


def build_sidecar(folder: Path, *, row_group_rows: int) -> None:
    command = [sys.executable, "-m", "lazydelta", "sidecar", "build", str(folder)]
    subprocess.run([*command, "--row-group-rows", str(row_group_rows)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same files below a scan, as each source tells them."""
    schema = {"x": "long", "f": "double", "s": "string"}
    built = {floor: tmp_path_factory.mktemp("floors") / floor for floor in FLOORS}
    for floor in ("commits", "checkpoint"):
        table = TableBuilder(built[floor], schema=schema, partition_columns=())
        table.commit([each for pair in PAIRS.values() for each in pair])
    table.checkpoint(stats="both", row_group_rows=2, table_state_at="end").commit([]).crc()
    shutil.copytree(built["checkpoint"], built["sidecar"])
    build_sidecar(built["sidecar"], row_group_rows=2)
    shutil.copytree(built["sidecar"], built["sidecar without its manifest"])
    (manifest,) = built["sidecar without its manifest"].rglob("*.manifest.json")
    manifest.unlink()
    return built


@pytest.mark.parametrize("where", KEPT)
@pytest.mark.parametrize("floor", FLOORS)
def test_no_file_is_ruled_out_by_what_its_statistics_do_not_say(
    folders: dict[str, Path], floor: str, where: str
) -> None:
    kept, skipped = KEPT[where]
    scan = ld.open(folders[floor], storage_options=UNCACHED).scan(where)
    assert sorted(found.path for found in scan.files()) == sorted(kept)
    report = scan.explain()
    assert not report.fallbacks
    assert report.source.startswith("none" if floor == "commits" else floor.split(maxsplit=1)[0])
    if floor.startswith("sidecar"):
        assert report.row_groups_skipped == skipped
    if floor == "checkpoint" and where.startswith(("x >", "x =", "s")):
        assert report.row_groups_skipped >= skipped, "its footer counts nulls, but no NaN"


def test_a_part_is_ruled_out_by_the_range_of_all_its_files_and_by_nothing_narrower(tmp_path: Path) -> None:
    schema = {"x": "long", "f": "double", "s": "string"}
    later = [file(f"z-{number:03}") for number in range(118)]
    odd = [each for pair in PAIRS.values() for each in pair]
    TableBuilder(tmp_path, schema=schema, partition_columns=()).commit([*odd, *later]).checkpoint(
        stats="both"
    )
    build_sidecar(
        tmp_path, row_group_rows=1
    )  # a part has at most 64 row groups: the odd files share the first
    for where in ("x > 5", "f = 100", "f < 0.5", "s = 'abx'", "s = 'abdx'"):
        scan = ld.open(tmp_path, storage_options=UNCACHED).scan(where)
        assert sorted(found.path for found in scan.files()) == sorted(KEPT[where][0]), where
        assert (scan.explain().parts_read, scan.explain().parts_total) == (1, 2), where


def test_a_cut_maximum_covers_more_than_it_says_whatever_the_writer(tmp_path: Path) -> None:
    """32 characters are what Spark keeps; others put the last one up, or U+FFFD after it."""
    long = "a" * 32
    tops = {"cut": long, "marked": f"{long}\ufffd", "higher": f"{long[:-1]}b"}
    table = TableBuilder(tmp_path, schema={"s": "string"}, partition_columns=())
    for name, top in tops.items():
        table.commit([add(name, partition={}, stats=stats(1, low={"s": "a"}, high={"s": top}))])
    for value in (long, f"{long}zzz", f"{long}\U0001f600"):
        assert sorted(live_paths(tmp_path, where=f"s = '{value}'")) == sorted(tops), value
    assert live_paths(tmp_path, where="s = 'b'") == []


# --- rows ------------------------------------------------------------------------

GROUPS: list[list[float | None]] = [
    [1.0, None, 2.0],
    [None, None, None],
    [5.0, math.nan, 4.0],
    [1.0, 2.0, 1.5],
    [math.nan, math.nan, math.nan],
]
VALUES = [value for group in GROUPS for value in group]


def rank(value: float) -> tuple[bool, float]:
    """The order of engines: NaN equals itself and comes after every number."""
    return (True, 0.0) if math.isnan(value) else (False, value)


# Which of these a comparison finds, and row groups that it must not read.
ROWS: dict[str, tuple[Callable[[float], bool], int]] = {
    "v > 2": (lambda v: rank(v) > rank(2), 1),
    "v >= 2": (lambda v: rank(v) >= rank(2), 1),
    "v < 2": (lambda v: rank(v) < rank(2), 1),
    "v <= 1": (lambda v: rank(v) <= rank(1), 1),
    "v = 5": (lambda v: v == 5, 2),
    "v <> 1": (lambda v: v != 1, 1),
    "v in (1, 5)": (lambda v: v in (1, 5), 1),
    "not v > 2": (lambda v: not rank(v) > rank(2), 1),
    "not v = 5": (lambda v: v != 5, 1),
    "v not in (1, 5)": (lambda v: v not in (1, 5), 1),
    "v > 100": (math.isnan, 1),
    "v is not null": (lambda _: True, 1),
}


@pytest.fixture(scope="module")
def rows_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data file with a row group for each of these."""
    folder = tmp_path_factory.mktemp("rows")
    path = folder / "part.parquet"
    rows = pa.table({"id": list(range(len(VALUES))), "v": pa.array(VALUES, pa.float64(), from_pandas=False)})
    pq.write_table(rows, path, row_group_size=3)
    table = TableBuilder(folder, schema={"id": "long", "v": "double"}, partition_columns=())
    table.commit([add(path.name, partition={}, size=path.stat().st_size)])
    return folder


@pytest.mark.parametrize("where", ROWS)
def test_a_null_matches_no_comparison_and_nan_is_greater_than_any_number(
    rows_folder: Path, where: str
) -> None:
    matches, skipped_min = ROWS[where]
    scan = ld.open(rows_folder, storage_options=UNCACHED).scan(where)
    found = [id_ for rows in scan.batches(["id"]) for id_ in rows["id"].to_pylist()]
    assert found == [id_ for id_, value in enumerate(VALUES) if value is not None and matches(value)]
    report = scan.explain().rows
    assert report is not None
    assert report.row_groups_skipped >= skipped_min, "a row group of nulls alone at the least"


def test_nulls_are_found_by_is_null_alone(rows_folder: Path) -> None:
    scan = ld.open(rows_folder, storage_options=UNCACHED).scan("v is null")
    found = [id_ for rows in scan.batches(["id"]) for id_ in rows["id"].to_pylist()]
    assert found == [id_ for id_, value in enumerate(VALUES) if value is None]
    report = scan.explain().rows
    assert report is not None
    assert report.row_groups_skipped == 3
