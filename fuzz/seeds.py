"""The good tables that inputs are made from, built by code into a folder.

Why on disk: every watched process, and a replay on another day, must start from the same bytes; builds of
sidecars have random names. Contract: `make_seeds` builds what is not there; `load` gives a table's files.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.memory_storage import MemoryStorage
from lazydelta import limits
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.actions import add, inline_dv, remove, stats
from tests.support.checkpoint_writer import KINDS
from tests.support.data_files import array, field, struct
from tests.support.deletion_vector_writer import inline_vector, stored_vectors
from tests.support.plain_sidecar import write_plain
from tests.support.sidecar_damage import numbered_file, numbered_files
from tests.support.table_builder import TableBuilder

_SMALL = SidecarConfig(row_group_rows=4, row_groups_max=2)  # several parts
_STATS_FORMS = {"v1": "both", "v1-multipart": "json", "v2-parquet": "parsed", "v2-json": "both"}
DATA_ROWS = 60


def make_seeds(folder: Path) -> None:
    """Build every table, unless the folder is there already."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        for kind in KINDS:
            _checkpoint_table(Path(made) / f"checkpoint-{kind}", kind)
        _commit_table(Path(made) / "commits")
        _sidecar_table(Path(made) / "sidecar", tail=2)
        _sidecar_table(Path(made) / "deltas", tail=limits.SIDECAR_DELTA_COMMITS + 2)
        _plain_table(Path(made) / "plain")
        _rows_table(Path(made) / "rows")
        shutil.copytree(made, folder)


@cache
def load(folder: Path, table: str) -> dict[str, bytes]:
    """The files of a table by name; not to be changed."""
    root = folder / table
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def _commit_table(folder: Path) -> None:
    table = TableBuilder(folder)
    table.commit(numbered_files(range(6)))
    table.commit(
        [numbered_file(6, deletion_vector=inline_dv()), add("a%20b/c.parquet", partition={"date": None})],
        ["part-00001.parquet"],
        extra_actions=[{"txn": {"appId": "a", "version": 1}}, {"unknown": {"x": [1]}}],
    )
    table.commit([numbered_file(1, size=9)], [remove("part-00006.parquet", deletion_vector=inline_dv())])
    table.crc()


def _checkpoint_table(folder: Path, kind: str) -> None:
    table = TableBuilder(folder)
    table.commit(numbered_files(range(12)))
    table.commit([numbered_file(12, deletion_vector=inline_dv())], ["part-00003.parquet"])
    axes = {"parts": 2} if kind == "v1-multipart" else {}
    table.checkpoint(kind, stats=_STATS_FORMS.get(kind, "json"), row_group_rows=7, **axes).crc()
    table.clean_up(before=1)
    table.commit(numbered_files(range(20, 22)), ["part-00004.parquet"])


def _sidecar_table(folder: Path, *, tail: int) -> None:
    table = TableBuilder(folder)
    table.commit(numbered_files(range(20))).commit([numbered_file(30, deletion_vector=inline_dv())])
    table.checkpoint().crc()
    built = _in_memory(table)
    build_sidecar(built, config=_SMALL)
    for number in range(tail):
        files = numbered_files([100 + number]) if number % 10 == 0 else []
        table.commit(files, [f"part-{number % 9:05}.parquet"])
    built.files |= {f"_delta_log/{path.name}": path.read_bytes() for path in table.log.glob("*.json")}
    write_delta_files(built, config=_SMALL)
    _store(folder, built.files)


def _plain_table(folder: Path) -> None:
    table = TableBuilder(folder)
    table.commit(numbered_files(range(20))).checkpoint()
    write_plain(table)


def _rows_table(folder: Path) -> None:
    table = TableBuilder(folder, schema=_ROWS_SCHEMA, partition_columns=())
    adds = []
    for number, form in enumerate(_DATA_FORMS):
        name = f"f{number}.parquet"
        pq.write_table(_data_rows(number), folder / name, row_group_size=25, **form)
        vector: dict[str, Any] | None = None
        if number == 1:
            vector = inline_vector([1, 2, 50])
        if number == 2:
            vector = stored_vectors(folder, [range(0, DATA_ROWS, 3)])[0]
        size = (folder / name).stat().st_size
        low, high = {"id": number * 100}, {"id": number * 100 + DATA_ROWS - 1}
        told = stats(DATA_ROWS, low=low, high=high)
        more = {} if vector is None else {"deletion_vector": vector}
        adds.append(add(name, partition={}, size=size, stats=told, **more))
    table.commit(adds)


def _data_rows(number: int) -> pa.Table:
    dice = Random(number)
    ids = [number * 100 + at for at in range(DATA_ROWS)]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([None if at % 9 == 0 else f"n{at % 7}" for at in ids], pa.string()),
            "value": pa.array([dice.random() for _ in ids], pa.float64()),
            "day": pa.array([20_000 + at % 30 for at in ids], pa.int32()).cast(pa.date32()),
            "nested": pa.array([{"a": at, "tags": [f"t{at % 3}"] * (at % 4)} for at in ids], _NESTED),
        }
    )


_NESTED = pa.struct([pa.field("a", pa.int32()), pa.field("tags", pa.list_(pa.string()))])
_ROWS_SCHEMA: dict[str, Any] = {
    "id": "long",
    "name": "string",
    "value": "double",
    "day": "date",
    "nested": struct(field("a", "integer"), field("tags", array("string"))),
}
_DATA_FORMS: tuple[dict[str, Any], ...] = (
    {"compression": "snappy"},
    {"compression": "zstd", "data_page_version": "2.0", "write_page_checksum": True},
    {"compression": "gzip", "use_dictionary": False, "version": "1.0"},
    {"compression": "none", "column_encoding": {"id": "DELTA_BINARY_PACKED"}, "use_dictionary": ["name"]},
)


def _in_memory(table: TableBuilder) -> MemoryStorage:
    files = {
        path.relative_to(table.path).as_posix(): path.read_bytes()
        for path in table.path.rglob("*")
        if path.is_file()
    }
    return MemoryStorage(files)


def _store(folder: Path, files: dict[str, bytes]) -> None:
    for name, body in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
