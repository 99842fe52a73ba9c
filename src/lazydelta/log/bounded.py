"""A small object of the log, whole: as much of it as such an object may have, and no more.

Why: the hint and the manifest are fetched by name, before anything tells how large they are.
"""

from __future__ import annotations

from lazydelta import limits
from lazydelta.errors import CorruptLogError
from lazydelta.storage import ObjectReplacedError, Storage


def get_small(storage: Storage, name: str, bytes_max: int) -> bytes:
    """The object, or a `CorruptLogError` where it is larger; the rest of it is then not read."""
    for _ in range(limits.LISTINGS_MAX - 1):
        try:
            return _whole(storage, name, bytes_max)
        except ObjectReplacedError as replaced:  # it is read whole, and the hint changes: any version will do
            storage.forget_version(replaced.where)
    return _whole(storage, name, bytes_max)


def _whole(storage: Storage, name: str, bytes_max: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    for piece in storage.get_stream(name, limits.COMMIT_CHUNK_BYTES):
        size += len(piece)
        if size > bytes_max:
            raise CorruptLogError(
                f"the file has more than {bytes_max:,} bytes", f"{storage.root}/{name}", "delete it"
            )
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
