"""From a table's URL and the settings to a `Storage`."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from lazydelta.settings import Settings
from lazydelta.storage.address import FABRIC, TableAddress, parse_address
from lazydelta.storage.interface import Storage
from lazydelta.storage.local import LocalStorage


def open_storage(url: str, settings: Settings) -> Storage:
    """The store that holds the table at `url`. Nothing is read yet, so the table need not exist."""
    address = parse_address(url)
    if address.kind == "local":
        return LocalStorage(address.path, address.root)
    return _open_remote(address, settings)


def access_digest(settings: Settings, environment: Mapping[str, str]) -> bytes:
    """What tells apart who reads and where, without telling it: two that differ must share nothing.

    Clients of stores look for what they are not told in the environment (`AZURE_…`, `AWS_…`).
    """
    told = sorted((name, str(value)) for name, value in settings.storage_options.items())
    found = sorted(item for item in environment.items() if item[0].upper().startswith(("AZURE_", "AWS_")))
    return blake2b(repr((told, found)).encode(errors="surrogateescape"), digest_size=16).digest()


def _open_remote(address: TableAddress, settings: Settings) -> Storage:
    # Imported here: obstore takes 35 ms to load, which a local table does not need.
    from lazydelta.storage.connect import account_in, connect
    from lazydelta.storage.remote import RemoteLink, RemoteStorage
    from lazydelta.storage.retry import RetryPolicy

    if address.kind == "azure" and address.account is None:
        address = msgspec.structs.replace(address, account=account_in(settings.storage_options))
    link = RemoteLink(
        store=connect(address, settings),
        kind=address.kind,
        root=address.root,
        prefix=address.path,
        policy=RetryPolicy.of(settings),
        # OneLake answers a listing with `startFrom` with nothing at all, so it is filtered here.
        lists_from_offset=address.azure_suffix != FABRIC,
    )
    return RemoteStorage(link)
