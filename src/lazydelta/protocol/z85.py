"""Z85, the base85 of Delta's log: five characters of text for four bytes.

Why a tail of its own: Java writers fill the last four bytes with zeros, Rust writers (the crate z85) begin
the last five characters with a `#` for each byte that is missing, which no five characters of Z85 do.
Contract: pure; text that is not Z85 is a `ValueError` that says why.
Spec: PROTOCOL.md, "Deletion Vector Descriptor Schema"; rfc.zeromq.org/spec/32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_INVALID = 255
_DIGITS = np.full(256, _INVALID, np.uint8)
_DIGITS[np.frombuffer(ALPHABET.encode(), np.uint8)] = np.arange(len(ALPHABET), dtype=np.uint8)
_WEIGHTS = np.array([85**4, 85**3, 85**2, 85, 1], np.uint64)
_WORD_MAX = 0xFFFF_FFFF


def decode_z85(text: str) -> bytes:
    """The bytes: four for every five characters, zeros that a writer filled up with among them."""
    missing = len(text[-5:]) - len(text[-5:].lstrip("#"))
    if 0 < missing < 4:
        text = text[:-5] + "0" * missing + text[missing - 5 :]
    data = _words(text).astype(">u4").tobytes()
    if not 0 < missing < 4:
        return data
    if any(data[-4 : missing - 4]):
        raise ValueError("its text is not Z85: its end stands for more bytes than it says")
    return data[:-4] + data[missing - 4 :]


def _words(text: str) -> NDArray[np.uint64]:
    if len(text) % 5:
        raise ValueError(f"its text has {len(text)} characters, which is not a multiple of five")
    if not text.isascii():
        raise ValueError("its text has characters that are not Z85")
    digits = _DIGITS[np.frombuffer(text.encode("ascii"), np.uint8)]
    if (digits == _INVALID).any():
        raise ValueError("its text has characters that are not Z85")
    words: NDArray[np.uint64] = digits.reshape(-1, 5).astype(np.uint64) @ _WEIGHTS
    if words.size and int(words.max()) > _WORD_MAX:
        raise ValueError("its text is not Z85: five characters stand for more than four bytes")
    return words
