"""Whether pyarrow can look at a Parquet footer without ending the process.

Why: `FileMetaData.row_group(i).column(j)` and `.statistics` of pyarrow 26 let C++ exceptions through where a
footer contradicts itself (a bound of three bytes for a long, a histogram of the wrong length, an encrypted
column), which aborts the interpreter. A table is somebody else's data, so footers are checked before.
Contract: pure. A footer that passes has as many chunks in every row group as its schema has leaves, each of
the leaf's type, with bounds of that type's width; what fails is a `FooterDamageError`. Chunks as most writers
write them are matched by patterns, in about a microsecond each; others are taken apart, in ten or twenty.
Spec: parquet.thrift; thrift-compact-protocol.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any  # what a footer holds

import msgspec

from lazydelta import limits

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_BYTE_ARRAY, _FIXED = 6, 7
_WIDTHS = {0: 1, 1: 4, 2: 8, 4: 4, 5: 8}  # by physical type; INT96 (3) has no order, so no bounds are read
_REPEATED, _REQUIRED = 2, 0
_STATISTICS_BINARIES = (1, 2, 5, 6)
_ITEMS = {2: _I32, 3: _BINARY, 8: _STRUCT, 13: _STRUCT}  # of the lists of a chunk
_NESTING_MAX = 32  # of Thrift's structs; footers have eight levels


class FooterDamageError(ValueError):
    """The footer contradicts itself."""


class NotThriftError(FooterDamageError):
    """Bytes that are no struct of Thrift's at all."""


class Leaf(msgspec.Struct, frozen=True):
    """What the schema says of a leaf column."""

    type: int
    width: int | None  # of its bounds, in bytes; None: any
    levels: tuple[int, int]  # how many there are of repetition and definition


class _Expected(msgspec.Struct, frozen=True):
    """A leaf, and its path as most writers write it."""

    leaf: Leaf
    path: bytes  # with the head of its field; empty where it is too long for that


_Leaves = tuple[_Expected, ...]
Fields = dict[int, tuple[int, Any]]  # of a struct: id → kind and value


def check_footer(footer: bytes) -> None:
    """Raise where the footer is not one that pyarrow can be asked about."""
    try:
        _check(footer)
    except (IndexError, RecursionError) as cut:
        raise FooterDamageError("its footer ends too early or nests too deeply") from cut


def _check(footer: bytes) -> None:
    leaves: _Leaves | None = None
    position = field = 0
    while head := footer[position]:
        field, position = _field_id(footer, position, field)
        kind = head & 0x0F
        if field in (2, 4) and kind != _LIST:
            raise FooterDamageError("its schema or its row groups are no list")
        if field == 2:
            leaves, position = _leaves(footer, position)
        elif field == 4:
            if leaves is None:
                raise FooterDamageError("its row groups come before its schema, or twice")
            position = _check_row_groups(footer, position, leaves)
            leaves = None
        else:
            _check_list(footer, position, kind, _STRUCT)
            position = _skip(footer, position, kind, 0)


def _check_list(footer: bytes, position: int, kind: int, item: int) -> None:
    """Thrift's own readers take the items of a list for what they expect, whatever the list says they are."""
    if kind in (_LIST, _SET):
        count, told, _ = _list_head(footer, position)
        if count and told != item:
            raise FooterDamageError("its footer has a list of other items than expected")


# --- the schema ------------------------------------------------------------------

_SCHEMAS_KNOWN_MAX = 16
_schemas_known: tuple[tuple[bytes, _Leaves], ...] = ()  # most files of a table have one


def _leaves(footer: bytes, position: int) -> tuple[_Leaves, int]:
    """The leaves of the schema that begins there, and where it ends."""
    global _schemas_known  # noqa: PLW0603 - exchanged whole; a thread may undo another's, no matter
    for schema, leaves in _schemas_known:
        if footer.startswith(schema, position):
            return leaves, position + len(schema)
    count, _, _ = _list_head(footer, position)
    if not 0 < count <= limits.PARQUET_COLUMNS_MAX:
        raise FooterDamageError(f"its schema has {count:,} nodes")
    end = _skip(footer, position, _LIST, 0)
    schema = footer[position:end]
    leaves = _leaves_of(schema)
    _schemas_known = ((schema, leaves), *_schemas_known[: _SCHEMAS_KNOWN_MAX - 1])
    return leaves, end


