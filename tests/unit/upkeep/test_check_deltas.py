"""Delta files against the commits they stand for: every line, in order, with its statistics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta.sidecar import delta_name
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from lazydelta.upkeep.verify import VerifyReport, verify_sidecar
from tests.support.actions import add, inline_dv, metadata, remove
from tests.support.sidecar_damage import (
    CONFIG,
    lazy_folder,
    numbered_file,
    numbered_files,
    sealed,
    storage_of,
    with_value,
)
from tests.support.table_builder import TableBuilder

NAME = delta_name(0, 4)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """A checkpoint with its sidecar, and four commits of every kind of line in one delta file."""
    builder = TableBuilder(tmp_path / "table").commit(adds=numbered_files(range(20))).checkpoint()
    build_sidecar(storage_of(builder), config=CONFIG)
    builder.commit(adds=numbered_files(range(20, 30)), removes=["part-00001.parquet"])
    vector = numbered_file(2, deletion_vector=inline_dv())
    builder.commit(
        adds=[vector], removes=[remove("part-00002.parquet", partitionValues={"date": "2026-02-03"})]
    )
    builder.commit(metadata=metadata(configuration={"delta.appendOnly": "false"}))
    builder.commit(
        adds=[add("odd%20name", stats="{nonsense")], extra_actions=[{"txn": {"appId": "a", "version": 1}}]
    )
    config = msgspec.structs.replace(CONFIG, delta_commits_min=1)
    assert write_delta_files(storage_of(builder), config=config) == [f"{CONFIG.folder}/{NAME}"]
    return builder


def verify(table: TableBuilder) -> VerifyReport:
    return verify_sidecar(storage_of(table), config=CONFIG)


def the_difference(table: TableBuilder) -> str:
    [found] = verify(table).differences
    assert (found.kind, found.path) == ("delta", NAME)
    return found.what


def rewrite(table: TableBuilder, change: Callable[[pa.Table], pa.Table], *, facts: object = None) -> None:
    """Write the delta file anew with other rows, its facts put right about their number."""
    path = lazy_folder(table) / NAME
    with pq.ParquetFile(path) as file:
        keys = dict(file.metadata.metadata)
        rows = change(file.read())
    told = msgspec.json.decode(keys[b"lazydelta.delta"]) | {"num_rows": rows.num_rows}
    keys[b"lazydelta.delta"] = msgspec.json.encode(told | (facts if isinstance(facts, dict) else {}))
    plain = pa.schema([field.remove_metadata() for field in rows.schema])
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, plain, store_schema=False) as writer:
        writer.add_key_value_metadata(keys)
        writer.write_table(rows.cast(plain))
    path.write_bytes(sealed(sink.getvalue().to_pybytes()))


def test_a_delta_file_of_every_kind_of_line_passes(table: TableBuilder) -> None:
    report = verify(table)
    assert report.differences == ()
    assert (report.delta_files_checked, report.notes) == (1, ())


@pytest.mark.parametrize(
    ("column", "row", "value", "words"),
    [
        ("size", 1, 5, "add part-00020.parquet of commit 1 differs in size"),
        ("min.value", 1, 5.0, "add part-00020.parquet of commit 1 differs in min.value"),
        ("path", 0, "x", "remove part-00001.parquet of commit 1 differs in path"),
        ("action", 0, "add", "remove part-00001.parquet of commit 1 differs in action"),
        ("version", 0, 2, "remove part-00001.parquet of commit 1 differs in version"),
        ("metadata", 13, '{"id":"other"}', "metaData  of commit 3 differs in metadata"),
        ("dv.cardinality", 12, 9, "add part-00002.parquet of commit 2 differs in dv.cardinality"),
        ("date", 11, None, "remove part-00002.parquet of commit 2 differs in date"),
    ],
)
def test_a_changed_value_is_named(
    table: TableBuilder, column: str, row: int, value: object, words: str
) -> None:
    rewrite(table, with_value(column, row, value))
    assert the_difference(table) == words


def test_a_line_too_few_is_named(table: TableBuilder) -> None:
    rewrite(table, lambda rows: rows.slice(0, rows.num_rows - 1))
    assert the_difference(table) == "it lacks add odd%20name of commit 4 and what follows"


def test_a_line_too_many_is_named(table: TableBuilder) -> None:
    rewrite(table, lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]))
    assert the_difference(table) == "it has a row too many: remove part-00001.parquet"


def test_lines_in_another_order_are_named(table: TableBuilder) -> None:
    rewrite(table, lambda rows: rows.take(pa.array([1, 0, *range(2, rows.num_rows)])))
    assert "of commit 1 differs in" in the_difference(table)


def test_other_actions_that_were_miscounted_are_named(table: TableBuilder) -> None:
    rewrite(table, lambda rows: rows, facts={"other_actions": {"commitInfo": 3}})
    assert "it counts {'commitInfo': 3} besides" in the_difference(table)


def test_a_file_that_does_not_decode_is_named(table: TableBuilder) -> None:
    (lazy_folder(table) / NAME).write_bytes(b"PAR1 and nothing else PAR1")
    assert "cannot be read" in the_difference(table)


def test_a_file_under_another_name_is_named(table: TableBuilder) -> None:
    (lazy_folder(table) / NAME).rename(lazy_folder(table) / delta_name(0, 3))
    [found] = verify(table).differences
    assert (found.path, found.what) == (delta_name(0, 3), "it is not of the versions that its name tells")


def test_a_commit_that_was_replaced_is_named(table: TableBuilder) -> None:
    table.append_to_commit(4, "\n")
    assert "commit 4 is not the one it was made from" in the_difference(table)


def test_another_table_is_named(table: TableBuilder) -> None:
    rewrite(table, lambda rows: rows, facts={"table_id": "other"})
    assert the_difference(table) == "it is of the table other"


def test_a_file_whose_commits_were_cleaned_up_is_noted_and_no_difference(table: TableBuilder) -> None:
    table.checkpoint()
    table.clean_up(before=3)
    report = verify(table)
    assert report.differences == ()
    assert report.delta_files_checked == 0
    assert report.notes == (f"{NAME} was not compared: commit 1 is gone",)
