"""The only package that touches bytes: local folders, Azure and S3 through obstore; retries; counters."""

from lazydelta.lazy_exports import lazy_exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lazydelta.storage.access import access_digest
    from lazydelta.storage.address import TableAddress, parse_address
    from lazydelta.storage.ahead_room import AheadRoom
    from lazydelta.storage.background import workers
    from lazydelta.storage.counters import IoCounters, IoSnapshot
    from lazydelta.storage.deadline import NEVER, Deadline, StoppedError
    from lazydelta.storage.elsewhere import storage_of
    from lazydelta.storage.interface import (
        ObjectInfo,
        ObjectNotFoundError,
        ObjectReplacedError,
        ObjectTooShortError,
        Storage,
        past_end,
    )
    from lazydelta.storage.local import LocalStorage, is_quick
    from lazydelta.storage.opening import open_storage, until
    from lazydelta.storage.ranged_file import RangedFile
    from lazydelta.storage.url_credentials import split_credentials

__all__ = [
    "NEVER",
    "AheadRoom",
    "Deadline",
    "IoCounters",
    "IoSnapshot",
    "LocalStorage",
    "ObjectInfo",
    "ObjectNotFoundError",
    "ObjectReplacedError",
    "ObjectTooShortError",
    "RangedFile",
    "StoppedError",
    "Storage",
    "TableAddress",
    "access_digest",
    "is_quick",
    "open_storage",
    "parse_address",
    "past_end",
    "split_credentials",
    "storage_of",
    "until",
    "workers",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_exports(
        __name__,
        {
            "access": "access_digest",
            "address": "TableAddress parse_address",
            "ahead_room": "AheadRoom",
            "background": "workers",
            "counters": "IoCounters IoSnapshot",
            "deadline": "NEVER Deadline StoppedError",
            "elsewhere": "storage_of",
            "interface": "ObjectInfo ObjectNotFoundError ObjectReplacedError ObjectTooShortError "
            "Storage past_end",
            "local": "LocalStorage is_quick",
            "opening": "open_storage until",
            "ranged_file": "RangedFile",
            "url_credentials": "split_credentials",
        },
    )
