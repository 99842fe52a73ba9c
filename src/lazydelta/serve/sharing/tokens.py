"""Sealed tokens: pages of lists, of files and of changes, and refreshed links.

Contract: signed by the server's key and bound to a client, to what was asked and to an end of validity: one
that was altered, has expired, is another client's or another question's is refused. What it carries is
trusted once its seal is right.
"""

from __future__ import annotations

import hmac
import time
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.sealed_text import bytes_of, text_of

_SEAL_BYTES = 16
_FORMAT = b"lazydelta-sharing-1 "
_CHARACTERS_MAX = 65_536
Carried = TypeVar("Carried")


class TokenOffice:
    """Writes and reads tokens with one key."""

    def __init__(self, key: bytes, *, valid_seconds: float) -> None:
        self._key = key
        self._valid_seconds = valid_seconds

    def write(self, kind: str, bound_to: Any, carried: Any) -> str:  # Any: plain values
        """A token of a kind, for this question alone."""
        body = msgspec.msgpack.encode((time.time() + self._valid_seconds, carried))
        return text_of(self._seal(kind, bound_to, body) + body)

    def read(self, kind: str, bound_to: Any, text: str, carried: type[Carried]) -> Carried:
        """What `write` wrote for the same question, still in time."""
        raw = bytes_of(text) if len(text) <= _CHARACTERS_MAX else None
        if raw is None or len(raw) <= _SEAL_BYTES:
            raise _refused(kind, "it is cut or mistyped")
        seal, body = raw[:_SEAL_BYTES], raw[_SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._seal(kind, bound_to, body)):
            raise _refused(kind, "it was altered, or is of another question, client or server")
        expires_at, found = msgspec.msgpack.decode(body, type=tuple[float, msgspec.Raw])
        if expires_at < time.time():
            raise _refused(kind, "it has expired")
        return msgspec.msgpack.decode(found, type=carried)

    def _seal(self, kind: str, bound_to: Any, body: bytes) -> bytes:
        bound = blake2b(msgspec.msgpack.encode((kind, bound_to)), digest_size=16).digest()
        return hmac.digest(self._key, _FORMAT + bound + body, "sha256")[:_SEAL_BYTES]


def _refused(kind: str, reason: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the token cannot be used: {reason}",
        kind,
        "begin again without it, and change nothing between pages",
    )
