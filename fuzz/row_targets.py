"""Targets behind the log: data files, deletion vectors, page tokens."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

from fuzz import seeds as good
from fuzz.memory_storage import MemoryStorage
from fuzz.mutate import NUMBERS, TEXTS, bytes_changed, parquet_changed
from fuzz.reading import WrongAnswerError, expect_equal, names_like, opened
from fuzz.retype import retyped
from fuzz.target import Target
from lazydelta.protocol.actions import DeletionVector
from lazydelta.rows import DataFile, DeletionVectors
from lazydelta.rows.page_token import _seal, _text
from tests.support.deletion_vector_writer import ALPHABET, always, bitmap_array, encode_z85

_FILTERS = (None, "id > 120", "name = 'n3' and value < 0.5", "nested.a = 7", "day is null or id in (1, 205)")
_COLUMNS = (None, ["id"], ["nested", "name"], [])
_ROWS = ([1, 2, 50], range(0, 70_000, 3), [5, 2**33, 2**33 + 1], range(5000, 30_000))


class _DataFiles:
    """A Parquet file of rows."""

    name, share = "data-file", 2
    modules = ("rows/parquet_file.py", "rows/loader.py", "rows/row_group_pruning.py", "rows/file_shape.py")
    change = staticmethod(parquet_changed)

    def prepare(self, seeds: Path) -> None:
        """A table of four files, each in another form."""
        self.files = good.load(seeds, "rows")
        self.names = names_like(self.files, ".parquet")

    def make(self, dice: Random) -> bytes:
        """The number of the file, then its bytes; its size in the log is put right."""
        at = dice.randrange(len(self.names))
        return bytes([at]) + self.change(self.files[self.names[at]], dice)

    def run(self, body: bytes) -> None:
        """Some columns, perhaps filtered, or nothing but how many rows."""
        name = self.names[body[0] % len(self.names)]
        files = self.files | {name: body[1:]}
        (commit,) = names_like(files, "_delta_log/", ".json")
        old = f'"{name}", "partitionValues": {{}}, "size": {len(self.files[name])},'.encode()
        assert old in files[commit]
        files[commit] = files[commit].replace(
            old, old.replace(b": %d," % len(self.files[name]), b": %d," % (len(body) - 1))
        )
        number = len(body)
        scan = opened(files).scan(_FILTERS[number % len(_FILTERS)])
        columns = _COLUMNS[number // 8 % len(_COLUMNS)]
        for batch in scan.batches(columns, prefetch_size=1):
            batch.validate(full=True)


class _DataTypes(_DataFiles):
    """The same with columns that are something else."""

    name, share, change = "data-types", 1, staticmethod(retyped)


class _Vectors:
    """A deletion vector, in the log or in a file, with its checksum put right in most of them."""

    name, share = "deletion-vector", 180
    modules = ("protocol/roaring.py", "protocol/z85.py", "rows/deletion_vectors.py")

    def prepare(self, seeds: Path) -> None:
        """Bitmaps of every kind of container."""
        del seeds
        forms: tuple[dict[str, Any], ...] = ({}, {"as_runs": always}, {"is_native": True})
        self.bitmaps = [
            (bitmap_array(rows, **form), len(set(rows)))
            for rows in _ROWS
            for form in forms
            if max(rows) < 2**32 or not form.get("is_native")
        ]

    def make(self, dice: Random) -> bytes:
        """A descriptor, and what it leads to, as msgpack."""
        data, count = dice.choice(self.bitmaps)
        if dice.random() < 0.9:
            data = bytes_changed(data, dice)
        size = len(data) if dice.random() < 0.9 else dice.choice(NUMBERS[:-6])
        count = count if dice.random() < 0.9 else dice.choice(NUMBERS[:-6])
        if dice.random() < 0.5:
            text = encode_z85(data[:400], like_rust=dice.random() < 0.3)
            if dice.random() < 0.3:
                at = dice.randint(0, len(text))
                text = text[:at] + dice.choice((*ALPHABET[-6:], "é", "\0", "#", "")) + text[at + 1 :]
            size = min(len(data), 400) if size == len(data) else size
            return msgspec.msgpack.encode(("i", text, size, count, None, b""))
        body = b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        if dice.random() < 0.3:
            body = bytes_changed(body, dice)
        offset = dice.choice((None, 1, 1, 1, 0, 5, -1, 2**31 - 1))
        place = dice.choice(("v.bin", "v.bin", "v.bin", *TEXTS))
        place = place.encode("utf-8", "replace").decode()
        return msgspec.msgpack.encode((dice.choice("ppppu"), place, size, count, offset, body))

    def run(self, body: bytes) -> None:
        """As many rows as it says, ascending, the same by halves."""
        kind, text, size, count, offset, stored = msgspec.msgpack.decode(body)
        vector = DeletionVector(kind, text, size, count, offset)
        file = DataFile(path="f.parquet", size=1, partition_values={}, deletion_vector=vector)
        vectors = DeletionVectors(MemoryStorage({"v.bin": stored}))
        vectors.check_rows(file, 2**62)
        if count > 1_000_000:
            vectors.positions(file, 0, 100_000)
            return
        rows = vectors.positions(file)
        expect_equal(len(rows), count)
        if (rows[1:] <= rows[:-1]).any():
            raise WrongAnswerError("the rows do not ascend")
        middle = int(rows[len(rows) // 2]) if len(rows) else 0
        halves = np.concatenate([vectors.positions(file, 0, middle), vectors.positions(file, middle)])
        expect_equal(halves.tolist(), rows.tolist())


class _PageTokens:
    """Tokens that were cut, mistyped, or made up and sealed."""

    name, share = "page-token", 25
    modules = ("rows/page_token.py", "rows/page_series.py", "rows/pages.py", "sidecar/order/anchor.py")

    def prepare(self, seeds: Path) -> None:
        """Tokens of several series."""
        self.rows = opened(dict(good.load(seeds, "rows")))
        self.parts = opened(dict(good.load(seeds, "sidecar")), has_sidecar=True)
        page = self.rows.scan().page(7).next_token
        files = self.parts.scan().file_page(3).next_token
        assert page is not None and files is not None
        self.tokens = [(b"r", page), (b"f", files)]

    def make(self, dice: Random) -> bytes:
        """The kind of page, then the token."""
        kind, token = dice.choice(self.tokens)
        if dice.random() < 0.3:
            return kind + bytes_changed(token.encode(), dice)
        raw = msgspec.msgpack.decode(_unsealed(token)[2:])
        for _ in range(dice.randint(1, 2)):
            place: list[Any] = (
                raw[-1] if dice.random() < 0.7 and raw[-1] and isinstance(raw[-1], list) else raw
            )
            at = dice.randrange(len(place))
            odd = dice.choice((*NUMBERS[:-5], *TEXTS[:-8], None, True, 0.5, b"x", [], ["date"], -1))
            place[at] = odd.encode("utf-8", "replace").decode() if isinstance(odd, str) else odd
        sealed = bytes([1, 0]) + msgspec.msgpack.encode(raw)
        if dice.random() < 0.2:
            sealed = bytes([1, 0]) + bytes_changed(sealed[2:], dice)
        return kind + _text(sealed + _seal(sealed, "")).encode()

    def run(self, body: bytes) -> None:
        """A page that is no longer than asked for."""
        text = body[1:].decode("utf-8", "surrogateescape")
        if body[:1] == b"r":
            page = self.rows.scan().page(3, after=text)
            found = page.rows.num_rows
        else:
            found = len(list(self.parts.scan().file_page(3, after=text).files))
        if found > 3:
            raise WrongAnswerError(f"a page of {found}")


def _unsealed(token: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:-16]


TARGETS: tuple[Callable[[], Target], ...] = (
    _DataFiles,
    _DataTypes,
    _Vectors,
    _PageTokens,
)