def _leaves_of(schema: bytes) -> _Leaves:
    (item, nodes), _ = _value(schema, 0, _LIST, 0)
    if item != _STRUCT:
        raise FooterDamageError("its schema is no list of structs")
    walk = iter(nodes)
    root = next(walk)
    found = [
        _expected(leaf, path)
        for _ in range(_child_count(root))
        for leaf, path in _leaves_below(walk, (1, 1), ())
    ]
    if next(walk, None) is not None:
        raise FooterDamageError("its schema has nodes to spare")
    return tuple(found)


def _leaves_below(
    walk: Iterator[Any], levels: tuple[int, int], above: tuple[bytes, ...]
) -> Iterator[tuple[Leaf, tuple[bytes, ...]]]:
    node = next(walk, None)
    if node is None or len(above) >= limits.PARQUET_NESTING_MAX:
        raise FooterDamageError("its schema ends too early or nests too deeply")
    children = _child_count(node)
    repetition = node.get(3, (_I32, _REQUIRED))[1]
    if not _REQUIRED <= repetition <= _REPEATED:
        raise FooterDamageError(f"its schema has a node of the repetition {repetition}")
    levels = (levels[0] + (repetition == _REPEATED), levels[1] + (repetition != _REQUIRED))
    path = (*above, node.get(4, (_BINARY, b""))[1])
    for _ in range(children):
        yield from _leaves_below(walk, levels, path)
    if not children:
        type_ = node.get(1, (_I32, -1))[1]
        width = node.get(2, (_I32, 0))[1] if type_ == _FIXED else _WIDTHS.get(type_)
        yield Leaf(type_, width, levels), path


def _child_count(node: Any) -> int:  # Any: what the list holds
    if not isinstance(node, dict):
        raise FooterDamageError("its schema is no list of structs")
    for field in (1, 2, 3, 5):
        if field in node and node[field][0] != _I32:
            raise FooterDamageError(f"its schema has a field {field} that is no number")
    if node.get(4, (_BINARY, b""))[0] != _BINARY:
        raise FooterDamageError("its schema has a name that is no text")
    count = node.get(5, (_I32, 0))[1]
    if not 0 <= count <= limits.PARQUET_COLUMNS_MAX:
        raise FooterDamageError(f"a group of its schema has {count} children")
    return int(count)


# --- row groups ------------------------------------------------------------------


def _check_row_groups(footer: bytes, position: int, leaves: _Leaves) -> int:
    count, item, position = _list_head(footer, position)
    if item != _STRUCT and count:
        raise FooterDamageError("its row groups are no structs")
    for _ in range(count):
        field, has_chunks = 0, False
        while head := footer[position]:
            field, position = _field_id(footer, position, field)
            if field != 1:
                _check_list(footer, position, head & 0x0F, _STRUCT)
                position = _skip(footer, position, head & 0x0F, 0)
                continue
            if head & 0x0F != _LIST or has_chunks:
                raise FooterDamageError("a row group has no list of column chunks, or two")
            position, has_chunks = _check_chunks(footer, position, leaves), True
        if not has_chunks:
            raise FooterDamageError("a row group has no column chunks")
        position += 1
    return position


def _check_chunks(footer: bytes, position: int, leaves: _Leaves) -> int:
    count, item, position = _list_head(footer, position)
    if count != len(leaves) or (count and item != _STRUCT):
        raise FooterDamageError(f"a row group has {count} column chunks and the schema {len(leaves)} leaves")
    for expected in leaves:
        end = _matched(footer, position, expected)
        if end is None:
            chunk, end = _value(footer, position, _STRUCT, 0)
            _check_chunk(chunk, expected.leaf)
        position = end
    return position


