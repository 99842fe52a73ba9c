"""The token of a page: where the next one goes on, as text that a caller keeps and gives back.

Contract: opaque, versioned and sealed: text that was cut, mistyped or made up is an `InvalidRequestError`,
never another page. The seal is a checksum; where a key is configured it is a signature by that key, and then
no other token is taken. A token is not secret: it names the table, a file and its order value.
Layout: base64url of one byte for the format, one for the kind of seal, a msgpack array, the seal.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from hashlib import blake2b, sha256
from types import NoneType
from typing import Annotated, Any

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError

_FORMAT = 1
_CHECKSUM, _SIGNATURE = 0, 1
_SEAL_BYTES = 16
_HEAD_BYTES = 2
_PLAIN = (NoneType, bool, int, float, str, bytes)  # as a value is written
_Count = Annotated[int, msgspec.Meta(ge=0, le=limits.NUMBER_MAX)]


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The last thing that went out, as the log has it: never a count, never what a user sees."""

    column: tuple[str, ...] | None  # that the order goes by, physical; None: by path alone
    type_name: str | None
    value: Any  # of the file in that column, plain (sidecar/order/anchor.py); Any: as the type has it
    raw_path: str
    dv_id: str  # empty: none
    row: _Count | None  # in the Parquet file, deleted ones counted; None where files are paged


class PageToken(msgspec.Struct, frozen=True, array_like=True):
    """What the next page must know."""

    table_id: str
    version: _Count  # pinned: every page of a series is of this one
    query: bytes  # fingerprint of what is asked: filter, columns, order, time zone
    order: str  # "asc" or "desc"
    source: str  # what the files at the checkpoint were read from, for people
    emitted: _Count  # by all pages so far
    position: Position


def write_token(token: PageToken, signing_key: str) -> str:
    """The token as text; signed where the key is not empty."""
    kind = _SIGNATURE if signing_key else _CHECKSUM
    body = bytes([_FORMAT, kind]) + msgspec.msgpack.encode(token)
    return _text(body + _seal(body, signing_key))


def read_token(text: object, signing_key: str) -> PageToken:
    """What `write_token` wrote with the same key, or an error that says why not."""
    if not isinstance(text, str):
        raise _refused("it is not text")
    if len(text) > limits.PAGE_TOKEN_CHARS_MAX:
        raise _refused(f"it is longer than {limits.PAGE_TOKEN_CHARS_MAX:,} characters")
    raw = _bytes(text)
    if raw is None or len(raw) < _HEAD_BYTES + _SEAL_BYTES:
        raise _refused("it is cut or mistyped")
    if raw[0] != _FORMAT:
        raise _refused(f"its format is {raw[0]} and this reader knows {_FORMAT}")
    body, seal = raw[:-_SEAL_BYTES], raw[-_SEAL_BYTES:]
    if raw[1] == _CHECKSUM and signing_key:
        raise _refused("it is not signed, and delta.page.signing_key is set")
    if raw[1] == _SIGNATURE and not signing_key:
        raise _refused("it is signed, and delta.page.signing_key is not set")
    if raw[1] not in {_CHECKSUM, _SIGNATURE} or not hmac.compare_digest(_seal(body, signing_key), seal):
        raise _refused(
            "its signature is of another key, or it was changed" if signing_key else "it was changed"
        )
    try:
        found = msgspec.msgpack.decode(body[_HEAD_BYTES:], type=PageToken)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _refused("it was not written by lazydelta") from None
    if not isinstance(found.position.value, _PLAIN):
        raise _refused("it was not written by lazydelta")
    return found


def _seal(body: bytes, signing_key: str) -> bytes:
    if signing_key:
        return hmac.new(_key(signing_key), body, sha256).digest()[:_SEAL_BYTES]
    return blake2b(body, digest_size=_SEAL_BYTES, person=b"lazydelta-page").digest()


def _key(signing_key: str) -> bytes:
    try:
        return signing_key.encode()
    except UnicodeEncodeError:
        pass  # which holds the key: nothing may be raised from it
    raise InvalidRequestError(
        "the key has half a character (a lone surrogate)",
        "delta.page.signing_key",
        "give a key of whole characters; in the environment, as UTF-8",
    )


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes | None:
    """None where the text is not exactly what `_text` makes: some letters have bits to spare."""
    try:
        raw = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if _text(raw) == text else None


def _refused(reason: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the page token cannot be used: {reason}",
        "after",
        "give next_token of the page before as it is, or None for the first page",
    )
