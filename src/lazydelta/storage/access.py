"""Who reads, as a digest: what may be shared between tables hangs on it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from lazydelta.settings import Settings
from lazydelta.storage.providers import provider_serial

# Variables that clients of stores look at, and what they read from.
_PREFIXES = ("AZURE_", "AWS_", "AZURITE_", "IDENTITY_")


def access_digest(settings: Settings, environment: Mapping[str, str]) -> bytes:
    """What tells apart who reads and where, without telling it: two that differ must share nothing.

    Clients of stores look for what they are not told in the environment (`AZURE_…`, `AWS_…`).
    """
    told = [_told(settings.storage_options, settings.credential_provider)]
    for url, place in sorted(settings.locations.items()):
        told.append((url, _told(place.options, place.credential_provider)))
    names = sorted(name for name in environment if name.upper().startswith(_PREFIXES))
    found = [(name, environment[name]) for name in names]
    text = repr((told, settings.allowed_roots, found))
    return blake2b(text.encode(errors="surrogateescape"), digest_size=16).digest()


def _told(options: Mapping[str, str], provider: object) -> tuple[object, ...]:
    return sorted((name, str(value)) for name, value in options.items()), provider_serial(provider)
