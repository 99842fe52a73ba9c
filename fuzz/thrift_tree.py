"""Thrift's compact protocol as a tree that can be changed and written again.

Why: flipped bits of a Parquet footer mostly end in its parser; a footer that parses and lies reaches further.
Contract: `read_struct` keeps every field with its type, so that `write_struct` of an unchanged tree gives the
same bytes for what Parquet's writers write. Only what Parquet's metadata uses is known.
Spec: thrift-compact-protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
INTEGERS = (I16, I32, I64)


@dataclass
class Node:
    """A value: of a struct a list of (field id, node), of a list its nodes, else a plain value."""

    kind: int
    value: Any
    item_kind: int = 0  # of a list


def read_struct(data: bytes, start: int = 0) -> tuple[Node, int]:
    """The struct at `start`, and where it ends."""
    fields: list[tuple[int, Node]] = []
    position, field_id = start, 0
    while True:
        head = data[position]
        position += 1
        kind = head & 0x0F
        if kind == 0:
            return Node(STRUCT, fields), position
        if head >> 4:
            field_id += head >> 4
        else:
            raw, position = read_varint(data, position)
            field_id = _unzigzag(raw)
        node, position = _read_value(data, position, kind)
        fields.append((field_id, node))


def write_struct(node: Node) -> bytes:
    """The struct's bytes."""
    out = bytearray()
    last = 0
    for field_id, value in node.value:
        kind = (TRUE if value.value else FALSE) if value.kind in (TRUE, FALSE) else value.kind
        if 0 < field_id - last <= 15:
            out.append((field_id - last) << 4 | kind)
        else:
            out.append(kind)
            out += write_varint(_zigzag(field_id))
        last = field_id
        if value.kind not in (TRUE, FALSE):
            out += _write_value(value)
    out.append(0)
    return bytes(out)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at `position`, and where it ends."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def write_varint(value: int) -> bytes:
    """A number of any size, seven bits a byte."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_value(data: bytes, position: int, kind: int) -> tuple[Node, int]:  # noqa: PLR0911
    if kind in (TRUE, FALSE):
        return Node(TRUE, kind == TRUE), position
    if kind == BYTE:
        return Node(BYTE, data[position]), position + 1
    if kind in INTEGERS:
        raw, position = read_varint(data, position)
        return Node(kind, _unzigzag(raw)), position
    if kind == DOUBLE:
        return Node(DOUBLE, data[position : position + 8]), position + 8
    if kind == BINARY:
        size, position = read_varint(data, position)
        return Node(BINARY, data[position : position + size]), position + size
    if kind in (LIST, SET):
        return _read_list(data, position, kind)
    if kind == STRUCT:
        return read_struct(data, position)
    raise ValueError(f"a value of kind {kind}")


def _read_list(data: bytes, position: int, kind: int) -> tuple[Node, int]:
    head = data[position]
    position += 1
    count, item_kind = head >> 4, head & 0x0F
    if count == 15:
        count, position = read_varint(data, position)
    items = []
    for _ in range(count):
        if item_kind in (TRUE, FALSE):
            items.append(Node(TRUE, data[position] == TRUE))
            position += 1
        else:
            node, position = _read_value(data, position, item_kind)
            items.append(node)
    return Node(kind, items, item_kind), position


def _write_value(node: Node) -> bytes:
    if node.kind == BYTE:
        return bytes([node.value & 0xFF])
    if node.kind in INTEGERS:
        return write_varint(_zigzag(node.value))
    if node.kind == DOUBLE:
        return bytes(node.value)
    if node.kind == BINARY:
        return write_varint(len(node.value)) + node.value
    if node.kind in (LIST, SET):
        return _write_list(node)
    assert node.kind == STRUCT, node.kind
    return write_struct(node)


def _write_list(node: Node) -> bytes:
    count = len(node.value)
    head = bytes([min(count, 15) << 4 | node.item_kind])
    size = b"" if count < 15 else write_varint(count)
    items = [
        bytes([TRUE if item.value else FALSE]) if item.kind in (TRUE, FALSE) else _write_value(item)
        for item in node.value
    ]
    return head + size + b"".join(items)


def _zigzag(value: int) -> int:
    """As 64 bits, whatever the number: a reader of 32 bits cuts it."""
    value &= (1 << 64) - 1
    signed = value - (1 << 64) if value >> 63 else value
    return ((signed << 1) ^ (signed >> 63)) & ((1 << 64) - 1)


def _unzigzag(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)
