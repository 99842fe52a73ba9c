"""The seeds' plain sidecar: used once it has proven itself by all that is cheap to ask, else left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lazydelta as ld
from tests.support.actions import add, inline_dv, stats
from tests.support.plain_sidecar import write_plain
from tests.support.sidecar_damage import numbered_file, numbered_files, with_value
from tests.support.sidecar_states import NO_CACHE, grow_tail, scanned
from tests.support.table_builder import TableBuilder

VECTORS = ["dv.storageType", "dv.pathOrInlineDv", "dv.offset", "dv.sizeInBytes", "dv.cardinality"]
Change = Callable[[pa.Table], pa.Table]


def plain_table(folder: Path, *, kind: str = "v1", **plain: Any) -> TableBuilder:
    """Forty files at checkpoint 1 with a plain sidecar, and a tail."""
    table = TableBuilder(folder).commit(numbered_files(range(30)))
    vector = numbered_file(30, deletion_vector=inline_dv())
    table.commit([vector, *numbered_files(range(31, 40))]).checkpoint(kind)
    write_plain(table, **plain)
    return grow_tail(table)


def facts(table: TableBuilder, where: str | None = None, **options: str) -> set[Any]:
    opened = ld.open(str(table.path), storage_options={"cache_bytes": "0", **options})
    return {
        (f.path, f.dv_id, f.size, f.modification_time, *sorted(f.partition_values.items()))
        for f in opened.scan(where).files()
    }


@pytest.mark.parametrize("name", ["v1.parquet", "v00000000000000000001.parquet"])
@pytest.mark.parametrize("kind", ["v1", "v1-multipart", "v2-parquet"])
def test_it_serves_under_both_spellings_beside_any_parquet_checkpoint(
    tmp_path: Path, name: str, kind: str
) -> None:
    table = plain_table(tmp_path, name=name, kind=kind)
    report = scanned(table)
    assert report.source == "sidecar 1 (plain)"
    assert report.fallbacks == ()
    assert facts(table) == facts(table, **{"delta.sidecar.enabled": "false"})


@pytest.mark.parametrize(
    "where", ["date = '2026-02-20'", "count > 41", "device_id < 'd0003'", "date is null"]
)
def test_its_row_groups_are_ruled_out_by_its_footer(tmp_path: Path, where: str) -> None:
    table = plain_table(tmp_path, row_group_rows=2)
    report = scanned(table, where)
    assert report.source == "sidecar 1 (plain)"
    assert report.row_groups_read < 10
    assert facts(table, where) == facts(table, where, **{"delta.sidecar.enabled": "false"})


def drop(*names: str) -> Change:
    return lambda rows: rows.drop_columns(list(names))


def as_type(name: str, type_: pa.DataType) -> Change:
    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(name)
        return rows.set_column(at, name, rows.column(name).cast(type_))

    return change


def named(before: str, after: str) -> Change:
    return lambda rows: rows.rename_columns([after if name == before else name for name in rows.schema.names])


UNPROVEN: dict[str, tuple[Change, str]] = {
    "a row too few": (lambda rows: rows.slice(1), "it has 39 files, the checkpoint 40"),
    "another path": (with_value("path", 0, "zzz.parquet"), "its values of path are not the checkpoint's"),
    "another size": (with_value("size", 0, 1 << 40), "its values of size are not the checkpoint's"),
    "another time": (with_value("modification_time", 0, 5), "its values of modification_time are not"),
    "no path somewhere": (with_value("path", 3, None), "nothing tells whether its values of path"),
    "no size": (drop("size"), "no column 'size' of the right type"),
    "no time": (drop("modification_time"), "no column 'modification_time' of the right type"),
    "sizes that are no numbers": (as_type("size", pa.string()), "no column 'size' of the right type"),
    "no deletion vectors": (drop(*VECTORS), "it tells no deletion vectors"),
    "vectors by half": (drop("dv.offset"), "it tells no deletion vectors"),
    "no partition column": (drop("date"), "does not tell the partition column 'date'"),
    "a partition column of another type": (as_type("date", pa.timestamp("us")), "partition column 'date'"),
}


@pytest.mark.parametrize("name", UNPROVEN)
def test_what_does_not_prove_itself_does_not_serve(tmp_path: Path, name: str) -> None:
    change, words = UNPROVEN[name]
    report = scanned(plain_table(tmp_path, change=change))
    assert report.source == "checkpoint 1"
    assert len(report.fallbacks) == 1
    assert words in report.fallbacks[0]


def test_without_statistics_in_its_footer_nothing_speaks_for_it(tmp_path: Path) -> None:
    report = scanned(plain_table(tmp_path, write_statistics=False))
    assert report.source == "checkpoint 1"
    assert "nothing tells" in report.fallbacks[0]


def test_it_is_no_proof_beside_a_checkpoint_in_json(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(numbered_files(range(8))).checkpoint("v2-json", sidecars=0)
    write_plain(table)
    report = scanned(table)
    assert report.source == "checkpoint 0"
    assert "the checkpoint keeps its files in JSON" in report.fallbacks[0]


def test_a_log_that_was_committed_anew_is_younger_than_it(tmp_path: Path) -> None:
    table = plain_table(tmp_path, age_seconds=1)
    report = scanned(table)
    assert report.source == "checkpoint 1"
    assert "is older than" in report.fallbacks[0]


def test_mapped_names_are_ambiguous(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, column_mapping="name").commit(["a", "b"]).checkpoint()
    table.metadata["partitionColumns"] = []
    (table.log / "_sidecars").mkdir()
    rows = pa.table({"path": ["a", "b"], "size": [1000, 1000]})
    path = table.log / "_sidecars" / "v0.parquet"
    pa.parquet.write_table(rows, path)
    report = scanned(table)
    assert report.source == "checkpoint 0"
    assert "the table maps them" in report.fallbacks[0]


def test_texts_may_come_in_any_clothes(tmp_path: Path) -> None:
    def change(rows: pa.Table) -> pa.Table:
        rows = as_type("path", pa.large_string())(rows)
        at = rows.schema.get_field_index("min.device_id")
        return rows.set_column(at, "min.device_id", rows.column("min.device_id").dictionary_encode())

    table = plain_table(tmp_path, change=change)
    assert scanned(table).source == "sidecar 1 (plain)"
    assert facts(table, "device_id > 'd0035'") == facts(
        table, "device_id > 'd0035'", **{"delta.sidecar.enabled": "false"}
    )


def test_a_partition_column_kept_as_text_serves(tmp_path: Path) -> None:
    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index("date")
        return rows.set_column(at, "date", pc.strftime(rows.column("date"), format="%Y-%m-%d"))

    table = plain_table(tmp_path, change=change)
    assert scanned(table).source == "sidecar 1 (plain)"
    where = "date >= '2026-02-19'"
    assert facts(table, where) == facts(table, where, **{"delta.sidecar.enabled": "false"})


@pytest.mark.parametrize("lacking", [["min.value"], ["null_count.value"], ["num_records"], ["max.count"]])
def test_statistics_that_it_lacks_are_unknown(tmp_path: Path, lacking: list[str]) -> None:
    table = plain_table(tmp_path, change=drop(*lacking))
    for where in ("value < 0.2", "value is null", "count > 47", "value > 18"):
        found = facts(table, where)
        assert found >= facts(table, where, **{"delta.sidecar.enabled": "false"})


@pytest.mark.parametrize("type_", [pa.float32(), pa.string()])
def test_statistics_of_another_type_say_nothing(tmp_path: Path, type_: pa.DataType) -> None:
    table = plain_table(tmp_path, change=as_type("max.value", type_))
    assert scanned(table).source == "sidecar 1 (plain)"
    assert facts(table, "value > 18") >= facts(table, "value > 18", **{"delta.sidecar.enabled": "false"})


def test_not_a_number_is_never_ruled_out(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    told = stats(3, low={"value": 1.0}, high={"value": 2.0})
    table.commit([add(f"f{n}", stats=told) for n in range(8)]).checkpoint()

    def change(rows: pa.Table) -> pa.Table:
        rows = with_value("max.value", 3, float("nan"))(rows)
        return with_value("min.value", 3, float("nan"))(rows)

    write_plain(table, row_group_rows=4, change=change)
    report = scanned(table, "value > 5")
    assert report.source == "sidecar 0 (plain)"
    assert report.files_emitted >= 1


def test_what_it_does_not_tell_and_the_checkpoint_may_have_is_read_there(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit([numbered_file(n, tags={"n": str(n)}) for n in range(8)]).checkpoint()
    write_plain(table)
    assert scanned(table).source == "sidecar 0 (plain)"
    scan = ld.open(str(tmp_path), settings=NO_CACHE).scan()
    rows = pa.Table.from_batches(scan.file_batches(["path", "tags"]))
    assert rows.column("tags").null_count == 0
    assert scan.explain().source == "checkpoint 0"
    assert "does not tell tags" in scan.explain().fallbacks[0]


def test_what_no_file_of_the_checkpoint_has_it_need_not_tell(tmp_path: Path) -> None:
    table = plain_table(tmp_path)
    scan = ld.open(str(table.path), settings=NO_CACHE).scan()
    rows = pa.Table.from_batches(scan.file_batches(["path", "clustering_provider", "base_row_id"]))
    assert rows.column("clustering_provider").null_count == rows.num_rows
    assert scan.explain().source == "sidecar 1 (plain)"


def test_vectors_need_not_be_told_where_the_checkpoint_has_none(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(numbered_files(range(12))).checkpoint()
    write_plain(table, change=drop(*VECTORS))
    table.commit([numbered_file(3, deletion_vector=inline_dv())], ["part-00003.parquet"])
    assert scanned(table).source == "sidecar 0 (plain)"


def test_strangers_in_the_folder_are_passed_over(tmp_path: Path) -> None:
    table = plain_table(tmp_path)
    for name in ("v1.manifest.json", "vx.parquet", "zzz.parquet", "v2.parquet.crc"):
        (table.log / "_sidecars" / name).write_bytes(b"nothing")
    assert scanned(table).source == "sidecar 1 (plain)"


def test_the_sidecar_of_another_version_is_not_taken_for_it(tmp_path: Path) -> None:
    report = scanned(plain_table(tmp_path, name="v0.parquet"))
    assert report.source == "checkpoint 1"
    assert report.fallbacks == ()
