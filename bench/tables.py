"""Generated tables that benchmarks share, kept in the project's cache.

Contract: a table is made once; its description lies beside it, written last, so that a half-made table is
made again. A table without checksum files is a second folder of links to the same bytes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.generate import Expected, generate
from bench.spec import TableSpec

REPOSITORY = Path(__file__).resolve().parents[1]


class CachedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table on disk and what a reader must find in it."""

    path: Path
    spec: TableSpec
    expected: Expected


def cache_folder() -> Path:
    """Where downloads and generated tables are kept between runs."""
    return Path(os.environ.get("LAZYDELTA_CACHE") or REPOSITORY / ".cache")


def bench_spec(files: int) -> TableSpec:
    """The table of the ladder: JSON statistics, order as Spark leaves it, a tail of 50 commits.

    Data exists for the newest commit, and deletion vectors for the tail, because some readers tell of a
    file only by reading it.
    """
    return TableSpec(files=files, order="spark", stats="json", checkpoint_dv_every=0, data="newest")


@contextmanager
def alone_at(path: Path) -> Iterator[None]:
    """Nobody else makes what belongs there meanwhile: two commands may want the same table at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached_table(spec: TableSpec) -> CachedTable:
    """The table of a spec, generated if it is not there yet."""
    path = cache_folder() / "bench" / spec.name
    about = path.with_name(path.name + ".json")
    with alone_at(path):
        if not about.exists():
            about.write_bytes(msgspec.json.encode(generate(path, spec)))
    return CachedTable(path=path, spec=spec, expected=msgspec.json.decode(about.read_bytes(), type=Expected))


def without_checksums(table: CachedTable) -> Path:
    """The same log without `.crc` files, as another folder."""
    path = table.path.with_name(table.path.name + "-without-crc")
    shutil.rmtree(path, ignore_errors=True)
    for source in (table.path / "_delta_log").rglob("*"):
        target = path / source.relative_to(table.path)
        if source.is_file() and source.suffix != ".crc":
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)
    return path
