"""Every state a sidecar can be found in, made for real in a folder, and what a reader must make of each.

Contract: `table_with_sidecar` gives a table with a checkpoint, a sidecar of several parts and a tail that
adds, removes and adds again; each entry of `STATES` changes that folder and says which source serves and
which words the fallback has.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

import lazydelta as ld
from lazydelta.scan import ScanReport
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import inline_dv, relative_dv, remove
from tests.support.plain_sidecar import write_plain
from tests.support.reading import keys
from tests.support.sidecar_damage import edit_manifest, lazy_folder, numbered_file, numbered_files, storage_of
from tests.support.table_builder import TableBuilder

SMALL = SidecarConfig(row_group_rows=4, row_groups_max=2)
CHECKPOINT = 3  # of `table_with_sidecar`
NO_CACHE = Settings(cache_bytes=0)


class State(NamedTuple):
    """What is done to the folder, and what ought to come of it."""

    make: Callable[[TableBuilder], object]
    source: str  # what the source's text begins with
    fallback: str | None  # words of the one fallback; None: there is none


def table_with_sidecar(folder: Path, *, config: SidecarConfig = SMALL, tail: bool = True) -> TableBuilder:
    """Forty files at checkpoint 3, which has a sidecar of five parts; two commits after it."""
    table = TableBuilder(folder)
    table.commit(numbered_files(range(20))).commit(numbered_files(range(20, 30)))
    table.commit([numbered_file(30, deletion_vector=relative_dv())], ["part-00003.parquet"])
    table.commit(numbered_files(range(31, 41))).checkpoint().crc()
    build_sidecar(storage_of(table), config=config)
    return grow_tail(table) if tail else table


def copy_with_sidecar(folder: Path) -> TableBuilder:
    """The same, copied from one that was built before: it takes a tenth of the time, and has other e-tags."""
    return _made_once().copy_to(folder)


_FOLDERS = ExitStack()  # of tables that are copied; emptied when the process ends
atexit.register(_FOLDERS.close)


@cache
def _made_once() -> TableBuilder:
    return table_with_sidecar(Path(_FOLDERS.enter_context(tempfile.TemporaryDirectory())) / "table")


def grow_tail(table: TableBuilder) -> TableBuilder:
    """Two commits that add, remove, add again and change a deletion vector."""
    table.commit([numbered_file(5, size=7), *numbered_files(range(50, 53))], ["part-00004.parquet"])
    gone = remove("part-00030.parquet", deletion_vector=relative_dv())
    return table.commit([numbered_file(30, deletion_vector=inline_dv())], ["part-00051.parquet", gone])


def scanned(
    table: TableBuilder | Path | str, where: str | None = None, *, settings: Settings = NO_CACHE, **scan: Any
) -> ScanReport:
    """The report of a scan that gave every live file once, as the builder knows them."""
    path = str(table.path) if isinstance(table, TableBuilder) else str(table)
    run = ld.open(path, settings=settings).scan(where, **scan)
    found = keys(run.files())
    assert len(found) == len(set(found)), "some file came twice"
    if isinstance(table, TableBuilder) and where is None and "limit" not in scan:
        assert set(found) == table.live()
    return run.explain()


def part_paths(table: TableBuilder) -> list[Path]:
    """The part files in the sidecar's folder."""
    return sorted(path for path in lazy_folder(table).glob("v*.parquet") if ".delta." not in path.name)


def without_manifest(table: TableBuilder) -> None:
    """Parts alone."""
    for path in lazy_folder(table).glob("*.manifest.json"):
        path.unlink()


def without_sidecar(table: TableBuilder) -> None:
    """The folder is gone."""
    shutil.rmtree(lazy_folder(table))


