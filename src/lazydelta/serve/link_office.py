"""Links that this server answers: what they carry, and the signature that they carry it under.

Contract: a link is for one file that the log of one version names, for one client, and expires. All of that
is signed by the server's key: nothing else can be asked for, and nothing is listed. The parameters are named
as Azure's are (`sp`, `se`, `sig`), because readers know by them that an address is signed and must be taken
as it is.
"""

from __future__ import annotations

import hmac
import time
from hashlib import blake2b

import msgspec

from lazydelta.serve.refusals import ForbiddenError
from lazydelta.serve.sealed_text import bytes_of, text_of

FILES_PATH = "/files"
_READ = "r"
_FORMAT = b"lazydelta-link-1 "
_SEAL_BYTES = 24
_PAYLOAD_CHARACTERS_MAX = 16_384


class FileLink(msgspec.Struct, frozen=True, array_like=True):
    """What a link of this server carries."""

    table: str
    client: str
    version: int
    path: str  # canonical, as scans give it
    size: int | None  # by the log; None: of a file whose size the log does not tell


class LinkOffice:
    """Writes and reads links of this server with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(_FORMAT + key).digest()

    def query(self, payload: str, expires_at: int) -> str:
        """What stands behind the `?`."""
        return f"sp={_READ}&se={expires_at}&sig={self._signature(payload, _READ, expires_at)}"

    def read(self, payload: str, permission: str, expires_at: str, signature: str) -> FileLink:
        """The link, still in time; anything else is forbidden, in the same words."""
        seconds = int(expires_at) if expires_at.isascii() and expires_at.isdecimal() else 0
        is_long = len(payload) > _PAYLOAD_CHARACTERS_MAX or len(expires_at) > len(str(1 << 53))
        if is_long or permission != _READ:
            raise _forbidden("it was altered, or another server wrote it")
        wanted = self._signature(payload, permission, seconds)
        if not hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "surrogateescape")):
            raise _forbidden("it was altered, or another server wrote it")
        if seconds < time.time():
            raise _forbidden("it has expired")
        raw = bytes_of(payload)
        assert raw is not None  # signed
        return msgspec.msgpack.decode(raw, type=FileLink)

    def _signature(self, payload: str, permission: str, expires_at: int) -> str:
        told = f"{permission} {expires_at} {payload}".encode("utf-8", "surrogateescape")
        return text_of(blake2b(told, key=self._key, digest_size=_SEAL_BYTES).digest())


def _forbidden(reason: str) -> ForbiddenError:
    return ForbiddenError(f"the link cannot be used: {reason}", "link", "ask for the files again")
