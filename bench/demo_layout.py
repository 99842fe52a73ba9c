"""The demo's look at the table on disk: hours, files, checkpoints, sidecars, what a query needs of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.demo_checks import ListedFile, listed_files
from bench.sidecar_files import newest_manifest, query_bytes, row_groups_since

if TYPE_CHECKING:
    from lazydelta.spark.config import IngestConfig

_HOURS_SHOWN = 3


def show_layout(config: IngestConfig, newest_hour: str) -> None:
    """Print what lies where."""
    files = listed_files(config.target, config.time_column_name, event_time=config.event_time)
    log = Path(config.target) / "_delta_log"
    print(
        "\n".join(
            [*_files_told(files), *_log_told(log), *_sidecar_told(log, config.sidecar.folder, newest_hour)]
        )
    )


def _files_told(files: Sequence[ListedFile]) -> Iterable[str]:
    hours: dict[str, list[ListedFile]] = {}
    for file in files:
        hours.setdefault(file.hour, []).append(file)
    size, rows = sum(file.size for file in files), sum(file.num_records for file in files)
    yield f"  {len(files):,} files in {len(hours)} hours, {rows:,} rows, {size / 1e6:,.1f} MB"
    yield "  each file holds rows of one hour; an hour has more than one file where rows came late:\n"
    yield "       _event_hour  files     rows        MB"
    names = sorted(hours)
    shown = [*names[:_HOURS_SHOWN], "…", *names[-_HOURS_SHOWN:]] if len(names) > 2 * _HOURS_SHOWN else names
    for name in shown:
        mine = hours.get(name)
        yield "                 …" if mine is None else _hour_line(name, mine)


def _hour_line(name: str, files: Sequence[ListedFile]) -> str:
    rows, size = sum(file.num_records for file in files), sum(file.size for file in files)
    return f"  {name:>16}  {len(files):>5}  {rows:>7,}  {size / 1e6:>8.2f}"


def _log_told(log: Path) -> Iterable[str]:
    checkpoints = sorted(log.glob("*.checkpoint*.parquet"))
    commits = sorted(log.glob("*[0-9].json"))
    yield f"\n  log: {len(commits)} commits, {sum(path.stat().st_size for path in commits) / 1e3:,.0f} KB"
    for path in checkpoints:
        yield f"  checkpoint of version {int(path.name[:20])}: {path.stat().st_size / 1e3:,.0f} KB"


def _sidecar_told(log: Path, folder: str, newest_hour: str) -> Iterable[str]:
    place = log.parent / folder
    found = newest_manifest(place)
    if found is None:
        yield "  no sidecar was written"
        return
    path, manifest = found
    size = manifest.sidecar_size_bytes + path.stat().st_size
    parts = "1 part" if len(manifest.parts) == 1 else f"{len(manifest.parts)} parts"
    held = f"{parts} with {manifest.num_row_groups} row groups"
    yield f"  sidecar of version {manifest.version}: {held}, {size / 1e3:,.0f} KB with its manifest,"
    yield f"    rows sorted by {manifest.order_column}"
    wanted = row_groups_since(manifest, newest_hour)
    needed = path.stat().st_size + query_bytes(place, manifest, since_hour=newest_hour)
    yield f"    the newest hour ({newest_hour}) can be in {wanted} of {manifest.num_row_groups} row groups:"
    yield f"    a query needs {needed / 1e3:,.1f} KB of it, manifest and footers included"
