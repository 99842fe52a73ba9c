"""Where files of a table may lie besides its own root: the roots that the user allowed, with their options.

Why: a log is somebody else's data. An absolute path in it would make the reader open, with the reader's own
credentials, whatever the log's writer wants read. Shallow clones need such paths, so they can be allowed.
Contract: nothing outside the table's root is read unless `delta.allowed_roots` or a location with options of
its own covers it; the longest root that covers a path counts, of two alike the one with options of its own.
Dots that lead elsewhere never do.
"""

from __future__ import annotations

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.settings import LocationOptions, Settings
from lazydelta.storage.address import TableAddress, given_address

EVERYWHERE = "*"  # in the table's own store


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One allowed root, and the settings to read it with; None: those of the table."""

    address: TableAddress
    settings: Settings | None = None

    def __repr__(self) -> str:
        return f"Place({self.address.root!r})"


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """What one opened table may read outside its root."""

    table: TableAddress
    settings: Settings
    allowed: tuple[Place, ...] = ()
    whole_store: bool = False

    def __repr__(self) -> str:
        return f"Places({[place.address.root for place in self.allowed]})"

    def place_of(self, folder: TableAddress) -> Place | None:
        """The allowed root that covers the folder, if one does."""
        covering = [place for place in self.allowed if covers(place.address, folder)]
        if covering:
            return max(covering, key=lambda place: (len(place.address.path), place.settings is not None))
        if self.whole_store and is_same_store(self.table, folder):
            return Place(address=self.table)
        return None


def places_of(table: TableAddress, settings: Settings) -> Places:
    """The places that the settings allow; an address among them that cannot be read is an error."""
    roots = [root.strip() for root in settings.allowed_roots.split(",") if root.strip()]
    allowed = [Place(address=_address(root, table)) for root in roots if root != EVERYWHERE]
    named: dict[str, Settings] = {}
    for url, given in settings.locations.items():
        bare, own = _location(url, given, settings)
        place = Place(address=_address(bare, table), settings=own)
        if named.setdefault(place.address.root, own) != own:
            raise InvalidRequestError(
                "one location is given in two spellings with two sets of options",
                place.address.root,
                "keep one of them",
            )
        allowed.append(place)
    return Places(table=table, settings=settings, allowed=tuple(allowed), whole_store=EVERYWHERE in roots)


def covers(root: TableAddress, folder: TableAddress) -> bool:
    """Whether the folder is the root or below it."""
    inside = root.path.rstrip("/")
    return is_same_store(root, folder) and (
        not inside or folder.path == inside or folder.path.startswith(f"{inside}/")
    )


def is_same_store(one: TableAddress, other: TableAddress) -> bool:
    """Whether both are in one container, or on this machine's disk."""
    return (one.kind, one.container, one.account, one.azure_suffix) == (
        other.kind,
        other.container,
        other.account,
        other.azure_suffix,
    )


def _location(url: str, given: LocationOptions, settings: Settings) -> tuple[str, Settings]:
    from lazydelta.storage.url_credentials import split_credentials

    own = msgspec.structs.replace(
        settings,
        storage_options=given.options,
        credential_provider=given.credential_provider,
        locations={},
        allowed_roots="",
    )
    return split_credentials(url, own)


def _address(root: str, table: TableAddress) -> TableAddress:
    address = given_address(root)
    if address.kind == "azure" and address.account is None:
        address = msgspec.structs.replace(address, account=table.account)
    if any(part in (".", "..") for part in address.path.split("/")):
        raise InvalidRequestError(
            "an allowed root leads elsewhere by '.' or '..'",
            address.root,
            "write where it is, without dots",
        )
    return address