def _matched(footer: bytes, position: int, expected: _Expected) -> int | None:
    """Where a chunk ends that is as expected, and as most writers write it."""
    path, leaf = expected.path, expected.leaf
    head = _HEAD.match(footer, position)
    if head is None or not path or footer[head.start(1)] != leaf.type << 1:
        return None
    at = head.end()
    if not footer.startswith(path, at):
        return None
    behind = _behind_statistics(footer, at + len(path), leaf)
    rest = None if behind is None else _REST.match(footer, behind)
    if rest is None:
        return None
    if rest.lastindex is not None:
        texts, *levels = rest.groups()
        if (texts is not None and leaf.type != _BYTE_ARRAY) or not _are_levels(levels, leaf):
            return None
    return rest.end()


def _are_levels(told: list[bytes | None], leaf: Leaf) -> bool:
    """Whether the histograms have as many values as there are levels, or none."""
    by_text, text, text_alone, by_plain, plain, plain_alone = told
    repetition = by_text or by_plain
    definition = text or text_alone or plain or plain_alone
    return (repetition is None or repetition[0] >> 4 in (0, leaf.levels[0])) and (
        definition is None or definition[0] >> 4 in (0, leaf.levels[1])
    )


def _check_chunk(chunk: Any, leaf: Leaf) -> None:
    """A chunk that is written in some other way than most."""
    if _of_kind(chunk, 8, _STRUCT) is not None or _of_kind(chunk, 9, _BINARY) is not None:
        raise FooterDamageError("a column is encrypted")
    kind, about = chunk.get(3, (0, None))
    if kind != _STRUCT:
        raise FooterDamageError("a column chunk has no metadata")
    if about.get(1) != (_I32, leaf.type):
        raise FooterDamageError(f"a column chunk is of the type {about.get(1)} and its column of {leaf.type}")
    for field in (5, 6, 7, 9):
        if _of_kind(about, field, _I64) is None:
            raise FooterDamageError("a column chunk has a size or a place that is no number")
    for field, item in _ITEMS.items():
        kind, items = about.get(field, (0, None))
        if kind == _LIST and items[1] and items[0] != item:
            raise FooterDamageError("a column chunk has a list of other items than expected")
    # Thrift passes over a field of another kind than it expects.
    _check_statistics(_of_kind(about, 12, _STRUCT) or {}, leaf)
    _check_histograms(_of_kind(about, 16, _STRUCT) or {}, leaf)
    item, shapes = _of_kind(_of_kind(about, 17, _STRUCT) or {}, 2, _LIST) or (_I32, [])
    if shapes and item != _I32:
        raise FooterDamageError("a column chunk has a list of other items than expected")


def _check_statistics(told: Fields, leaf: Leaf) -> None:
    for field in _STATISTICS_BINARIES:
        bound = _of_kind(told, field, _BINARY)
        if bound is not None and leaf.width is not None and len(bound) != leaf.width:
            raise FooterDamageError("a column chunk has a bound that is not of its type")


def _check_histograms(told: Fields, leaf: Leaf) -> None:
    if _of_kind(told, 1, _I64) is not None and leaf.type != _BYTE_ARRAY:
        raise FooterDamageError("the size statistics of a column chunk are not of its type")
    for field, levels in zip((2, 3), leaf.levels, strict=True):
        item, counts = _of_kind(told, field, _LIST) or (_I64, [])
        if counts and (item != _I64 or len(counts) != levels):
            raise FooterDamageError("a column chunk has a level histogram of other levels than its column")


def _of_kind(fields: Fields, field: int, kind: int) -> Any:  # Any: what the footer holds
    """The value of a field; None where it is missing, or of another kind."""
    told, value = fields.get(field, (0, None))
    return value if told == kind else None


# --- the common way to write a chunk -----------------------------------------------
# Few patterns, and small ones: each process compiles them, and may have only one footer to look at.
# They have no possessive quantifiers and no atomic groups: `re` of Python 3.11.0 to 3.11.4 gets these wrong
# (gh-106052). None are needed: the first bytes of an item say what it is and where it ends, so there is one
# way to match. Repeats have a limit, because `re` keeps state for each round of one that it may go back into.

_NUMBER = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_LISTED_MAX = 4  # encodings of a chunk, and of its pages
_FIELDS_MAX = 16  # numbers in a row, and fields of statistics; chunks with more are taken apart


def _byte_class(*bytes_: int) -> bytes:
    return b"[" + b"".join(b"\\x%02x" % byte for byte in bytes_) + b"]"


