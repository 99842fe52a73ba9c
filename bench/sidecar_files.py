"""What a sidecar on disk holds, and what a query over the last hour would read of it.

Contract: reads manifests and Parquet footers only. The bytes of a query are those of the manifest, of the
footers of every part that has a row group whose range can match, and of the columns path, size and the
order column in those row groups; nothing is assumed of a cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from lazydelta.sidecar import Manifest, Part, RowGroup, decode_manifest, manifest_name

_COLUMNS_READ = ("path", "size")


class SidecarFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One sidecar, measured on disk."""

    version: int
    num_files: int
    parts: int
    row_groups: int
    part_rows_max: int
    total_bytes: int  # parts it names, and its manifest
    last_hour_bytes: int


def measure_sidecar(folder: Path, version: int, *, since_hour: str) -> SidecarFacts:
    """The sidecar of `version` in `folder`; the query asks for `since_hour` and later."""
    path = folder / manifest_name(version)
    manifest = decode_manifest(path.read_bytes())
    parts_bytes = sum(part.size_bytes + part.stats_size_bytes for part in manifest.parts)
    return SidecarFacts(
        version=version,
        num_files=manifest.num_files,
        parts=len(manifest.parts),
        row_groups=manifest.num_row_groups,
        part_rows_max=max((part.num_rows for part in manifest.parts), default=0),
        total_bytes=parts_bytes + path.stat().st_size,
        last_hour_bytes=path.stat().st_size + query_bytes(folder, manifest, since_hour=since_hour),
    )


def query_bytes(folder: Path, manifest: Manifest, *, since_hour: str) -> int:
    """Bytes of the parts that a reader of `since_hour` and later needs, the manifest not included."""
    assert manifest.row_groups or not manifest.num_row_groups, "the manifest lists its row groups"
    spent = 0
    for number, part in enumerate(manifest.parts):
        groups = [group for group in manifest.row_groups if group.part == number]
        wanted = [at for at, group in enumerate(groups) if _might_match(group, since_hour)]
        if wanted:
            spent += part.footer_bytes + _columns_bytes(folder, part, wanted, manifest.order_column)
    return spent


def row_groups_since(manifest: Manifest, since_hour: str) -> int:
    """Row groups that can hold `since_hour` or later."""
    return sum(_might_match(group, since_hour) for group in manifest.row_groups)


def newest_manifest(folder: Path) -> tuple[Path, Manifest] | None:
    """The manifest of the greatest version and where it lies, if there is one."""
    path = max(folder.glob(manifest_name(0).replace("0" * 20, "[0-9]" * 20)), default=None)
    return None if path is None else (path, decode_manifest(path.read_bytes()))


def bytes_by_name(folder: Path) -> dict[str, int]:
    """Size of every file in the sidecar's folder."""
    return {path.name: path.stat().st_size for path in folder.glob("*")} if folder.exists() else {}


def _might_match(group: RowGroup, since_hour: str) -> bool:
    return group.event_hour_max is not None and group.event_hour_max >= since_hour


def _columns_bytes(folder: Path, part: Part, row_groups: Iterable[int], order_column: str | None) -> int:
    about = pq.ParquetFile(folder / part.file).metadata
    names = {*_COLUMNS_READ, order_column}
    groups = [about.row_group(number) for number in row_groups]
    columns = [group.column(number) for group in groups for number in range(group.num_columns)]
    return sum(column.total_compressed_size for column in columns if column.path_in_schema in names)
