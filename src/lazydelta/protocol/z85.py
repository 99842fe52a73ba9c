"""Z85, the base85 of Delta's log: five characters of text for four bytes.

Contract: pure; text that is not Z85 is a `ValueError` that says why.
Spec: PROTOCOL.md, "Deletion Vector Descriptor Schema"; rfc.zeromq.org/spec/32.
"""

from __future__ import annotations

import numpy as np

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_INVALID = 255
_DIGITS = np.full(256, _INVALID, np.uint8)
_DIGITS[np.frombuffer(ALPHABET.encode(), np.uint8)] = np.arange(len(ALPHABET), dtype=np.uint8)
_WEIGHTS = np.array([85**4, 85**3, 85**2, 85, 1], np.uint64)
_WORD_MAX = 0xFFFF_FFFF


def decode_z85(text: str) -> bytes:
    """The bytes: four for every five characters, padding of the writer included."""
    if len(text) % 5:
        raise ValueError(f"its text has {len(text)} characters, which is not a multiple of five")
    if not text.isascii():
        raise ValueError("its text has characters that are not Z85")
    digits = _DIGITS[np.frombuffer(text.encode("ascii"), np.uint8)]
    if (digits == _INVALID).any():
        raise ValueError("its text has characters that are not Z85")
    words = digits.reshape(-1, 5).astype(np.uint64) @ _WEIGHTS
    if words.size and int(words.max()) > _WORD_MAX:
        raise ValueError("its text is not Z85: five characters stand for more than four bytes")
    return words.astype(">u4").tobytes()