def _heads(*kinds: int) -> bytes:
    """The head of a field of these kinds, not far from the field before it."""
    return _byte_class(*(delta << 4 | kind for delta in range(1, 6) for kind in kinds))


def _list_of(kind: int, item: bytes, counts: Iterable[int] = range(1, _LISTED_MAX + 1)) -> bytes:
    return b"(?:" + b"|".join(b"\\x%02x(?:%s){%d}" % (n << 4 | kind, item, n) for n in counts) + b")"


_HEAD = re.compile(b"\\x26%s\\x1c\\x15(.)\\x19%s" % (_NUMBER, _list_of(_I32, _NUMBER)), re.DOTALL)
_SIZES = b"\\x15%s\\x16%s\\x16%s\\x16%s\\x26%s(?:[\\x16\\x26]%s)?" % ((_NUMBER,) * 6)
_STATISTICS_HEAD = _byte_class(0x1C, 0x2C, 0x3C)
_TO_STATISTICS = re.compile(b"%s(%s)?" % (_SIZES, _STATISTICS_HEAD))
_PAGE = b"\\x15%s\\x15%s\\x15%s\\x00" % ((_NUMBER,) * 3)
_PAGES = b"(?:%s%s)?" % (_byte_class(0x19, 0x29, 0x49), _list_of(_STRUCT, _PAGE))
_NUMBERS = b"(?:%s%s){0,%d}" % (_byte_class(0x15, 0x16, 0x25, 0x26, 0x35, 0x36), _NUMBER, _FIELDS_MAX)
_LEVELS = b"(%s)" % _list_of(_I64, _NUMBER, range(_LISTED_MAX + 1))
# How many bytes its texts have (of a text only), then values by repetition and by definition level.
_TEXT_SIZE = b"\\x16(%s)(?:\\x19%s(?:\\x19%s)?|\\x29%s)?" % (_NUMBER, _LEVELS, _LEVELS, _LEVELS)
_PLAIN_SIZE = b"\\x29%s(?:\\x19%s)?|\\x39%s" % (_LEVELS, _LEVELS, _LEVELS)
_SIZE = b"(?:%s(?:%s|%s)?\\x00)?" % (_heads(_STRUCT), _TEXT_SIZE, _PLAIN_SIZE)
_REST = re.compile(_PAGES + _NUMBERS + _SIZE + b"\\x00" + _NUMBERS + b"\\x00", re.DOTALL)


def _expected(leaf: Leaf, path: tuple[bytes, ...]) -> _Expected:
    is_short = len(path) < 15 and all(len(name) < 128 for name in path)
    names = b"".join(bytes([len(name)]) + name for name in path) if is_short else b""
    return _Expected(leaf, bytes([0x19, len(path) << 4 | _BINARY]) + names if is_short else b"")


@lru_cache(maxsize=64)
def _statistics_pattern(width: int) -> re.Pattern[bytes]:
    """Sizes and statistics of a chunk whose bounds have that many bytes."""
    bound = b"\\x%02x.{%d}" % (width, width)
    one = b"(?:%s%s|%s%s|%s)" % (_heads(_BINARY), bound, _heads(_I64), _NUMBER, _heads(_TRUE, _FALSE))
    return re.compile(b"%s(?:%s%s{0,%d}\\x00)?" % (_SIZES, _STATISTICS_HEAD, one, _FIELDS_MAX), re.DOTALL)


def _behind_statistics(footer: bytes, position: int, leaf: Leaf) -> int | None:
    """Where a chunk's sizes and statistics end. Whatever else is in them, binaries come as bounds only."""
    if leaf.width is None:
        return _behind_texts(footer, position)
    known = _statistics_pattern(leaf.width).match(footer, position) if 0 < leaf.width < 128 else None
    return None if known is None else known.end()


def _behind_texts(footer: bytes, position: int) -> int | None:
    """The same with bounds of any length below 128."""
    sizes = _TO_STATISTICS.match(footer, position)
    if sizes is None or sizes[1] is None:
        return None if sizes is None else sizes.end()
    position = sizes.end()
    while head := footer[position]:
        kind, position = head & 0x0F, position + 1
        if kind == _BINARY and footer[position] < 128:
            position += 1 + footer[position]
        elif kind == _I64:
            while footer[position] > 127:
                position += 1
            position += 1
        elif kind not in (_TRUE, _FALSE):
            return None
        if not head >> 4:
            return None
    return position + 1


