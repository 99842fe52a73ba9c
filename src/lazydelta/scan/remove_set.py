"""The keys that newer commits have already decided, exact at any size.

Each key is a 128-bit digest: 16 bytes in sorted runs, and past the memory limit in a temporary SQLite file.
A filter of fixed size over cheap hashes of whole Arrow columns says of nearly every row that it cannot be
in the set; it spares exact look-ups and never answers one (a false positive would lose rows). The first few
thousand keys have no digests at all until one of the same hash is looked up: most tails end before that.
Contract: `holds` is exact; memory stays within about `memory_limit` however many keys come.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.log.file_rows import Mask
from lazydelta.memory_share import MemoryShare
from lazydelta.scan.keys import DIGEST, DIGEST_BYTES, Digests, FileKeys, Hashes, KeyDigests

_RUN_KEYS_MIN = 4096
_RECENT_PIECES_MAX = 64
_RECENT_KEY_BYTES = 256  # of a key without a digest, about: its path
_SUSPECTS_MAX = 256  # with more, all keys get their digests once and for all
_FREE_BYTES = 1 << 19  # of digests, that no share need have room for
_SMALL_FILTER_BYTES = 1 << 17
_SMALL_FILTER_KEYS = 1 << 16
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class RemoveSet:
    """A growing set of keys. Close it to delete what it moved to disk."""

    def __init__(self, memory_limit: int = limits.REMOVE_SET_BYTES, share: MemoryShare | None = None) -> None:
        """Past the limit, or where the share of the process's memory has no room, it moves to disk."""
        self._share = share
        self._shared_bytes = 0  # of the share
        self._size = 0  # of those put in here
        self._memory_limit = memory_limit
        # One that stays in the processor's cache while the set is small; then a larger one in its place, for
        # which the hashes are kept until then.
        self._filter = _KeyFilter(_SMALL_FILTER_BYTES)
        self._hashes: list[Hashes] | None = []
        self._recent: list[FileKeys | KeyDigests] = []
        self._recent_size = 0
        self._recent_max = min(_RUN_KEYS_MIN, memory_limit // _RECENT_KEY_BYTES)
        self._recent_hashes: Hashes | None = None  # of all of them, once asked for
        self._runs: list[Digests] = []  # sorted, each at least twice as long as the next
        self._disk: _DiskSet | None = None
        self._below: tuple[RemoveSet, ...] = ()

    @property
    def size(self) -> int:
        """Keys put in; one put in twice may count twice."""
        return self._size + sum(below.size for below in self._below)

    @property
    def is_on_disk(self) -> bool:
        """Whether the set outgrew its memory limit."""
        return self._disk is not None

    def holds(self, keys: FileKeys) -> Mask:
        """Which of these keys are in the set."""
        answer = np.zeros(len(keys), np.bool_)
        if len(keys) == 0:
            return answer
        for below in self._below:
            answer |= below.holds(keys)
        if self._size == 0:
            return answer
        candidates = np.flatnonzero(self._filter.may_hold(keys.hashes))
        if len(candidates):
            answer[candidates] |= self._holds_some(keys, candidates)
        return answer

    def remember(self, keys: FileKeys | KeyDigests) -> None:
        """Put these keys into the set."""
        if len(keys):
            self._mark([keys.hashes])
            self._insert(keys)

    def absorb(self, other: RemoveSet) -> None:
        """Put every key of another set, made with the same limit, into this one."""
        assert not other._below, "a set that rests on others is never absorbed"
        if other._size == 0:
            return
        if other._hashes is None:
            self._enlarge()
            self._filter.absorb(other._filter)
        else:
            self._mark(other._hashes)
        for keys in other._recent:
            self._insert(keys)
        for digests in other._settled_digests():
            self._size += len(digests)
            self._add_run(np.unique(digests))

    def _mark(self, hashes: list[Hashes]) -> None:
        """Keys of these hashes are put in."""
        for each in hashes:
            self._filter.mark(each)
        if self._hashes is not None:
            self._hashes.extend(hashes)
            if sum(len(each) for each in self._hashes) > _SMALL_FILTER_KEYS:
                self._enlarge()

    def _enlarge(self) -> None:
        """Take the larger filter, if it is not in place yet."""
        if self._hashes is not None:
            hashes, self._hashes = self._hashes, None
            self._filter = _KeyFilter(self._memory_limit // 16)
            for each in hashes:
                self._filter.mark(each)

    def rest_on(self, other: RemoveSet) -> None:
        """Hold every key of a settled set, too, without a copy; it is left as it is, and may be shared."""
        self._below = (*self._below, other)

    def settle(self) -> None:
        """After this and without another `remember`, threads may ask side by side."""
        self._settle()

    def close(self) -> None:
        """Forget the keys and delete the file."""
        self._size = self._recent_size = 0
        self._below = ()
        self._filter, self._hashes = _KeyFilter(_SMALL_FILTER_BYTES), []
        self._recent, self._runs, self._recent_hashes = [], [], None
        self._has_room(0)
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def _insert(self, keys: FileKeys | KeyDigests) -> None:
        self._size += len(keys)
        self._recent.append(keys)
        self._recent_hashes = None
        self._recent_size += len(keys)
        if self._recent_size >= self._recent_max or len(self._recent) >= _RECENT_PIECES_MAX:
            self._settle()

    def _settle(self) -> None:
        """Sort what is recent into a run, merge runs of like size, move to disk past the limit."""
        if not self._recent:
            return
        digests = np.concatenate([keys.digests for keys in self._recent])
        self._recent, self._recent_size, self._recent_hashes = [], 0, None
        self._add_run(np.unique(digests))

    def _add_run(self, run: Digests) -> None:
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(np.unique(np.concatenate([before, last])))
        in_memory = sum(len(run) for run in self._runs) * DIGEST_BYTES
        if self._disk is not None or in_memory > self._memory_limit or not self._has_room(in_memory):
            self._disk = self._disk or _DiskSet()
            for each in self._runs:
                self._disk.insert(each)
            self._runs = []
            self._has_room(0)

    def _has_room(self, byte_count: int) -> bool:
        """Whether so much may be in memory; what is little always may."""
        wanted = byte_count if byte_count > _FREE_BYTES else 0
        if self._share is None or wanted == self._shared_bytes:
            return True
        if wanted < self._shared_bytes:
            self._share.give(self._shared_bytes - wanted)
        elif not self._share.try_take(wanted - self._shared_bytes):
            return False
        self._shared_bytes = wanted
        return True

    def _holds_some(self, keys: FileKeys, rows: npt.NDArray[np.intp]) -> Mask:
        """Which of these rows' keys are in the set; digests are made of few where few will do."""
        if self._runs or self._disk is not None:
            return self._contains(keys.digests_at(rows))
        if self._recent_hashes is None:
            self._recent_hashes = np.concatenate([recent.hashes for recent in self._recent])
        hashes = keys.hashes[rows]
        found = np.isin(hashes, self._recent_hashes)
        suspects = np.flatnonzero(found)
        if len(suspects) > _SUSPECTS_MAX:
            return self._contains(keys.digests_at(rows))
        if len(suspects):
            alike = [
                recent.digests_at(np.flatnonzero(np.isin(recent.hashes, hashes))) for recent in self._recent
            ]
            found[suspects] = np.isin(keys.digests_at(rows[suspects]), np.concatenate(alike))
        return found

    def _contains(self, digests: Digests) -> Mask:
        self._settle()
        found = np.zeros(len(digests), np.bool_)
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, digests), len(run) - 1)
            found |= run[at] == digests
        if self._disk is not None:
            for index in np.flatnonzero(~found):
                found[index] = self._disk.has(digests[index])
        return found

    def _settled_digests(self) -> Iterator[Digests]:
        yield from self._runs
        if self._disk is not None:
            yield from self._disk.contents()


