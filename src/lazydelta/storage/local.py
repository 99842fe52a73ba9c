"""A table in a local folder, by plain system calls.

Why not obstore's local store: its listing and its ranges are slower than the calls below, and a local table
is what tests and notebooks read most.
Contract: `Storage`, with the same counters: a listing, a read, a range each count as one request, so that a
test on a folder says something about a store. No retries: what a disk refuses once it refuses again. How
long files take is watched: a folder may be a mount of something far away. Links and what is no file are
judged by `local_files.py`.
"""

from __future__ import annotations

import os
import stat
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lazydelta import limits
from lazydelta.storage.counters import IoCounters, IoTicket
from lazydelta.storage.deadline import NEVER, Deadline
from lazydelta.storage.interface import ObjectInfo, Storage, past_end
from lazydelta.storage.local_files import ABSENT, LocalRoots, descriptor_path, failure, roots_of
from lazydelta.storage.local_reading import LocalReading, read_all, read_at
from lazydelta.storage.names import checked_name, uri_of
from lazydelta.storage.object_versions import ObjectVersions
from lazydelta.storage.places import Places
from lazydelta.storage.ranges import coalesce, cut

_READS_WATCHED = 4


class LocalStorage:
    """`Storage` over a folder."""

    places: Places | None = None  # what may be read outside the folder

    def __init__(
        self,
        folder: str,
        root: str,
        counters: IoCounters | None = None,
        deadline: Deadline = NEVER,
        read_seconds: deque[float] | None = None,
        *,
        versions: ObjectVersions | None = None,
        roots: LocalRoots | None = None,
    ) -> None:
        """`roots`: where files may lie; None: in the folder, and where `places` says."""
        self._folder = folder
        self._roots_known = roots
        self._root = root
        self._counters = counters or IoCounters()
        self._deadline = deadline
        # Of the latest reads; scoped copies share it.
        self._read_seconds = deque(maxlen=_READS_WATCHED) if read_seconds is None else read_seconds
        self._versions = versions or ObjectVersions()

    def __repr__(self) -> str:
        return f"LocalStorage({self._root!r})"

    @property
    def root(self) -> str:
        """The table's canonical URI."""
        return self._root

    @property
    def counters(self) -> IoCounters:
        """What has been asked of the folder through this object so far."""
        return self._counters

    def scoped(self, deadline: Deadline | None = None) -> LocalStorage:
        """The same folder with counters of its own; the earlier deadline holds."""
        # Without a deadline it is not a scan's: what it reads holds for the scans after it.
        versions = self._versions if deadline is None else ObjectVersions(self._versions)
        earlier = self._deadline if deadline is None else self._deadline.earlier(deadline)
        counters = IoCounters(self._counters)
        same = LocalStorage(
            self._folder,
            self._root,
            counters,
            earlier,
            self._read_seconds,
            versions=versions,
            roots=self._roots,
        )
        same.places = self.places
        return same

    def forget_version(self, where: str) -> None:
        """The file at this address may be another one from now on."""
        self._versions.forget(where)

    def at(self, folder: str, root: str) -> LocalStorage:
        """Another folder, with the same counters and deadline."""
        return LocalStorage(
            folder,
            root,
            self._counters,
            self._deadline,
            self._read_seconds,
            versions=self._versions,
            roots=self._roots,
        )

    @property
    def is_quick(self) -> bool:
        """Whether a small file takes less time than to hand its reading over to a thread."""
        return min(tuple(self._read_seconds), default=limits.QUICK_READ_SECONDS) < limits.QUICK_READ_SECONDS

    def list_from(self, folder: str, after: str | None = None) -> Iterator[ObjectInfo]:
        """Files directly below `folder` whose name sorts after `after`."""
        if folder:
            checked_name(folder, self._root)
        where = uri_of(self._root, folder)
        shown = f"{folder}/" if folder else ""
        self._deadline.check(where)
        ticket = self._counters.begin("list")
        try:
            self._roots.check_folder(f"{self._folder}/{folder}", where)
            entries = os.scandir(f"{self._folder}/{folder}")
        except ABSENT:
            return
        except OSError as error:
            raise failure(error, where) from error
        finally:
            self._counters.finish(ticket)
        with entries:
            for entry in entries:
                info = _listed(entry, after, shown)
                if info is not None:
                    yield info

    def get(self, name: str) -> bytes:
        """The whole file."""
        ticket, body = self._begin("get", name), b""
        began = time.perf_counter()
        try:
            descriptor, status = self._opened(name)
            try:
                body = read_all(descriptor, status.st_size)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise failure(error, uri_of(self._root, name)) from error
        finally:
            self._read_seconds.append(time.perf_counter() - began)
            self._counters.finish(ticket, bytes_read=len(body))
        return body

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`."""
        return self.get_ranges(name, [(start, length)])[0]

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Many (start, length) at once; counted as requests side by side."""
        spans = coalesce(ranges)
        tickets = [self._begin("get_range", name) for _ in spans]
        bodies: list[bytes] = []
        try:
            if spans:
                descriptor, _ = self._opened(name)
                try:
                    bodies = [read_at(descriptor, span.start, span.end - span.start) for span in spans]
                    self._check_version(name, descriptor)
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise failure(error, uri_of(self._root, name)) from error
        finally:
            for at, ticket in enumerate(tickets):
                self._counters.finish(ticket, bytes_read=len(bodies[at]) if bodies else 0)
        for span, body in zip(spans, bodies, strict=True):
            if len(body) != span.end - span.start:
                raise past_end(uri_of(self._root, name))
        return cut(ranges, spans, bodies)

    def get_stream(self, name: str, chunk_bytes: int) -> Iterator[bytes]:
        """The whole file in chunks."""
        where = uri_of(self._root, name)
        ticket = self._begin("get", name)
        began = time.perf_counter()
        try:
            descriptor, _ = self._opened(name)
        finally:
            self._counters.finish(ticket)
        try:
            self._check_version(name, descriptor)
            chunk = self._next_chunk(descriptor, chunk_bytes, where)
            self._read_seconds.append(time.perf_counter() - began)
            while chunk:
                yield chunk
                chunk = self._next_chunk(descriptor, chunk_bytes, where)
            self._check_version(name, descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def reading(self, name: str, ranges: Sequence[tuple[int, int]]) -> Iterator[LocalReading]:
        """The file for a library that reads these (start, length) by itself.

        Counted as if they were asked for here, by the share of them that it says it read. That the file
        stayed the same is checked before and after.
        """
        where = uri_of(self._root, name)
        spans = coalesce(ranges)
        tickets = [self._begin("get_range", name) for _ in spans]
        share = 0.0
        try:
            descriptor, status = self._opened(name)
            try:
                self._check_version(name, descriptor)
                if status.st_size < max((span.end for span in spans), default=0):
                    raise past_end(where)
                path = descriptor_path(descriptor, self._path(name))
                reading = LocalReading(path, where, descriptor, lambda: self._deadline.check(where))
                try:
                    yield reading
                finally:
                    share = reading.share
                self._check_version(name, descriptor)
            finally:
                os.close(descriptor)
        finally:
            for span, ticket in zip(spans, tickets, strict=True):
                self._counters.finish(ticket, bytes_read=round(share * (span.end - span.start)))

    def put_if_absent(self, name: str, body: bytes) -> bool:
        """Write beside the target, then link it into place: readers see all of it or nothing."""
        target = Path(self._path(name))
        ticket, written = self._begin("put", name), False
        try:
            self._roots.check_folder(str(target.parent), uri_of(self._root, name))
            target.parent.mkdir(parents=True, exist_ok=True)
            written = _link_new(target, body)
        except OSError as error:
            raise failure(error, uri_of(self._root, name)) from error
        finally:
            self._counters.finish(ticket, bytes_written=len(body) if written else 0)
            self._versions.forget(uri_of(self._root, name))
        return written

    def delete(self, name: str) -> bool:
        """Unlink the file."""
        ticket = self._begin("delete", name)
        self._versions.forget(uri_of(self._root, name))
        target = Path(self._path(name))
        try:
            self._roots.check_folder(str(target.parent), uri_of(self._root, name))
            target.unlink()
        except ABSENT:
            return False
        except OSError as error:
            raise failure(error, uri_of(self._root, name)) from error
        finally:
            self._counters.finish(ticket)
        return True

    def are_plain(self, names: Sequence[str]) -> list[bool]:
        """Which of them are regular files that may be read: for a library that opens them by itself."""
        return self._roots.are_plain([self._path(name) for name in names])

    @property
    def _roots(self) -> LocalRoots:
        if self._roots_known is None:
            self._roots_known = LocalRoots([self._folder]) if self.places is None else roots_of(self.places)
        return self._roots_known

    def _opened(self, name: str) -> tuple[int, os.stat_result]:
        """A descriptor, to be closed, and its status."""
        return self._roots.open(self._path(name), uri_of(self._root, name))

    def _begin(self, kind: str, name: str) -> IoTicket:
        self._deadline.check(uri_of(self._root, name))
        return self._counters.begin(kind)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{checked_name(name, self._root)}"

    def _check_version(self, name: str, descriptor: int) -> None:
        """The file is the one that was read before, and was not written over. Links to it do not count."""
        status = os.fstat(descriptor)
        version = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
        self._versions.check(uri_of(self._root, name), version)

    def _next_chunk(self, descriptor: int, chunk_bytes: int, where: str) -> bytes:
        self._deadline.check(where)
        try:
            chunk = os.read(descriptor, chunk_bytes)
        except OSError as error:
            raise failure(error, where) from error
        self._counters.add_bytes_read(len(chunk))
        return chunk


def is_quick(storage: Storage) -> bool:
    """Whether small objects are best read by whoever needs them, one after the other."""
    return isinstance(storage, LocalStorage) and storage.is_quick


def _listed(entry: os.DirEntry[str], after: str | None, shown: str) -> ObjectInfo | None:
    if after is not None and entry.name <= after:
        return None
    try:
        status = entry.stat()
    except FileNotFoundError:
        if not entry.is_symlink():
            return None  # gone since the folder was read
        # A link to nothing stands for something that should be there: listed, so that reading it fails.
        return ObjectInfo(name=shown + entry.name, size_bytes=0, modified_ms=0)
    except OSError as error:
        raise failure(error, shown + entry.name) from error
    if stat.S_ISDIR(status.st_mode) and "." not in entry.name:
        return None
    # A pipe or a device stands for something that should be there, too; so does a folder named as files are.
    return ObjectInfo(
        name=shown + entry.name,
        size_bytes=status.st_size if stat.S_ISREG(status.st_mode) else 0,
        modified_ms=status.st_mtime_ns // 1_000_000,
        etag=f"{status.st_ino:x}-{status.st_ctime_ns:x}",  # a file that was written anew has another
    )


def _link_new(target: Path, body: bytes) -> bool:
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        try:
            target.hardlink_to(beside)
        except FileExistsError:
            return False
    finally:
        beside.unlink(missing_ok=True)
    return True