def restored_log(table: TableBuilder) -> None:
    """The log is put back to version 2 and committed anew: the same versions and counts, other files."""
    lazy = table.path / "kept"
    shutil.move(lazy_folder(table), lazy)
    commits = [path.read_bytes() for path in sorted(table.log.glob("*.json"))[:CHECKPOINT]]
    shutil.rmtree(table.log)
    anew = TableBuilder(table.path)
    for path, body in zip(_commit_paths(table), commits, strict=False):
        path.write_bytes(body)
    anew.states, anew._lines = table.states[:CHECKPOINT], table._lines[:CHECKPOINT]
    others = [numbered_file(n) | {"path": f"part-{n:05}.other-1"} for n in range(31, 41)]
    anew.commit(others).checkpoint()
    grow_tail(anew)
    shutil.move(lazy, lazy_folder(table))
    table.states[:] = anew.states


def _commit_paths(table: TableBuilder) -> list[Path]:
    return [table.log / f"{version:020}.json" for version in range(table.version + 1)]


def _other_table(table: TableBuilder) -> None:
    """The sidecar of another table lies here: same version, same names."""
    other = TableBuilder(table.path / "other")
    for version in range(CHECKPOINT + 1):
        other.commit(numbered_files(range(100 + 20 * version, 110 + 20 * version)))
    other.checkpoint()
    build_sidecar(storage_of(other), config=SMALL)
    shutil.rmtree(lazy_folder(table))
    shutil.move(lazy_folder(other), lazy_folder(table))


def _wrong_file_named(table: TableBuilder) -> None:
    """The manifest names, for its first part, a file that is another part."""
    files = [path.name for path in part_paths(table)]
    edit_manifest(table, lambda body: body["parts"][0].update(file=files[-1]))
    edit_manifest(table, lambda body: body["parts"][-1].update(file=files[0]))


def _file_of_no_part(table: TableBuilder) -> None:
    edit_manifest(table, lambda body: body["parts"][0].update(file="v00000000000000000003.parquet"))


def _torn(table: TableBuilder) -> None:
    for path in part_paths(table):
        path.write_bytes(path.read_bytes()[:-30])


def _one_torn(table: TableBuilder) -> None:
    path = part_paths(table)[1]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flipped_page(table: TableBuilder) -> None:
    path = part_paths(table)[-1]
    paths = pq.read_metadata(path).row_group(0).column(0)
    body = bytearray(path.read_bytes())
    body[paths.data_page_offset + paths.total_compressed_size - 3] ^= 0xFF
    path.write_bytes(bytes(body))


def _empty_manifest(table: TableBuilder) -> None:
    next(lazy_folder(table).glob("*.manifest.json")).write_bytes(b"")


def _half_manifest(table: TableBuilder) -> None:
    path = next(lazy_folder(table).glob("*.manifest.json"))
    path.write_bytes(path.read_bytes()[:300])


def _manifest_without_checksum(table: TableBuilder) -> None:
    path = next(lazy_folder(table).glob("*.manifest.json"))
    body = json.loads(path.read_bytes())
    del body["crc32"]
    path.write_text(json.dumps(body, separators=(",", ":")), encoding="utf-8")


def _one_part_lacking(table: TableBuilder) -> None:
    without_manifest(table)
    part_paths(table)[-1].unlink()


def _no_part(table: TableBuilder) -> None:
    for path in part_paths(table):
        path.unlink()


def _older_only(table: TableBuilder) -> None:
    """A checkpoint after the sidecar's, without one of its own."""
    table.checkpoint(version=table.version)


def _older_without_commits(table: TableBuilder) -> None:
    _older_only(table)
    table.clean_up(before=table.version)


def _denied(table: TableBuilder) -> None:
    """The folder is a file: no store gives what lies below it."""
    shutil.rmtree(lazy_folder(table))
    lazy_folder(table).write_text("no folder", encoding="utf-8")


def _plain_only(table: TableBuilder) -> None:
    without_sidecar(table)
    write_plain(table, version=CHECKPOINT)


def _plain_too_old(table: TableBuilder) -> None:
    without_sidecar(table)
    write_plain(table, version=CHECKPOINT, age_seconds=100)


