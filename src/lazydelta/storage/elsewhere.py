"""Files that a log names outside the table's root: which storage has them, under which name.

Why: shallow clones and some writers name data files and deletion vectors by absolute URIs.
Contract: what lies in the same store is read with the same client, counters and deadline. A URI of another
store is an `UnsupportedTableError`: credentials for it were never given.
Spec: PROTOCOL.md, "Add File and Remove File".
"""

from __future__ import annotations

from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.storage.address import TableAddress, parse_address
from lazydelta.storage.interface import Storage
from lazydelta.storage.local import LocalStorage
from lazydelta.storage.names import uri_path


def storage_of(storage: Storage, path: str) -> tuple[Storage, str]:
    """The storage and the name of a canonical path: below the table's root, or an absolute decoded URI."""
    if "://" not in path:
        return storage, path
    folder, _, name = path.rpartition("/")
    address = _address(folder, path)
    if address.kind == "local" and isinstance(storage, LocalStorage):
        same = storage.counters, storage._deadline  # of the room: no one else needs it
        return LocalStorage(address.path.rstrip("/"), address.root, *same), name
    if address.kind != "local" and not isinstance(storage, LocalStorage):
        from lazydelta.storage.remote import RemoteStorage  # obstore is slow to load

        if isinstance(storage, RemoteStorage) and _store(address) == _store(parse_address(storage.root)):
            return storage.at(address.path, address.root), name
    raise UnsupportedTableError(
        "the table names a file in another store than its own",
        path,
        "copy the file into the table, or clone the table with its data",
    )


def _address(folder: str, path: str) -> TableAddress:
    scheme, _, rest = folder.partition("://")
    authority, slash, inside = rest.partition("/")
    try:
        return parse_address(f"{scheme}://{authority}{slash}{uri_path(inside)}")
    except InvalidRequestError as unknown:
        raise UnsupportedTableError(
            f"the table names a file in a store that this reader does not open: {unknown.what}",
            path,
            "copy the file into the table, or clone the table with its data",
        ) from unknown


def _store(address: TableAddress) -> tuple[str, str, str | None, str]:
    return address.kind, address.container, address.account, address.azure_suffix
