"""What the rooms above ask of a store: a few reads, one conditional write, one delete, honest counters.

Contract: `name` is a decoded path relative to the table's root (`_delta_log/00000000000000000000.json`).
Every failure is a `StorageError` (or `AccessDeniedError`); an absent object is `ObjectNotFoundError`. A
body shorter than asked for is retried and never handed out. Ranges and streams of one object, read through
one scope at different moments, are of one version of it, or it is an `ObjectReplacedError`. Methods are safe
to call from several threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from lazydelta.errors import StorageError
from lazydelta.storage.counters import IoCounters
from lazydelta.storage.deadline import Deadline


class ObjectInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One listed object."""

    name: str  # relative to the table's root, decoded
    size_bytes: int
    modified_ms: int  # since 1970, UTC
    # Of a file on a disk: which inode, last changed when. Copies keep sizes and times, never this.
    etag: str | None = None


class ObjectNotFoundError(StorageError):
    """The object is not there. The log room turns it into what it means for the table."""


class ObjectTooShortError(StorageError):
    """The object ends before the bytes asked for: it was cut or replaced after it was listed."""


class ObjectReplacedError(StorageError):
    """The object is another one than at the first read: its bytes must not be mixed."""


class Storage(Protocol):
    """One table's root in one store."""

    @property
    def root(self) -> str:
        """The table's canonical URI, without a trailing slash and without credentials."""
        ...

    @property
    def counters(self) -> IoCounters:
        """What has been asked of the store through this object so far."""
        ...

    def list_from(self, folder: str, after: str | None = None) -> Iterator[ObjectInfo]:
        """Objects directly below `folder` (`_delta_log`) whose base name sorts after `after`, in any order.

        Lazy, a page of the store at a time, sub-folders not opened. A folder that does not exist is empty.
        """
        ...

    def get(self, name: str) -> bytes:
        """The whole object."""
        ...

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`: exactly that many, or an error."""
        ...

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Many (start, length) at once, in one round trip, near ones coalesced."""
        ...

    def get_stream(self, name: str, chunk_bytes: int) -> Iterator[bytes]:
        """The whole object in chunks of about `chunk_bytes`; resumes where a connection broke off."""
        ...

    def put_if_absent(self, name: str, body: bytes) -> bool:
        """Write the object unless one is there already; say whether it was written."""
        ...

    def delete(self, name: str) -> bool:
        """Delete the object; say whether there was one."""
        ...

    def scoped(self, deadline: Deadline | None = None) -> Storage:
        """The same store with counters of its own, that add to this one's too: one scan, one account.

        After `deadline` every request of the scoped storage is a `StorageError` that says so.
        """
        ...

    def forget_version(self, where: str) -> None:
        """Before an object is read again from its beginning: it may be another one than the one read so far.

        `where`: its address, as an `ObjectReplacedError` has it.
        """
        ...


def past_end(where: str) -> ObjectTooShortError:
    """The error for a range that reaches past the end of its object."""
    return ObjectTooShortError(
        "the object is shorter than the bytes asked for",
        where,
        "the file was cut or replaced after it was listed; read again, or restore the file",
    )


def not_a_store(odd: str, where: str) -> StorageError:
    """The error for answers that no store gives; `odd` says what came."""
    return StorageError(
        f"what answers is not a store ({odd})",
        where,
        "check the endpoint and the account in the URL, and what is in between: a proxy (proxy_url), or "
        "the sign-in page of a network",
    )
