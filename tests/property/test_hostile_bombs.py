"""Little input that asks for much: refused by a limit, in bounded memory and time."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzz.mutate import footer_of, with_footer
from fuzz.thrift_tree import BINARY, I32, STRUCT, Node, read_struct, write_struct

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from tests.support.actions import add, stats
from tests.support.peak_memory import peak_growth
from tests.support.sidecar_damage import only, with_checksum
from tests.support.sidecar_states import NO_CACHE, scanned, table_with_sidecar
from tests.support.table_builder import TableBuilder

GROWTH_MAX = 400 << 20
SECONDS_MAX = 60.0  # of the processor, however busy the machine; what is not refused takes forever


@contextmanager
def bounded() -> Iterator[None]:
    """Neither much memory nor much time."""
    began = time.process_time()
    with peak_growth() as grown:
        yield
        assert grown() < GROWTH_MAX, f"{grown() >> 20} MiB"
    assert time.process_time() - began < SECONDS_MAX


def refused(table: Path, words: str, **how: Any) -> None:
    """Reading all of it is a refusal with these words."""
    with bounded(), pytest.raises(LazyDeltaError, match=words):
        opened = ld.open(str(table), settings=NO_CACHE)
        _ = opened.schema
        opened.scan(**how).to_arrow()


def table_of(folder: Path, body: bytes) -> Path:
    """A table of one data file with a column `id`."""
    table = TableBuilder(folder, schema={"id": "long"}, partition_columns=())
    (table.path / "f.parquet").write_bytes(body)
    table.commit([add("f.parquet", partition={}, size=len(body), stats=stats(1))])
    return table.path


def parquet(rows: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def page_of(count: int, codec: str) -> bytes:
    """A file with one page of zeros."""
    zeros = pa.table({"id": pa.array(np.zeros(count, np.int64))})
    once = {"data_page_size": 1 << 30, "write_batch_size": count, "max_rows_per_page": count}
    return parquet(zeros, compression=codec, use_dictionary=False, row_group_size=count, **once)


def test_a_page_that_decompresses_to_more_than_a_page_may_have_is_refused(tmp_path: Path) -> None:
    body = page_of(limits.PARQUET_PAGE_BYTES_MAX // 8 + 1000, "zstd")
    assert len(body) < 2 << 20
    refused(table_of(tmp_path, body), "a page would have")


@pytest.mark.parametrize("codec", ["zstd", "gzip", "snappy", "none"])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_limit_of_a_page_holds_however_it_is_packed_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, is_streamed: bool
) -> None:
    path = table_of(tmp_path, page_of(100_000, codec))
    if is_streamed:
        monkeypatch.setattr(limits, "DATA_PRELOAD_BYTES_MAX", 0)
    assert ld.open(str(path), settings=NO_CACHE).scan().to_arrow().num_rows == 100_000
    monkeypatch.setattr(limits, "PARQUET_PAGE_BYTES_MAX", 799_999)
    refused(path, "a page would have 800,")


def test_a_page_of_a_checkpoint_is_held_to_the_same_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TableBuilder(tmp_path).commit([f"f{at}" for at in range(300)]).checkpoint().clean_up(before=1)
    monkeypatch.setattr(limits, "PARQUET_PAGE_BYTES_MAX", 1000)
    refused(table.path, "a page would have")


Change = Callable[[Node], None]


def test_a_footer_with_more_columns_than_a_table_has_is_refused(tmp_path: Path) -> None:
    def change(tree: Node) -> None:
        schema = dict(tree.value)[2]
        leaf = Node(STRUCT, [(1, Node(I32, 2)), (3, Node(I32, 1)), (4, Node(BINARY, b"c"))])
        schema.value.extend([leaf] * (limits.PARQUET_COLUMNS_MAX + 1))

    refused(table_of(tmp_path, changed_footer(change)), "nodes")


def test_a_footer_that_nests_ten_thousand_levels_is_refused(tmp_path: Path) -> None:
    def change(tree: Node) -> None:
        schema = dict(tree.value)[2]
        group = Node(STRUCT, [(3, Node(I32, 1)), (4, Node(BINARY, b"g")), (5, Node(I32, 1))])
        schema.value[1:1] = [group] * 10_000

    refused(table_of(tmp_path, changed_footer(change)), "nests too deeply")


@pytest.mark.parametrize("rows", [2**62, -1, 2**40])
def test_a_footer_with_an_absurd_number_of_rows_is_refused(tmp_path: Path, rows: int) -> None:
    def change(tree: Node) -> None:
        dict(tree.value)[3].value = rows
        for group in dict(tree.value)[4].value:
            dict(group.value)[3].value = rows

    refused(table_of(tmp_path, changed_footer(change)), "data file")


def test_a_footer_longer_than_a_footer_may_be_is_refused(tmp_path: Path) -> None:
    body = b"PAR1" + bytes(100)
    path = table_of(tmp_path, body)
    size = limits.PARQUET_FOOTER_BYTES_MAX + 100_000
    with (path / "f.parquet").open("r+b") as file:  # a hole: it takes no disk
        file.seek(size)
        file.write((limits.PARQUET_FOOTER_BYTES_MAX + 1).to_bytes(4, "little") + b"PAR1")
    commit = path / "_delta_log" / f"{0:020}.json"
    commit.write_text(
        commit.read_text("utf-8").replace(f'"size": {len(body)}', f'"size": {size + 8}'), "utf-8"
    )
    refused(path, "its footer has")


def changed_footer(change: Change) -> bytes:
    pages, footer = footer_of(parquet(pa.table({"id": pa.array([1, 2, 3], pa.int64())})))
    tree, _ = read_struct(footer)
    change(tree)
    return with_footer(pages, write_struct(tree))


def test_a_line_of_a_gigabyte_is_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    with (table.log / f"{1:020}.json").open("r+b") as file:  # a hole again
        file.truncate(1 << 30)
    refused(table.path, "a line is longer than")


def test_a_number_of_a_megabyte_is_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    table.append_to_commit(0, '{"add":{"path":"b","size":' + "9" * (1 << 20) + "}}\n")
    refused(table.path, "line 5 is not a Delta action")


@pytest.mark.parametrize("levels", [200, 10_000])
def test_a_schema_of_many_levels_is_refused(tmp_path: Path, levels: int) -> None:
    nested = '{"type":"array","elementType":' * levels + '"long"' + ',"containsNull":true}' * levels
    schema = '{"type":"struct","fields":[{"name":"a","type":' + nested + ',"nullable":true,"metadata":{}}]}'
    table = TableBuilder(tmp_path)
    table.metadata["schemaString"] = schema
    table.commit(["a"])
    refused(table.path, "schema")


@pytest.mark.parametrize("levels", [2000, 100_000])
def test_an_action_that_nests_deeper_than_the_stack_is_refused(tmp_path: Path, levels: int) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    table.append_to_commit(0, '{"commitInfo":{"operation":' + "[" * levels + "]" * levels + "}}\n")
    refused(table.path, "line 5 is not a Delta action")


def test_a_manifest_of_a_million_entries_is_passed_over(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    path = only(table, "*.manifest.json")
    told = json.loads(path.read_text("utf-8"))
    part = json.dumps(told["parts"][0]).encode()
    head, _ = with_checksum(told | {"parts": []}).split(b'"parts":[]')
    with path.open("wb") as file:
        file.write(head + b'"parts":[' + part)
        while file.tell() <= limits.MANIFEST_BYTES_MAX:
            file.write((b"," + part) * 1000)
        file.truncate(1_000_000 * len(part))  # the rest is a hole: nobody comes to it
    assert path.stat().st_size > limits.MANIFEST_BYTES_MAX
    with bounded():
        report = scanned(table)
    assert any("has more than" in fallback for fallback in report.fallbacks)


@pytest.mark.parametrize("name", ["_last_checkpoint", f"{1:020}.crc"])
def test_a_small_file_of_the_log_that_is_huge_is_passed_over(tmp_path: Path, name: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).checkpoint().crc()
    with (table.log / name).open("r+b") as file:
        file.truncate(1 << 30)
    with bounded():
        scanned(table)


@pytest.mark.parametrize("cardinality", [2**40, -1, 2**62])
def test_a_deletion_vector_that_claims_more_rows_than_it_has_is_refused(
    tmp_path: Path, cardinality: int
) -> None:
    body = parquet(pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    table = TableBuilder(tmp_path, schema={"id": "long"}, partition_columns=())
    (table.path / "f.parquet").write_bytes(body)
    # One container of runs that says it holds every row there could be.
    text = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    vector = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 40, "cardinality": cardinality}
    table.commit([add("f.parquet", partition={}, size=len(body), deletion_vector=vector)])
    refused(table.path, "cannot be used")


@pytest.mark.parametrize("size", [2**31 - 1, -5])
def test_a_deletion_vector_of_absurd_size_is_refused(tmp_path: Path, size: int) -> None:
    body = parquet(pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    table = TableBuilder(tmp_path, schema={"id": "long"}, partition_columns=())
    (table.path / "f.parquet").write_bytes(body)
    vector = {
        "storageType": "p",
        "pathOrInlineDv": "v.bin",
        "offset": 1,
        "sizeInBytes": size,
        "cardinality": 1,
    }
    table.commit([add("f.parquet", partition={}, size=len(body), deletion_vector=vector)])
    refused(table.path, "the log says that it has")


def test_a_checkpoint_whose_sidecar_names_a_sidecar_is_read_once(tmp_path: Path) -> None:
    """The files of a V2 checkpoint name no further files, whatever they say."""
    table = TableBuilder(tmp_path).commit(["a", "b", "c"]).checkpoint("v2-parquet", sidecars=1)
    (sidecar,) = (table.log / "_sidecars").glob("*.parquet")
    rows = pq.read_table(sidecar)
    own = {"path": sidecar.name, "sizeInBytes": sidecar.stat().st_size, "modificationTime": 1, "tags": None}
    cycle = rows.append_column("sidecar", pa.array([own] * rows.num_rows))
    pq.write_table(cycle, sidecar)
    top = next(table.log.glob("*.checkpoint.*.parquet"))
    told = pq.read_table(top).to_pylist()
    for row in told:
        if row["sidecar"] is not None:
            row["sidecar"]["sizeInBytes"] = sidecar.stat().st_size
    pq.write_table(pa.Table.from_pylist(told, pq.read_schema(top)), top)
    with bounded():
        scanned(table)
