"""Tables that other engines wrote, at the level of files.

They are read from the folder `LAZYDELTA_GOLDEN` (`../shared/golden` beside the repository by default): a
table each, `NAME/delta` or `NAME` itself, with the rows it must have in `NAME/expected` where they are known.
Every table must list the eager twin's files, or fail with the clear error that its name announces.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import CorruptLogError, LazyDeltaError, TableNotFoundError, UnsupportedTableError
from tests.support.eager_twin import TableState, replay
from tests.support.peers import delta_rs_paths
from tests.support.reading import STRATEGIES, keys

FOLDER = Path(os.environ.get("LAZYDELTA_GOLDEN") or Path(__file__).resolve().parents[3] / "shared" / "golden")
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) if FOLDER.is_dir() else []


class Announced(NamedTuple):
    """What a table's name announces, the error that must say so, and a word of it."""

    pattern: str
    error: type[LazyDeltaError]
    word: str


ANNOUNCED = (
    Announced(r"invalid-protocol", UnsupportedTableError, "99"),
    Announced(r"(without|missing)-protocol", CorruptLogError, "protocol"),
    Announced(r"(without|missing)-metadata", CorruptLogError, "metaData"),
    Announced(r"versions-not-contiguous", CorruptLogError, "commit 1 is missing"),
    Announced(r"no-delta-log", TableNotFoundError, "no Delta table"),
)

# delta-rs keys a file by its path as spelled, so that `/x` and `file:///x` are two files to it, and does
# not open a table whose metaData has no schema.
DELTA_RS_READS_OTHERWISE = re.compile(r"canonicalized-paths|deltalog-commit-info")

needs_golden = pytest.mark.skipif(not NAMES, reason="the golden tables are missing")
pytestmark = needs_golden


def announced_error(name: str) -> Announced | None:
    """The error a table must fail with, judged by its name alone; never one whose rows are known."""
    if (FOLDER / name / "expected").is_dir():
        return None
    return next((announced for announced in ANNOUNCED if re.search(announced.pattern, name)), None)


READABLE = [name for name in NAMES if announced_error(name) is None]
BROKEN = [name for name in NAMES if announced_error(name) is not None]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", READABLE)
def test_a_golden_table_lists_the_live_files_of_the_eager_twin(name: str, strategy: str) -> None:
    table = table_folder(name)
    truth = replay(table)
    files = list(ld.open(str(table)).scan(strategy=strategy).files())
    assert sorted(keys(files), key=repr) == sorted(truth.live, key=repr)
    for file in files:
        action = truth.live[file.path, file.dv_id]
        assert file.size == action["size"]
        assert file.partition_values == logical_partition(action, truth)


@pytest.mark.parametrize("name", READABLE)
def test_every_version_of_a_golden_table_lists_the_files_it_had(name: str) -> None:
    table = table_folder(name)
    for version in range(replay(table).version + 1):
        truth = replay(table, version=version)
        assert set(keys(ld.open(str(table), version=version).scan().files())) == set(truth.live)


@pytest.mark.parametrize("name", [name for name in READABLE if not DELTA_RS_READS_OTHERWISE.search(name)])
def test_a_golden_table_lists_the_files_that_delta_rs_lists(name: str) -> None:
    table = table_folder(name)
    ours = sorted(file.path for file in ld.open(str(table)).scan().files())
    assert ours == delta_rs_paths(table)


@pytest.mark.parametrize("name", [name for name in READABLE if (FOLDER / name / "expected").is_dir()])
def test_the_statistics_of_a_golden_table_count_the_rows_it_must_have(name: str) -> None:
    files = list(ld.open(str(table_folder(name))).scan().files(with_stats=True))
    known = [count for file in files if (count := live_rows(file)) is not None]
    expected = (FOLDER / name / "expected").rglob("*.parquet")
    row_count = sum(pq.read_metadata(path).num_rows for path in expected)
    if len(known) == len(files):
        assert sum(known) == row_count
    else:  # old writers left statistics out of some files
        assert sum(known) <= row_count


@pytest.mark.parametrize("name", READABLE)
def test_a_golden_table_says_what_it_is(name: str) -> None:
    table = ld.open(str(table_folder(name)))
    truth = replay(table_folder(name))
    assert table.version == truth.version
    assert truth.protocol is not None
    assert table.protocol.min_reader_version == truth.protocol["minReaderVersion"]
    assert truth.metadata is not None
    assert table.metadata.id == truth.metadata["id"]
    assert table.metadata.partition_columns == truth.metadata.get("partitionColumns", [])
    fields = json.loads(truth.metadata.get("schemaString") or '{"fields": []}')["fields"]
    assert table.schema.names == [field["name"] for field in fields]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_golden_table_fails_with_the_error_its_name_announces(name: str) -> None:
    announced = announced_error(name)
    assert announced is not None
    with pytest.raises(announced.error, match=re.escape(announced.word)) as caught:
        list(ld.open(str(table_folder(name))).scan().files())
    assert caught.value.where
    assert caught.value.fix


def table_folder(name: str) -> Path:
    """The table's root; some golden tables have no `delta` folder."""
    return FOLDER / name / "delta" if (FOLDER / name / "delta").is_dir() else FOLDER / name


def logical_partition(action: dict[str, Any], truth: TableState) -> dict[str, str | None]:
    """Partition values by the names users know."""
    assert truth.metadata is not None
    fields = json.loads(truth.metadata.get("schemaString") or '{"fields": []}')["fields"]
    physical = {
        field["name"]: field["metadata"].get("delta.columnMapping.physicalName", field["name"])
        for field in fields
    }
    values = action["partitionValues"]
    return {name: values[physical[name]] for name in truth.metadata.get("partitionColumns", [])}


def live_rows(file: Any) -> int | None:
    """The rows of a file less those its deletion vector lists; None where the log does not count them."""
    if file.stats is None:
        return None
    count = json.loads(file.stats).get("numRecords")
    deleted = file.deletion_vector.cardinality if file.deletion_vector is not None else 0
    return None if count is None else count - deleted
