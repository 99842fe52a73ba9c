"""What a version checksum (`.crc`) tells: a shortcut, so that one that makes no sense is as good as none."""

from __future__ import annotations

import msgspec

from lazydelta import limits
from lazydelta.log.segment import LogFile
from lazydelta.protocol.actions import VersionChecksum
from lazydelta.storage import ObjectNotFoundError, Storage

_CHECKSUM = msgspec.json.Decoder(VersionChecksum)  # made once: its types take a while to look through


def read_checksum(storage: Storage, crc: LogFile) -> VersionChecksum | None:
    """None where it is gone, too large, or makes no sense; other troubles of the store stay errors."""
    if crc.info.size_bytes > limits.CRC_BYTES_MAX:
        return None
    try:
        return _CHECKSUM.decode(storage.get(crc.name))
    except (ObjectNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
