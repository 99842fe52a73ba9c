"""Who reads, as a digest: what may be shared between tables hangs on it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from lazydelta.settings import Settings


def access_digest(settings: Settings, environment: Mapping[str, str]) -> bytes:
    """What tells apart who reads and where, without telling it: two that differ must share nothing.

    Clients of stores look for what they are not told in the environment (`AZURE_…`, `AWS_…`).
    """
    told = sorted((name, str(value)) for name, value in settings.storage_options.items())
    names = sorted(name for name in environment if name.upper().startswith(("AZURE_", "AWS_")))
    found = [(name, environment[name]) for name in names]
    return blake2b(repr((told, found)).encode(errors="surrogateescape"), digest_size=16).digest()
