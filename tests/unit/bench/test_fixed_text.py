"""Fixed-width text agrees with the plain way of writing each value."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from bench.fixed_text import Z85, digits, joined, looked_up, strings, uuid_bytes, uuid_text, uuid_z85

WORDS = np.array([0, 1, 0x0123456789ABCDEF, 2**64 - 1], dtype=np.uint64)


def _lines(rows: np.ndarray) -> list[str]:
    return [row.tobytes().decode() for row in rows]


def test_digits_are_padded_with_zeros() -> None:
    assert _lines(digits(np.array([0, 7, 1234]), 4)) == ["0000", "0007", "1234"]


def test_uuid_text_reads_back_as_the_same_version_four_uuid() -> None:
    octets = uuid_bytes(WORDS, WORDS[::-1].copy())
    read = [uuid.UUID(text) for text in _lines(uuid_text(WORDS, WORDS[::-1].copy()))]
    assert [one.bytes for one in read] == [row.tobytes() for row in octets]
    assert {one.version for one in read} == {4}


def test_z85_text_decodes_to_the_same_uuid() -> None:
    texts = _lines(uuid_z85(WORDS, WORDS))
    assert [_z85_decoded(text) for text in texts] == [row.tobytes() for row in uuid_bytes(WORDS, WORDS)]


def test_parts_are_glued_in_order_and_become_arrow_strings() -> None:
    rows = joined([b"a=", digits(np.array([1, 2]), 2), b";", looked_up(np.array([1, 0]), ["x", "y"])], 2)
    assert strings(rows).to_pylist() == ["a=01;y", "a=02;x"]


@pytest.mark.parametrize("row_count", [0, 1])
def test_empty_and_single_rows_are_valid_arrow(row_count: int) -> None:
    column = strings(joined([b"ab"], row_count))
    column.validate(full=True)
    assert len(column) == row_count


def _z85_decoded(text: str) -> bytes:
    groups = [text[at : at + 5] for at in range(0, len(text), 5)]
    values = [
        sum(Z85.index(char.encode()) * 85 ** (4 - i) for i, char in enumerate(group)) for group in groups
    ]
    return b"".join(value.to_bytes(4, "big") for value in values)
