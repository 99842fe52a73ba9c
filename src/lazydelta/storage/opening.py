"""From a table's URL and the settings to a `Storage`."""

from __future__ import annotations

from copy import copy

import msgspec

from lazydelta.settings import Settings, process_environment
from lazydelta.storage.address import FABRIC, TableAddress, given_address
from lazydelta.storage.deadline import NEVER, Deadline
from lazydelta.storage.interface import Storage
from lazydelta.storage.local import LocalStorage
from lazydelta.storage.places import Places, places_of
from lazydelta.storage.url_credentials import split_credentials


def open_storage(url: str, settings: Settings) -> Storage:
    """The store that holds the table at `url`. Nothing is read yet, so the table need not exist."""
    url, settings = split_credentials(url, settings)
    address = given_address(url)
    if address.kind == "local":
        storage = LocalStorage(address.path, address.root)
        storage.places = places_of(address, settings)
        return storage
    address = _with_account(address, settings)
    return remote_storage(address, settings, None, places_of(address, settings))


def remote_storage(
    address: TableAddress, settings: Settings, beside: Storage | None, places: Places | None = None
) -> Storage:
    """The store of the address; `beside`, a storage whose counters and deadline it shares."""
    # Imported here: obstore takes 35 ms to load, which a local table does not need.
    from lazydelta.storage.remote import RemoteStorage
    from lazydelta.storage.remote_link import RemoteLink
    from lazydelta.storage.retry import RetryPolicy
    from lazydelta.storage.shared_clients import shared_client

    client = shared_client(address, settings, process_environment())
    link = RemoteLink(
        store=client.store,
        kind=address.kind,
        root=address.root,
        prefix=address.path,
        policy=RetryPolicy.of(settings),
        # OneLake answers a listing with `startFrom` with nothing at all, so it is filtered here.
        lists_from_offset=address.azure_suffix != FABRIC,
        host=client.host,
        provider=client.provider,
        signature_end=client.signature_end,
        places=places,
    )
    if beside is None:
        return RemoteStorage(link)
    return RemoteStorage(link, beside.counters, beside._deadline)  # type: ignore[attr-defined]  # of the room


def until(storage: Storage, deadline: Deadline) -> Storage:
    """The same storage, counters and all, that asks nothing more after the deadline."""
    if deadline is NEVER:
        return storage
    same = copy(storage)
    earlier = storage._deadline.earlier(deadline)  # type: ignore[attr-defined]  # of the room
    same._deadline = earlier  # type: ignore[attr-defined]  # likewise
    return same


def _with_account(address: TableAddress, settings: Settings) -> TableAddress:
    if address.kind != "azure" or address.account is not None:
        return address
    from lazydelta.storage.azure_access import azure_account

    account = azure_account(settings.storage_options, process_environment())
    return msgspec.structs.replace(address, account=account)
