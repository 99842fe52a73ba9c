"""A sealed footer: any Parquet reader opens the file, and a changed bit is met before Arrow sees it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta.sidecar import DamagedSidecarError
from lazydelta.sidecar.format.footer_seal import sealed
from lazydelta.sidecar.format.part_encoding import footer_length
from lazydelta.sidecar.format.sealed_file import SealedFile
from tests.unit.sidecar.samples import storage_at

ROWS = pa.table({"n": list(range(100))})


def plain_body(rows: pa.Table = ROWS) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return bytes(sink.getvalue().to_pybytes())


def opened(folder: Path, name: str, body: bytes) -> SealedFile:
    storage = storage_at(folder)
    assert storage.put_if_absent(name, body)
    return SealedFile(storage, name, len(body))


def test_a_sealed_file_is_plain_parquet() -> None:
    assert pq.read_table(pa.BufferReader(sealed(plain_body()))).equals(ROWS)


def test_a_sealed_file_is_read_by_one_request_for_its_footer(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    body = sealed(plain_body())
    storage.put_if_absent("a.parquet", body)
    scoped = storage.scoped()
    assert SealedFile(scoped, "a.parquet", len(body)).metadata.num_rows == 100
    assert scoped.counters.snapshot().requests == 1


def test_a_footer_larger_than_the_first_guess_is_checked_too(tmp_path: Path) -> None:
    wide = pa.table({f"column_{number:05}": [number] for number in range(800)})
    body = sealed(plain_body(wide))
    assert footer_length(body) > 1 << 16
    assert opened(tmp_path, "wide.parquet", body).metadata.num_columns == 800
    torn = bytearray(body)
    torn[len(body) - footer_length(body) + 5] ^= 1
    with pytest.raises(DamagedSidecarError, match="footer"):
        _ = opened(tmp_path, "torn.parquet", bytes(torn)).metadata


def test_any_changed_byte_of_the_footer_is_damage(tmp_path: Path) -> None:
    body = sealed(plain_body())
    for at in range(len(body) - footer_length(body) - 8, len(body)):
        changed = bytearray(body)
        changed[at] ^= 0x10
        with pytest.raises(DamagedSidecarError):
            _ = opened(tmp_path, f"{at}.parquet", bytes(changed)).metadata


def test_a_file_without_a_seal_is_damage(tmp_path: Path) -> None:
    for name, body in {"plain": plain_body(), "short": b"PAR1", "empty": b""}.items():
        with pytest.raises(DamagedSidecarError):
            _ = opened(tmp_path, name, body).metadata
