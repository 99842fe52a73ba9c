"""From a table's URL and the settings to a `Storage`."""

from __future__ import annotations

import msgspec

from lazydelta.settings import Settings, process_environment
from lazydelta.storage.address import FABRIC, TableAddress, parse_address
from lazydelta.storage.interface import Storage
from lazydelta.storage.local import LocalStorage


def open_storage(url: str, settings: Settings) -> Storage:
    """The store that holds the table at `url`. Nothing is read yet, so the table need not exist."""
    address = parse_address(url)
    if address.kind == "local":
        return LocalStorage(address.path, address.root)
    return _open_remote(address, settings)


def _open_remote(address: TableAddress, settings: Settings) -> Storage:
    # Imported here: obstore takes 35 ms to load, which a local table does not need.
    from lazydelta.storage.connect import account_in
    from lazydelta.storage.remote import RemoteStorage
    from lazydelta.storage.remote_link import RemoteLink
    from lazydelta.storage.retry import RetryPolicy
    from lazydelta.storage.shared_clients import shared_client

    if address.kind == "azure" and address.account is None:
        address = msgspec.structs.replace(address, account=account_in(settings.storage_options))
    link = RemoteLink(
        store=shared_client(address, settings, process_environment()),
        kind=address.kind,
        root=address.root,
        prefix=address.path,
        policy=RetryPolicy.of(settings),
        # OneLake answers a listing with `startFrom` with nothing at all, so it is filtered here.
        lists_from_offset=address.azure_suffix != FABRIC,
    )
    return RemoteStorage(link)
