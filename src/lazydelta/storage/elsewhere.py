"""Files that a log names outside the table's root: which storage has them, under which name.

Why: shallow clones and some writers name data files and deletion vectors by absolute URIs.
Contract: only what `places.py` allows is read; anything else is an `UnsupportedTableError` that says what to
set. The same container is read with the same client; another one with a client of its own, for its own
options or the table's. Counters and deadline are always the table's.
Spec: PROTOCOL.md, "Add File and Remove File".
"""

from __future__ import annotations

import msgspec

from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.storage.address import TableAddress, parse_address
from lazydelta.storage.interface import Storage
from lazydelta.storage.local import LocalStorage
from lazydelta.storage.names import uri_path
from lazydelta.storage.option_names import SIGNATURE, told_options
from lazydelta.storage.option_owner import stranger
from lazydelta.storage.places import Place, Places, is_same_store

_OF_AN_ACCOUNT = (
    "account_key",
    "account_name",
    "connection_string",
    "endpoint",
    SIGNATURE,
    "use_emulator",
)


def storage_of(storage: Storage, path: str) -> tuple[Storage, str]:
    """The storage and the name of a canonical path: below the table's root, or an absolute decoded URI."""
    if "://" not in path:
        return storage, path
    folder, _, name = path.rpartition("/")
    places: Places | None = getattr(storage, "places", None)
    if places is None:
        raise _refused(path, "the table names a file outside its root", "open the table by its URL")
    address = _address(folder, path, places.table)
    _check_parts(f"{address.path}/{name}", path)
    place = places.place_of(address)
    if place is None:
        raise _not_allowed(path, address, places)
    if isinstance(storage, LocalStorage) and address.kind == "local":
        return storage.at(address.path.rstrip("/"), address.root), name
    return _in_a_store(storage, address, place, places, path), name


def _in_a_store(storage: Storage, address: TableAddress, place: Place, places: Places, path: str) -> Storage:
    if address.kind == "local":
        raise _refused(
            path, "the table in a store names a file of this machine", "copy the file into the table"
        )
    from lazydelta.storage.opening import remote_storage  # obstore is slow to load
    from lazydelta.storage.remote import RemoteStorage

    has_own = place.settings is not None
    if isinstance(storage, RemoteStorage) and is_same_store(address, places.table) and not has_own:
        return storage.at(address.path, address.root)
    settings = place.settings
    if settings is None:
        settings = places.settings
        _check_shareable(address, places, path)
    return remote_storage(address, settings, storage)


def _check_shareable(address: TableAddress, places: Places, path: str) -> None:
    """Options that are for one account or container must not serve another: they would name the wrong one.

    What the environment has for one account is looked after where a client is made (`azure_access.py`).
    """
    told = told_options(places.settings.storage_options, kind=places.table.kind)
    is_bound = any(name in told for name in _OF_AN_ACCOUNT) or address.kind != places.table.kind
    is_other = (address.kind, address.account) != (places.table.kind, places.table.account)
    if (is_other and is_bound) or stranger(address, told) is not None:
        word = "account" if is_other else "container"
        raise _refused(
            path,
            f"the table names a file in another {word}, and the storage options are for the table's own",
            f'give options for the other one: storage_options={{"{_root(address)}": {{…}}}}',
        )


def _address(folder: str, path: str, table: TableAddress) -> TableAddress:
    scheme, _, rest = folder.partition("://")
    authority, slash, inside = rest.partition("/")
    try:
        address = parse_address(f"{scheme}://{authority}{slash}{uri_path(inside)}")
    except InvalidRequestError as unknown:
        raise _refused(
            path,
            f"the table names a file in a store that this reader does not open: {unknown.what}",
            "copy the file into the table, or clone the table with its data",
        ) from unknown
    if address.kind == "azure" and address.account is None:
        return msgspec.structs.replace(address, account=table.account)
    return address


def _check_parts(inside: str, path: str) -> None:
    parts = inside.removeprefix("/").split("/")
    if "\0" in inside or any(part in ("", ".", "..") for part in parts):
        raise _refused(
            path,
            "the table names a file by a path that leads elsewhere ('.', '..' or an empty part)",
            "check who wrote the log",
        )


def _not_allowed(path: str, address: TableAddress, places: Places) -> UnsupportedTableError:
    root = _root(address)
    setting = f'the storage option delta.allowed_roots="{root}"'
    if is_same_store(address, places.table):
        what = "the table names a file outside its root"
        fix = f"if that file may be read, set {setting} (a root above it will do)"
    else:
        what = "the table names a file in another store than its own"
        fix = (
            f"if that file may be read, set {setting}, or give that store options of its own: "
            f'storage_options={{"{root}": {{…}}}}'
        )
    return _refused(path, what, fix)


def _root(address: TableAddress) -> str:
    return address.path if address.kind == "local" else address.root


def _refused(path: str, what: str, fix: str) -> UnsupportedTableError:
    return UnsupportedTableError(what, path, fix)
