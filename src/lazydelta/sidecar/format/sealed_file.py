"""A Parquet file of the sidecar that vouches for its own footer: checked before Arrow sees it."""

from __future__ import annotations

from lazydelta import limits
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.footer_seal import TRAILER_BYTES, is_intact, sealed_length
from lazydelta.sidecar.format.tier_file import TierFile
from lazydelta.storage import RangedFile


class SealedFile(TierFile):
    """A lazily opened file with a seal in front of its footer (`footer_seal`)."""

    def _check_footer(self, file: RangedFile) -> None:
        size = self._size_bytes
        file.seek(max(0, size - TRAILER_BYTES))
        length = sealed_length(file.read_buffer(TRAILER_BYTES), size)
        if length is not None and length > limits.PARQUET_FOOTER_GUESS_BYTES:
            file.preload([(size - length, length)])
        file.seek(size - (length or 0))
        if length is None or not is_intact(file.read_buffer(length)):
            raise damaged("a file of the sidecar cannot be read: its footer is not as written", self.where)
