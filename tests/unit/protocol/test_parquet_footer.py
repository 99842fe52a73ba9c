"""Footers are judged alike, whether their chunks are matched by patterns or taken apart."""

from __future__ import annotations

import io
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta.protocol import parquet_footer
from lazydelta.protocol.parquet_footer import FooterDamageError, check_footer

COUNT = 4000
ROWS = {
    "flag": pa.array([True, None, False]),
    "small": pa.array([1, None, -3], pa.int32()),
    "long": pa.array([1 << 40, None, 3], pa.int64()),
    "real": pa.array([1.5, None, float("nan")], pa.float64()),
    "half": pa.array([1.5, None, 2.5], pa.float32()),
    "text": pa.array(["a", None, "b" * 100], pa.string()),
    "bytes": pa.array([b"\x00", None, b"\xff" * 40], pa.binary()),
    "money": pa.array([Decimal("1.25"), None, Decimal("-3.50")], pa.decimal128(20, 2)),
    "day": pa.array([date(2026, 2, 10), None, date(1999, 1, 1)]),
    "at": pa.array([datetime(2026, 2, 10, tzinfo=UTC), None, datetime(1999, 1, 1, tzinfo=UTC)]),
    "list": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
    "map": pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
    "struct": pa.array([{"x": {"y": "z"}}, None, {"x": None}]),
    "nothing": pa.nulls(3, pa.string()),
}


def footer_of(columns: dict[str, pa.Array], **options: Any) -> bytes:
    """Of a file with as many row groups as rows."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=1, **options)
    body = sink.getvalue()
    length = int.from_bytes(body[-8:-4], "little")
    return body[-8 - length : -8]


def verdict(footer: bytes) -> str:
    try:
        check_footer(footer)
    except FooterDamageError as damage:
        return str(damage)
    return "sound"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"version": "1.0", "use_dictionary": False},
        {"write_statistics": False, "compression": "none"},
        {"write_page_index": True, "data_page_version": "2.0"},
    ],
)
def test_usual_chunks_are_matched_and_not_taken_apart(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a chunk was taken apart")

    footer = footer_of(ROWS, **options)
    monkeypatch.setattr(parquet_footer, "_check_chunk", refuse)
    check_footer(footer)


def test_a_matched_footer_is_also_sound_when_it_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutations of every kind: what the patterns let pass, the slow way lets pass, too."""
    footers = [footer_of({name: column}) for name, column in ROWS.items()] + [footer_of(ROWS)]
    draw = random.Random(26)
    mutants = [_mutated(draw, draw.choice(footers)) for _ in range(COUNT)]
    by_patterns = [verdict(mutant) for mutant in mutants]
    monkeypatch.setattr(parquet_footer, "_matched", lambda *_: None)
    taken_apart = [verdict(mutant) for mutant in mutants]
    assert COUNT / 12 < sum(told == "sound" for told in taken_apart) < COUNT * 11 / 12
    strays = [
        (mutant.hex(), slow)
        for mutant, fast, slow in zip(mutants, by_patterns, taken_apart, strict=True)
        if fast == "sound" != slow
    ]
    assert strays == []


def _mutated(draw: random.Random, footer: bytes) -> bytes:
    body = bytearray(footer)
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(len(body))
        kind = draw.random()
        if kind < 0.5:
            body[at] = draw.choice((0, 1, 0x0C, 0x15, 0x16, 0x18, 0x19, 0x26, 0x7F, 0x80, 0xFF))
        elif kind < 0.7:
            body[at] ^= 1 << draw.randrange(8)
        elif kind < 0.85:
            del body[at]
        else:
            body.insert(at, draw.randrange(256))
    return bytes(body)


@pytest.mark.parametrize(
    ("column", "found", "put", "words"),
    [
        ("long", b"\x08" + (1 << 40).to_bytes(8, "little"), b"\x03\x00\x00\x00", "bound"),
        ("small", b"\x04\x01\x00\x00\x00", b"\x02\x01\x00", "bound"),
    ],
)
def test_a_bound_of_another_width_is_damage(column: str, found: bytes, put: bytes, words: str) -> None:
    footer = footer_of({column: ROWS[column]})
    assert found in footer
    assert words in verdict(footer.replace(found, put))