def _plain_wrong_count(table: TableBuilder) -> None:
    without_sidecar(table)
    write_plain(table, version=CHECKPOINT, change=lambda rows: rows.slice(1))


def _plain_torn(table: TableBuilder) -> None:
    _plain_only(table)
    path = table.log / "_sidecars" / f"v{CHECKPOINT}.parquet"
    stamp = path.stat().st_mtime
    path.write_bytes(path.read_bytes()[:-100])
    os.utime(path, (stamp, stamp))


def _with_manifest(**changes: Any) -> Callable[[TableBuilder], None]:
    return lambda table: edit_manifest(table, lambda body: body.update(changes))


def _other_counts(table: TableBuilder) -> None:
    """The checkpoint was written anew, and the `.crc` tells other counts than the sidecar has."""
    edit_manifest(table, lambda body: body["binding"]["checkpoint"][0].update(size_bytes=1))
    edit_manifest(table, lambda body: body["binding"].update(num_files=39))


def _other_id_everywhere(table: TableBuilder) -> None:
    def change(body: Any) -> None:
        body["table_id"] = "another"
        body["metadata"]["id"] = "another"

    edit_manifest(table, change)


STATES: dict[str, State] = {
    "manifest and parts": State(lambda _: None, "sidecar 3 (manifest)", None),
    "no manifest": State(without_manifest, "sidecar 3 (footers)", None),
    "no sidecar": State(without_sidecar, "checkpoint 3", None),
    "no part": State(_no_part, "checkpoint 3", "is damaged (a file of the sidecar is not there)"),
    "wrong file named": State(_wrong_file_named, "checkpoint 3", "is damaged"),
    "a file that is no part named": State(_file_of_no_part, "sidecar 3 (footers)", "contradicts itself"),
    "older sidecar, commits gone": State(_older_without_commits, "checkpoint 5", "commit 4 after it is gone"),
    "torn parts": State(_torn, "checkpoint 3", "is damaged"),
    "one torn part": State(_one_torn, "checkpoint 3", "is damaged"),
    "a flipped page": State(_flipped_page, "checkpoint 3", "is damaged"),
    "sidecar of another table": State(_other_table, "checkpoint 3", "is of another log"),
    "another table's id": State(_with_manifest(table_id="another"), "checkpoint 3", "of the table another"),
    "another table's id everywhere": State(_other_id_everywhere, "checkpoint 3", "not of this one"),
    "wrong count": State(_with_manifest(num_files=39), "sidecar 3 (footers)", "contradicts itself"),
    "wrong counts against the crc": State(_other_counts, "checkpoint 3", "it was built from"),
    "restored log": State(restored_log, "checkpoint 3", "is of another log"),
    "unknown format": State(_with_manifest(format=2), "sidecar 3 (footers)", "has format 2"),
    "empty manifest": State(_empty_manifest, "sidecar 3 (footers)", "cannot be read"),
    "half a manifest": State(_half_manifest, "sidecar 3 (footers)", "cannot be read"),
    "manifest without its checksum": State(
        _manifest_without_checksum, "sidecar 3 (footers)", "does not end with its checksum"
    ),
    "no manifest and a part lacking": State(_one_part_lacking, "checkpoint 3", "has 4 parts, not 5"),
    "plain file": State(_plain_only, "sidecar 3 (plain)", None),
    "plain file older than the log": State(_plain_too_old, "checkpoint 3", "is older than"),
    "plain file of another count": State(_plain_wrong_count, "checkpoint 3", "it has 39 files"),
    "torn plain file": State(_plain_torn, "checkpoint 3", "cannot be read"),
    "no folder but a file": State(_denied, "checkpoint 3", None),
}


def manifest_json(table: TableBuilder, version: int = CHECKPOINT) -> dict[str, Any]:
    """The manifest as JSON."""
    path = lazy_folder(table) / f"v{version:020}.manifest.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found