class _KeyFilter:
    """A Bloom filter with two bits a key: no is certain, yes is not."""

    def __init__(self, size_bytes: int) -> None:
        bits = max(size_bytes * 8, 1 << 16).bit_length() - 1
        self._size_bytes = 1 << (bits - 3)
        self._shift = np.uint64(64 - bits)
        self._bits: npt.NDArray[np.uint8] | None = None  # until something is marked

    def mark(self, hashes: Hashes) -> None:
        bits = self._made()
        for at in self._positions(hashes):
            bit = np.uint8(1) << (at & np.uint64(7)).astype(np.uint8)
            np.bitwise_or.at(bits, at >> np.uint64(3), bit)

    def may_hold(self, hashes: Hashes) -> Mask:
        if self._bits is None:
            return np.zeros(len(hashes), np.bool_)
        found = np.ones(len(hashes), np.bool_)
        for at in self._positions(hashes):
            found &= (self._bits[at >> np.uint64(3)] >> (at & np.uint64(7)).astype(np.uint8)) & 1 != 0
        return found

    def absorb(self, other: _KeyFilter) -> None:
        if other._bits is not None:
            self._made()[:] |= other._bits

    def _made(self) -> npt.NDArray[np.uint8]:
        if self._bits is None:
            self._bits = np.zeros(self._size_bytes, np.uint8)  # pages that are never touched cost nothing
        return self._bits

    def _positions(self, hashes: Hashes) -> tuple[Hashes, Hashes]:
        return hashes >> self._shift, (hashes * _GOLDEN) >> self._shift


class _DiskSet:
    """Digests in a temporary SQLite file that has no name any more, so that no death leaves it behind."""

    def __init__(self) -> None:
        with self._trouble_named(), tempfile.TemporaryDirectory(prefix="lazydelta-") as folder:
            path = Path(folder) / "removed.sqlite"
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._database.execute("pragma journal_mode = off")
            self._database.execute("pragma synchronous = off")
            self._database.execute("pragma temp_store = memory")
            self._database.execute("create table removed (digest blob primary key) without rowid")

    def insert(self, digests: Digests) -> None:
        with self._trouble_named():
            self._database.execute("begin")
            rows = ((_bytes(digest),) for digest in digests)
            self._database.executemany("insert or ignore into removed values (?)", rows)
            self._database.execute("commit")

    def has(self, digest: np.bytes_) -> bool:
        query = "select 1 from removed where digest = ?"
        return self._database.execute(query, (_bytes(digest),)).fetchone() is not None

    def contents(self) -> Iterator[Digests]:
        with closing(self._database.execute("select digest from removed")) as cursor:
            while rows := cursor.fetchmany(_RUN_KEYS_MIN):
                yield np.frombuffer(b"".join(row[0] for row in rows), DIGEST)

    def close(self) -> None:
        self._database.close()

    @staticmethod
    @contextmanager
    def _trouble_named() -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as trouble:
            raise StorageError(
                f"the keys of removed files could not be moved to disk: {trouble}",
                tempfile.gettempdir(),
                "free some space there, name another folder by TMPDIR, or raise remove_set_memory_limit",
            ) from trouble


def _bytes(digest: np.bytes_) -> bytes:
    """All sixteen bytes: numpy drops zeros at the end of a scalar."""
    return bytes(digest).ljust(DIGEST_BYTES, b"\0")
