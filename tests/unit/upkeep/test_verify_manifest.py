"""Every word of a manifest is held against the log and the parts; a wrong one is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.errors import UnsupportedTableError
from lazydelta.sidecar import manifest_name
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.findings import Difference
from lazydelta.upkeep.verify import verify_sidecar
from tests.support import actions
from tests.support.sidecar_damage import (
    CONFIG,
    edit_manifest,
    numbered_files,
    only,
    rewrite_part,
    storage_of,
)
from tests.support.sidecar_twin import manifest_of
from tests.support.table_builder import TableBuilder


@pytest.fixture
def table(made: TableBuilder, tmp_path: Path) -> TableBuilder:
    """Forty files in a checkpoint with its sidecar of five row groups."""
    return made.copy_to(tmp_path / "table")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Built once, and copied by each test that changes it."""
    builder = (
        TableBuilder(tmp_path_factory.mktemp("made")).commit(adds=numbered_files(range(40))).checkpoint()
    )
    build_sidecar(storage_of(builder), config=CONFIG)
    return builder


def differences(table: TableBuilder) -> list[Difference]:
    return list(verify_sidecar(storage_of(table), config=CONFIG).differences)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda m: m["parts"][0].update(order_min="2026-02-02"), "part", "order_min is '2026-02-02', but"),
        (lambda m: m["parts"][0].update(order_max="2026-02-19"), "part", "order_max is '2026-02-19', but"),
        (lambda m: m["parts"][0].update(order_nulls=1), "part", "order_nulls is 1"),
        (lambda m: m["parts"][0].update(order_min="nonsense"), "part", "which is no date"),
        (lambda m: m["parts"][0].pop("order_min"), "part", "order_min is null, but a row has"),
        (lambda m: m["row_groups"][0].pop("event_hour_max"), "row group", "event_hour_max is null, but"),
        (lambda m: m.update(order_type="long"), "part", "which is no long"),
        (lambda m: m.update(order_type="nothing"), "manifest", "the type 'nothing' of its order is none"),
        (lambda m: m.update(order_column="path"), "part", "its order column is 'date'"),
        (lambda m: m.update(schema_hash="x"), "part", "its layout is"),
        (lambda m: m["parts"][0].update(num_row_groups=10**20), "manifest", "num_row_groups"),
        (lambda m: m["parts"][0].update(num_row_groups=4), "manifest", "not the row groups that are listed"),
        (lambda m: m["parts"][0].update(total_bytes=1), "part", "live files have"),
        (lambda m: m["parts"][0].update(footer_bytes=1), "part", "footer length"),
        (lambda m: m["parts"][0].update(build="0" * 16), "part", "its build is"),
        (lambda m: m["parts"][0].update(schema_hash="x"), "part", "schema hash"),
        (
            lambda m: m["row_groups"][2].update(event_hour_min="2026-02-20"),
            "row group",
            "row group 2 event_hour_min",
        ),
        (
            lambda m: m["row_groups"][2].update(event_hour_max="2026-02-01"),
            "row group",
            "row group 2 event_hour_max",
        ),
        (
            lambda m: m["row_groups"][2].update(event_hour_nulls=3),
            "row group",
            "row group 2 has 0 rows without",
        ),
        (lambda m: m["row_groups"][1].update(byte_offset=9), "row group", "row group 1 lies in"),
        (lambda m: m["row_groups"][1].update(byte_length=9), "row group", "row group 1 lies in"),
        (lambda m: m["row_groups"][1].update(num_rows=9), "row group", "row group 1 has 8 rows"),
        (lambda m: m["row_groups"].reverse(), "manifest", "not in the order of its parts"),
        (lambda m: m["row_groups"][1].update(index=9), "manifest", "row groups are not those"),
        (lambda m: m.update(num_row_groups=9, row_groups=[]), "manifest", "num_row_groups is 9"),
        (lambda m: m.update(num_files=39), "manifest", "number of files"),
        (lambda m: m.update(sidecar_size_bytes=1), "manifest", "sidecar_size_bytes is 1"),
        (lambda m: m.update(sidecar_file="v.parquet"), "manifest", "sidecar_file"),
        (lambda m: m.update(table_id="other"), "manifest", "it is of the table other"),
        (lambda m: m["protocol"].update(minReaderVersion=1), "manifest", "its protocol is not"),
        (lambda m: m["metadata"].update(partitionColumns=[]), "manifest", "its metadata is not"),
        (lambda m: m["binding"].update(num_files=1), "manifest", "it is bound to 1 files"),
        (lambda m: m["binding"].update(total_bytes=1), "manifest", "of 1 bytes"),
        (lambda m: m["binding"]["commit"].update(head_sha256="0", etag="0"), "manifest", "is not the commit"),
        (lambda m: m.update(version=1), "manifest", "it says version 1"),
        (lambda m: m.pop("parts"), "manifest", "cannot be read"),
        (lambda m: m["parts"][0].update(removed=[9, 1, 8, 1, 0, -2]), "manifest", "removed rows"),
    ],
)
def test_a_wrong_word_of_the_manifest_is_named(
    table: TableBuilder, change: Callable[[Any], object], kind: str, words: str
) -> None:
    edit_manifest(table, change)
    found = differences(table)
    assert any(f.kind == kind and words in f.what for f in found), found


