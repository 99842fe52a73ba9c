"""Credentials for the emulators: shared access signatures made with an account's key, and bearer tokens.

Contract: what Azurite accepts. Signatures are real ones (it checks them); of a token it checks the times, the
issuer and the audience, not the signature.
Spec: Azure Storage documentation, "Create an account SAS", "Create a service SAS" (versions from 2020-12-06).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

VERSION = "2021-08-06"


def account_signature(
    account: str,
    key: str,
    *,
    permissions: str = "rlcwd",
    resource_types: str = "sco",
    seconds: float = 3600,
) -> str:
    """An account SAS for blobs, valid for so long."""
    start, end = _times(seconds)
    signed = [account, permissions, "b", resource_types, start, end, "", "https,http", VERSION, "", ""]
    fields = {"sv": VERSION, "ss": "b", "srt": resource_types, "sp": permissions, "st": start, "se": end}
    return _signed(key, signed, {**fields, "spr": "https,http"})


def container_signature(
    account: str, key: str, container: str, *, permissions: str = "rl", seconds: float = 3600
) -> str:
    """A service SAS for everything in a container."""
    resource = f"/blob/{account}/{container}"
    return _service_signature(key, resource, kind="c", permissions=permissions, seconds=seconds)


def blob_signature(
    account: str, key: str, blob: str, *, permissions: str = "r", seconds: float = 3600
) -> str:
    """A service SAS for one blob, `container/name`."""
    resource = f"/blob/{account}/{blob}"
    return _service_signature(key, resource, kind="b", permissions=permissions, seconds=seconds)


def bearer_token(
    *, seconds: float = 3600, audience: str = "https://storage.azure.com", mark: str = ""
) -> str:
    """A token as Azure's directory gives out, valid for so long; `mark` makes it known again."""
    now = time.time()
    claims = {
        "aud": audience,
        "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
        "iat": int(now) - 60,
        "nbf": int(now) - 60,
        "exp": int(now + seconds),
        "sub": mark,
    }
    parts = [{"alg": "none", "typ": "JWT"}, claims]
    return ".".join([*(_encoded(json.dumps(part).encode()) for part in parts), _encoded(b"unsigned")])


def _service_signature(key: str, resource: str, *, kind: str, permissions: str, seconds: float) -> str:
    start, end = _times(seconds)
    fields = {"sv": VERSION, "sr": kind, "sp": permissions, "st": start, "se": end, "spr": "https,http"}
    signed = [permissions, start, end, resource, "", "", "https,http", VERSION, kind]
    return _signed(key, [*signed, *[""] * 7], fields)


def _signed(key: str, lines: list[str], fields: dict[str, str]) -> str:
    digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
    return urlencode({**fields, "sig": base64.b64encode(digest).decode()})


def _times(seconds: float) -> tuple[str, str]:
    now = datetime.now(UTC)
    moments = (now - timedelta(minutes=5), now + timedelta(seconds=seconds))
    start, end = (moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in moments)
    return start, end


def _encoded(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()