# --- Thrift's compact protocol -----------------------------------------------------


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise FooterDamageError("its footer has a number that is too long")


def _list_head(data: bytes, position: int) -> tuple[int, int, int]:
    """(items, their kind, where they begin); as many as there are bytes left at most."""
    head = data[position]
    count, kind, position = head >> 4, head & 0x0F, position + 1
    if count == 15:
        count, position = _varint(data, position)
    if count > len(data) - position:
        raise FooterDamageError("its footer has a list that is longer than the footer")
    return count, kind, position


def _skip(data: bytes, position: int, kind: int, depth: int) -> int:  # noqa: PLR0911 - one for each kind
    """Where a value ends."""
    if kind in (_TRUE, _FALSE):
        return position
    if kind in (_I16, _I32, _I64):
        while data[position] >= 0x80:
            position += 1
        return position + 1
    if kind == _BINARY:
        size, position = _varint(data, position)
        return _within(data, position + size)
    if kind == _STRUCT:
        return _skip_struct(data, position, depth)
    if kind in (_LIST, _SET):
        count, item, position = _list_head(data, position)
        if item in (_TRUE, _FALSE):
            return _within(data, position + count)
        for _ in range(count):
            position = _skip(data, position, item, depth + 1)
        return position
    if kind in (_BYTE, _DOUBLE):
        return _within(data, position + (1 if kind == _BYTE else 8))
    if kind == _MAP:
        raise FooterDamageError("its footer has a map")
    raise NotThriftError(f"its footer has a value of kind {kind}")


def _skip_struct(data: bytes, position: int, depth: int) -> int:
    if depth > _NESTING_MAX:
        raise FooterDamageError("its footer nests too deeply")
    while head := data[position]:
        position += 1
        if not head >> 4:
            _, position = _varint(data, position)
        position = _skip(data, position, head & 0x0F, depth + 1)
    return position + 1


def _value(data: bytes, position: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value, and where it ends: {id: (kind, value)} of a struct, (kind, items) of a list. Any: either."""
    if kind in (_I16, _I32, _I64):
        raw, position = _varint(data, position)
        if kind != _I64 and raw >> 32:
            raise FooterDamageError("its footer has a number that is too long")
        return (raw >> 1) ^ -(raw & 1), position
    if kind == _BINARY:
        size, position = _varint(data, position)
        end = _within(data, position + size)
        return data[position:end], end
    if kind == _STRUCT:
        return _struct_value(data, position, depth)
    if kind == _LIST:
        count, item, position = _list_head(data, position)
        items = []
        for _ in range(count):
            one, position = _value(data, position, item, depth + 1)
            items.append(one)
        return (item, items), position
    return None, _skip(data, position, kind, depth)


def _struct_value(data: bytes, position: int, depth: int) -> tuple[dict[int, tuple[int, Any]], int]:
    if depth > _NESTING_MAX:
        raise FooterDamageError("its footer nests too deeply")
    found: dict[int, tuple[int, Any]] = {}
    field = 0
    while head := data[position]:
        field, position = _field_id(data, position, field)
        if field in found:
            raise FooterDamageError(f"its footer has a field {field} twice")
        inner, position = _value(data, position, head & 0x0F, depth + 1)
        found[field] = head & 0x0F, inner
    return found, position + 1


def _field_id(data: bytes, position: int, last: int) -> tuple[int, int]:
    """The id of the field whose head is there, and where its value begins."""
    delta = data[position] >> 4
    if delta:
        return last + delta, position + 1
    raw, position = _varint(data, position + 1)
    return (raw >> 1) ^ -(raw & 1), position


def thrift_struct(data: bytes, position: int) -> tuple[dict[int, tuple[int, Any]], int]:
    """A struct as {id: (kind, value)}, and where it ends; `IndexError` where the bytes end before it."""
    return _struct_value(data, position, 0)


def _within(data: bytes, end: int) -> int:
    if end > len(data):
        raise IndexError
    return end
