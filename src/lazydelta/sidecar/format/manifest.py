"""The manifest: which parts make up the sidecar of one checkpoint, and what they hold.

Contract: written last and only if absent, so its presence is the commit. It names every part with its size,
range, removed rows and bounds, the row groups with their place (up to `limits.MANIFEST_ROW_GROUPS_MAX`), the
protocol and metadata in force, and what binds it to the log it was made from.
Fields that readers do not know are ignored; another `format` number is not for them. The text ends with the
CRC-32 of all that stands before it: a digit that a disk has changed would else be believed. A long text is
packed by gzip: the part list of a billion files is then a few requests' worth, not a megabyte.
Design: docs/adr/0011-removed-rows-by-number.md.
"""

from __future__ import annotations

import gzip
import re
import zlib
from typing import Annotated

import msgspec

from lazydelta import limits
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.protocol.schema import is_type_name

FORMAT = 1
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # of zlib: expect its header
_CHECKSUM = re.compile(rb',"crc32":(\d{1,10})\}$')
# What no file and no table can have does not decode: nothing behind it has to ask again.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class BoundFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of the log as it was when the sidecar was built."""

    name: str  # below _delta_log
    size_bytes: Count
    etag: str | None = None
    head_sha256: str | None = None  # of the first 64 KiB; of a commit, and of a checkpoint of few files


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """What ties a sidecar to one log: a restored log has the same versions but not the same bytes."""

    commit: BoundFile | None  # N.json; None where it had been cleaned up already
    checkpoint: tuple[BoundFile, ...]  # top-level files, in order
    num_files: Count
    total_bytes: Count


class ZoneBounds(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bounds of one column over all rows of a part, in the text forms of partition values.

    `min` is the least of the files' minima, `max` the greatest of their maxima; a bound that a row lacks
    (null or NaN) is no bound of the part, so those rows are counted.
    """

    path: tuple[str, ...]  # physical names
    type: str  # Delta's name of the type
    min: str | None = None
    max: str | None = None
    rows_without_min: Count = 0
    rows_without_max: Count = 0
    # A partition column, and every row without a bound is null there. Where one holds a text that does not
    # parse or that is empty (so perhaps null), this is False: such rows are unknown, as for statistics.
    is_partition: bool = False
    # Of a partition column of text: every text is a period of this format, 2026021014 of yyyyMMddHH. Only
    # then does a range of texts tell times: between two periods there is room for texts that are none.
    period_format: str | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One immutable Parquet file of rows sorted by (order column, path), or the two halves of a wide one."""

    file: str  # below the sidecar's folder; of a split part the index
    build: str
    size_bytes: Count
    footer_bytes: Count  # from where the footer begins to the end of the file
    footer_crc32: int | None = None  # of those bytes; pages have checksums of their own, a footer has none
    schema_hash: str
    num_rows: Count
    num_row_groups: Count
    # Of the order column, as text. None where every row is null; with fewer nulls: it has no short text.
    # Where that column is `min.<col>`, the maximum is that of `max.<col>`; rows without either count as null.
    order_min: str | None = None
    order_max: str | None = None
    order_nulls: Count = 0
    removed: tuple[int, ...] = ()  # rows no longer live: first, count, first, count, …; ascending
    bounds: tuple[ZoneBounds, ...] = ()
    stats_file: str | None = None
    stats_size_bytes: Count = 0
    stats_footer_bytes: Count = 0
    stats_footer_crc32: int | None = None
    total_bytes: Count = 0  # data bytes of the live rows' files

    @property
    def removed_count(self) -> int:
        """Rows of the part that are no longer live."""
        return sum(self.removed[1::2])

    @property
    def num_live(self) -> int:
        """Rows of the part that are live files."""
        return self.num_rows - self.removed_count


class RowGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where one row group lies (of a split part: in the index), and its range, told as for a part.

    `event_hour_*` are of the order column, whatever its name.
    """

    index: Count  # counted over all parts, in the order of `parts`
    part: Count = 0  # position in `parts`
    byte_offset: Count
    byte_length: Count
    num_rows: Count
    event_hour_min: str | None = None
    event_hour_max: str | None = None
    event_hour_nulls: Count = 0


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The sidecar of checkpoint `version`."""

    format: int
    version: Count
    sidecar_file: str | None  # the first part; None where the table has no files
    sidecar_size_bytes: Count  # of all parts
    num_row_groups: Count
    num_files: Count
    schema_hash: str  # of the layout that this build writes
    row_groups: tuple[RowGroup, ...]  # empty past the limit
    table_id: str
    build: str
    order_column: str | None  # the column of the parts that rows are sorted by; None: by path alone
    order_type: str | None
    parts: tuple[Part, ...]
    protocol: Protocol
    metadata: Metadata
    binding: Binding


class _FormatOnly(msgspec.Struct):
    format: int


_MANIFEST = msgspec.json.Decoder(Manifest)
_FORMAT_ONLY = msgspec.json.Decoder(_FormatOnly)


def encode_manifest(manifest: Manifest) -> bytes:
    """The manifest as JSON text, packed where it is long."""
    text = msgspec.json.encode(manifest).removesuffix(b"}")
    text = b'%s,"crc32":%d}' % (text, zlib.crc32(text))
    return text if len(text) <= limits.MANIFEST_PLAIN_BYTES_MAX else gzip.compress(text, mtime=0)


def format_of(body: bytes) -> int:
    """The number of the format that a manifest is written in; raises as `decode_manifest` does."""
    return _FORMAT_ONLY.decode(_text(body)).format


def decode_manifest(body: bytes) -> Manifest:
    """The manifest in `body`; `msgspec.DecodeError` or `UnicodeDecodeError` where it is none."""
    text = _text(body)
    told = _CHECKSUM.search(text)
    if told is None:
        raise msgspec.DecodeError("it does not end with its checksum")
    if int(told[1]) != zlib.crc32(text[: told.start()]):
        raise msgspec.DecodeError("its checksum is not that of its text")
    found = _MANIFEST.decode(text)
    if found.order_type is not None and not is_type_name(found.order_type):
        raise msgspec.DecodeError(f"the type {found.order_type!r} of its order is none")
    return found


def _text(body: bytes) -> bytes:
    """The JSON, unpacked as far as a manifest may be long."""
    if not body.startswith(_GZIP):
        return body
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        text = unpacker.decompress(body, limits.MANIFEST_BYTES_MAX)
    except zlib.error as damage:
        raise msgspec.DecodeError(f"it does not unpack: {damage}") from damage
    if not unpacker.eof or unpacker.unused_data:
        raise msgspec.DecodeError("it does not unpack: it is cut, too long, or something follows it")
    return text
