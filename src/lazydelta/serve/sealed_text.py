"""Bytes as text for addresses and tokens: base64url without padding, one spelling for each."""

from __future__ import annotations

import base64
import binascii

_FOR_ADDRESSES = bytes.maketrans(b"+/", b"-_")


def text_of(raw: bytes) -> str:
    """Bytes as text."""
    return binascii.b2a_base64(raw, newline=False).rstrip(b"=").translate(_FOR_ADDRESSES).decode()


def bytes_of(text: str) -> bytes | None:
    """The same back; None where it is none, or another spelling."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return raw if text_of(raw) == text else None