def test_a_manifest_of_another_format_is_not_judged(table: TableBuilder) -> None:
    edit_manifest(table, lambda manifest: manifest.update(format=2))
    with pytest.raises(UnsupportedTableError, match="format 2"):
        verify_sidecar(storage_of(table), config=CONFIG)


def test_sidecars_ahead_of_a_log_that_was_put_back_are_noted_and_passed_over(table: TableBuilder) -> None:
    folder = Path(storage_of(table).root.removeprefix("file://")) / "_delta_log/_lazy"
    (folder / manifest_name(99)).write_bytes(b"")
    report = verify_sidecar(storage_of(table), config=CONFIG)
    assert (report.version, report.is_ok) == (0, True)
    assert any("version 99" in note for note in report.notes)


@pytest.mark.parametrize(
    ("column", "update", "words"),
    [
        ("value", {"min": "0.5"}, "the least value is '0.5', but a row has 0.0"),
        ("value", {"max": "20"}, "the greatest value is '20', but a row has 20.5"),
        ("device_id", {"min": "d0001"}, "the least device_id"),
        ("count", {"rows_without_min": 1}, "0 rows have no least count, the manifest counts 1"),
        ("count", {"rows_without_max": 1}, "0 rows have no greatest count"),
        ("ts", {"rows_without_min": 0}, "40 rows have no least ts"),
        ("date", {"min": "2026-02-02"}, "the least date"),
        ("date", {"period_format": "yyyyMMdd"}, "every date for a period as yyyyMMdd, but some are not"),
        ("count", {"period_format": "yyyyMM"}, "every count for a period as yyyyMM, but some are not"),
        ("count", {"type": "integer"}, "the least count is of type integer, the column has int64"),
        ("value", {"type": "nothing"}, "the unknown type 'nothing'"),
        ("nothing", {"path": ["nothing"]}, "no column for"),
    ],
)
def test_a_wrong_zone_map_is_named(
    table: TableBuilder, column: str, update: dict[str, Any], words: str
) -> None:
    def change(manifest: Any) -> None:
        bounds = manifest["parts"][0]["bounds"]
        [entry] = [b for b in bounds if b["path"] == [column]] or bounds[:1]
        entry.update(update)

    edit_manifest(table, change)
    found = differences(table)
    assert any(f.kind == "part" and words in f.what for f in found), found


def test_a_wider_bound_is_no_difference(table: TableBuilder) -> None:
    edit_manifest(table, lambda m: m["parts"][0].update(order_min="2026-01-01", order_max="2027-01-01"))
    assert differences(table) == []


@pytest.mark.parametrize(
    ("last", "format_"), [("2026021002", "yyyyMMddHH"), ("2026021099", None), (None, "yyyyMMddHH")]
)
def test_periods_are_told_and_verified(tmp_path: Path, last: str | None, format_: str | None) -> None:
    texts = ["2026021001", last]
    adds = [actions.add(f"f{at}", partition={"hour": text}) for at, text in enumerate(texts)]
    builder = TableBuilder(tmp_path, schema={"v": "long", "hour": "string"}, partition_columns=["hour"])
    build_sidecar(storage_of(builder.commit(adds=adds).checkpoint()), config=CONFIG)
    assert manifest_of(tmp_path, 0)["parts"][0]["bounds"][0].get("period_format") == format_
    assert differences(builder) == []


def test_rows_out_of_order_are_named(table: TableBuilder) -> None:
    rewrite_part(table, lambda rows: rows.take(pa.array([1, 0, *range(2, 40)])))
    assert any(f.kind == "row group" and "not sorted" in f.what for f in differences(table))


def test_a_manifest_that_is_no_json_is_named(table: TableBuilder) -> None:
    only(table, "*.manifest.json").write_bytes(b"\x00 torn")
    [found] = differences(table)
    assert (found.kind, found.path) == ("manifest", "v00000000000000000000.manifest.json")
