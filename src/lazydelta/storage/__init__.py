"""The only room that touches bytes: local folders, Azure and S3 through obstore; retries; counters."""

from lazydelta.storage.counters import IoCounters, IoSnapshot
from lazydelta.storage.interface import ObjectInfo, ObjectNotFoundError, Storage

__all__ = ["IoCounters", "IoSnapshot", "ObjectInfo", "ObjectNotFoundError", "Storage"]
