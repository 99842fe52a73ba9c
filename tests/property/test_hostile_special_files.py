"""Pipes and links in the place of a table's files: an error or the right answer, never a wait for ever."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from tests.support.row_tables import all_readings, by_id, readings_table, rows_of

pytestmark = pytest.mark.timeout(120)  # a pipe that is waited for would never end

HINT = "_delta_log/_last_checkpoint"
LOG_FILES = [
    HINT,
    "_delta_log/00000000000000000007.json",
    "_delta_log/00000000000000000002.json",
    "_delta_log/00000000000000000004.checkpoint.parquet",
    "_delta_log/_lazy/*.manifest.json",
    "_delta_log/_lazy/*.parquet",
    "_delta_log/*.crc",
]


DATA_FILES = "_event_hour=*/*.parquet"
NEEDED = {HINT, "_delta_log/00000000000000000007.json", DATA_FILES}  # the others say what others say, too


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(readings_table(tmp_path_factory.mktemp("good"), checkpoint_at=4, sidecar=True))


@pytest.fixture
def table(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "table"))


@pytest.mark.parametrize("pattern", LOG_FILES)
@pytest.mark.parametrize(("kind", "make"), [("pipe", os.mkfifo), ("folder", Path.mkdir)])
def test_a_pipe_or_a_folder_in_the_log_is_an_error_or_does_not_matter(
    table: Path, pattern: str, kind: str, make: Callable[[Path], None]
) -> None:
    for path in table.glob(pattern):
        path.unlink()
        make(path)
    if pattern in NEEDED:
        with pytest.raises(LazyDeltaError, match=f"a {kind} is in the place of a file"):
            rows_of(ld.open(str(table)).scan())
    else:
        assert by_id(rows_of(ld.open(str(table)).scan())) == all_readings()


@pytest.mark.parametrize("pattern", [*LOG_FILES, DATA_FILES])
@pytest.mark.parametrize("is_allowed", [False, True])
def test_a_link_that_leads_out_is_an_error_or_does_not_matter_unless_it_is_allowed(
    table: Path, tmp_path: Path, pattern: str, is_allowed: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    for path in list(table.glob(pattern)):
        target = elsewhere / path.relative_to(table)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)
        path.symlink_to(target)
    options = {"delta.allowed_roots": str(elsewhere)} if is_allowed else {}
    # A pipe has no bytes, so that a checkpoint that is one is passed over; one that leads out is asked for.
    if not is_allowed and (pattern in NEEDED or pattern.endswith(".checkpoint.parquet")):
        with pytest.raises(LazyDeltaError, match=f'delta.allowed_roots="{elsewhere}'):
            rows_of(ld.open(str(table), storage_options=options).scan())
    else:
        assert by_id(rows_of(ld.open(str(table), storage_options=options).scan())) == all_readings()


@pytest.fixture(params=["lazydelta", "duckdb"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads the files of a query."""
    monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", 0 if request.param == "duckdb" else 1 << 40)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize(
    "read",
    [
        lambda table: rows_of(table.scan()),
        lambda table: rows_of(table.scan(order="desc")),
        lambda table: table.scan().page(1000),
        lambda table: table.sql("select sum(id), max(device) from t").fetchall(),
        lambda table: table.to_polars().collect(),
        lambda table: table.to_pyarrow_dataset().to_table(),
    ],
    ids=["rows", "desc", "page", "sql", "polars", "dataset"],
)
def test_a_data_file_that_is_a_pipe_or_leads_out_ends_every_way_of_reading(
    table: Path, tmp_path: Path, kind: str, read: Callable[[ld.Table], object]
) -> None:
    path = next(iter(sorted(table.glob(DATA_FILES))))
    if kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        path.rename(tmp_path / "secret.parquet")
        path.symlink_to(tmp_path / "secret.parquet")
    with pytest.raises(LazyDeltaError) as error:
        read(ld.open(str(table)))
    assert ("a pipe is in the place of a file" if kind == "pipe" else "outside its root") in str(error.value)
    assert path.name in str(error.value)


def test_plain_files_are_still_handed_over_where_the_table_is_a_link(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", 0)
    (tmp_path / "current").symlink_to(table)
    found = ld.open(str(tmp_path / "current")).sql("select sum(id) from t")
    assert found.handed_over == "t"
    assert found.fetchall() == [(sum(row["id"] for row in all_readings()),)]
