"""The only room that touches bytes: local folders, Azure and S3 through obstore; retries; counters."""

from lazydelta.storage.access import access_digest
from lazydelta.storage.ahead_room import AheadRoom
from lazydelta.storage.background import workers
from lazydelta.storage.counters import IoCounters, IoSnapshot
from lazydelta.storage.deadline import Deadline, StoppedError
from lazydelta.storage.interface import (
    ObjectInfo,
    ObjectNotFoundError,
    ObjectReplacedError,
    ObjectTooShortError,
    Storage,
    past_end,
)
from lazydelta.storage.local import is_quick
from lazydelta.storage.opening import open_storage, until
from lazydelta.storage.ranged_file import RangedFile
from lazydelta.storage.url_credentials import split_credentials

__all__ = [
    "AheadRoom",
    "Deadline",
    "IoCounters",
    "IoSnapshot",
    "ObjectInfo",
    "ObjectNotFoundError",
    "ObjectReplacedError",
    "ObjectTooShortError",
    "RangedFile",
    "StoppedError",
    "Storage",
    "access_digest",
    "is_quick",
    "open_storage",
    "past_end",
    "split_credentials",
    "until",
    "workers",
]
