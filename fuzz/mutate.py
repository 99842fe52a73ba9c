"""Inputs made from good ones: bytes, text, JSON and Parquet, each changed a little or a lot.

Contract: everything follows from the dice; the same seed gives the same input.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from fuzz.thrift_tree import BINARY, INTEGERS, LIST, STRUCT, TRUE, Node, read_struct, write_struct

NUMBERS = (
    *(0, 1, -1, 2, 7, 127, 128, 255, 256, 32767, 65535, 65536, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32),
    *(2**40, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30, -(10**30), 10**400),
)
TEXTS = (
    "",
    " ",
    "\0",
    "a",
    "null",
    "NaN",
    "-0",
    "1e999",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "%2e%2e%2fx",
    "%",
    "%zz",
    "%ff",
    "..\\x",
    "s3://b/k",
    "é",
    "\U0001f600",
    "\ud800",
    "9" * 5000,
    "x" * 70_000,
    "2026-02-30",
    "99999-01-01",
    "struct",
    '{"type":"struct","fields":[]}',
    "decimal(99,99)",
    "decimal(38,-4)",
    "timestamp",
    "u",
    "i",
    "p",
)
OTHERS: tuple[Any, ...] = (None, True, False, 0.5, -0.0, 1e308, [], {}, [[]], [None], {"a": None}, {"": {}})
_INTERESTING_BYTES = (0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x5C, 0x7B, 0x7D, 0x0A)
_DEEP = 3000


def bytes_changed(body: bytes, dice: Random, others: Sequence[bytes] = ()) -> bytes:
    """One to a few changes anywhere."""
    out = bytearray(body)
    for _ in range(1 if dice.random() < 0.6 else dice.randint(2, 6)):
        dice.choice(_BYTE_CHANGES)(out, dice)
    if others and dice.random() < 0.05:
        other = dice.choice(others)
        cut, at = dice.randint(0, len(out)), dice.randint(0, len(other))
        out = out[:cut] + other[at:]
    return bytes(out)


def text_changed(text: str, dice: Random, words: Sequence[str]) -> str:
    """A text with words put in, cut out, doubled or replaced."""
    for _ in range(dice.randint(1, 3)):
        at = dice.randint(0, len(text))
        end = min(len(text), at + dice.choice((0, 1, 2, 5, 20)))
        kind = dice.random()
        if kind < 0.45:
            text = text[:at] + dice.choice(words) + text[end:]
        elif kind < 0.6:
            text = text[:at] + text[end:]
        elif kind < 0.7:
            text = text[:end] + text[at:]
        elif kind < 0.8:
            text = (
                text[:at]
                + chr(dice.choice((0, 9, 10, 34, 39, 92, 0x7F, 0xE9, 0x2028, 0xD800, 0x1F600)))
                + text[at:]
            )
        elif kind < 0.9:
            text = text[:at] + dice.choice(TEXTS) + text[at:]
        else:
            text = text[:at] + dice.choice("()[]{}'\"`") * dice.choice((1, 2, 50, 2000)) + text[at:]
    return text


def json_changed(value: Any, dice: Random, keys: Sequence[str] = ()) -> str:
    """JSON text of the value with some of its parts exchanged; sometimes no JSON any more."""
    tree = copy.deepcopy(value)
    for _ in range(dice.randint(1, 3)):
        tree = _node_changed(tree, dice, keys)
    text = json.dumps(tree, ensure_ascii=dice.random() < 0.5)
    if "\ud800" in text:
        text = (
            text.encode("utf-8", "surrogatepass").decode("latin-1")
            if dice.random() < 0.1
            else json.dumps(tree)
        )
    if dice.random() < 0.03:  # deeper than any recursion goes
        text = text.replace("null", "[" * _DEEP + "]" * _DEEP, 1) if "null" in text else "[" * _DEEP
    if dice.random() < 0.03:
        text = text.replace("1", "1" * 5000, 1)
    return text


def footer_of(body: bytes) -> tuple[bytes, bytes]:
    """What stands before the footer of a Parquet file, and the footer."""
    length = int.from_bytes(body[-8:-4], "little")
    return body[: -8 - length], body[-8 - length : -8]


def with_footer(pages: bytes, footer: bytes) -> bytes:
    """A Parquet file of these."""
    return b"".join((pages, footer, len(footer).to_bytes(4, "little"), b"PAR1"))


def parquet_changed(body: bytes, dice: Random) -> bytes:
    """A Parquet file with other bytes, or with a footer that parses and lies."""
    kind = dice.random()
    if kind < 0.2:
        return bytes_changed(body, dice)
    pages, footer = footer_of(body)
    if kind < 0.35:
        return with_footer(pages, bytes_changed(footer, dice))
    if kind < 0.5:
        return with_footer(bytes_changed(pages, dice), footer)
    tree, _ = read_struct(footer)
    for _ in range(1 if dice.random() < 0.7 else dice.randint(2, 4)):
        thrift_changed(tree, dice)
    return with_footer(pages, write_struct(tree))


def thrift_changed(tree: Node, dice: Random) -> None:
    """Exchange, leave out or double one part of a Thrift struct."""
    parent, at = dice.choice(list(_thrift_nodes(tree)))
    items = parent.value
    kind = dice.random()
    if kind < 0.12:
        del items[at]
    elif kind < 0.2:
        items.insert(at, copy.deepcopy(items[dice.randrange(len(items))]))
    else:
        node = items[at][1] if parent.kind == STRUCT else items[at]
        _node_exchanged(node, dice)
        if parent.kind == STRUCT and kind > 0.95:
            items[at] = (dice.choice((1, 2, 3, 8, 9, 12, 16, 17, 200)), node)


def _thrift_nodes(tree: Node) -> Iterator[tuple[Node, int]]:
    for at, item in enumerate(tree.value):
        node = item[1] if tree.kind == STRUCT else item
        yield tree, at
        if node.kind in (STRUCT, LIST):
            yield from _thrift_nodes(node)


def _node_exchanged(node: Node, dice: Random) -> None:
    if node.kind in INTEGERS:
        node.value = node.value + dice.choice((1, -1)) if dice.random() < 0.3 else dice.choice(NUMBERS[:-1])
    elif node.kind == BINARY:
        node.value = dice.choice(
            (b"", b"\xff", node.value[:-1], node.value + b"x", b"y" * 300, node.value[::-1], b"a.b", b"\0")
        )
    elif node.kind == TRUE:
        node.value = not node.value
    elif node.kind == LIST and node.value:
        node.value = dice.choice((node.value[:-1], node.value + node.value[-1:], [], node.value[::-1]))


def _node_changed(tree: Any, dice: Random, keys: Sequence[str]) -> Any:
    places = list(_json_places(tree))
    if not places or dice.random() < 0.02:
        return _odd(dice)
    parent, key = dice.choice(places)
    kind = dice.random()
    if kind < 0.2:
        del parent[key]
    elif kind < 0.3 and isinstance(parent, dict):
        parent[dice.choice((*keys, *TEXTS[:10]))] = parent.pop(key)
    elif kind < 0.4 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif kind < 0.5:
        _, other = dice.choice([(p, p[k]) for p, k in places])
        parent[key] = copy.deepcopy(other)
    elif kind < 0.6 and isinstance(parent[key], str):
        parent[key] = text_changed(parent[key], dice, TEXTS)
    elif kind < 0.7 and isinstance(parent[key], int):
        parent[key] += dice.choice((1, -1, 2**31, -(2**40)))
    else:
        parent[key] = _odd(dice)
    return tree


def _odd(dice: Random) -> Any:
    return copy.deepcopy(dice.choice(dice.choice((NUMBERS, TEXTS, OTHERS))))


def _json_places(tree: Any) -> Iterator[tuple[Any, Any]]:
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        yield tree, key
        yield from _json_places(value)


def _flip_bit(out: bytearray, dice: Random) -> None:
    if out:
        out[dice.randrange(len(out))] ^= 1 << dice.randrange(8)


def _set_byte(out: bytearray, dice: Random) -> None:
    if out:
        out[dice.randrange(len(out))] = dice.choice(_INTERESTING_BYTES)


def _insert(out: bytearray, dice: Random) -> None:
    at = dice.randint(0, len(out))
    out[at:at] = dice.randbytes(dice.choice((1, 1, 2, 4, 16)))


def _cut_out(out: bytearray, dice: Random) -> None:
    at = dice.randint(0, len(out))
    del out[at : at + dice.choice((1, 1, 2, 4, 64))]


def _double(out: bytearray, dice: Random) -> None:
    at = dice.randint(0, len(out))
    out[at:at] = out[at : at + dice.choice((1, 4, 32, 256))]


def _truncate(out: bytearray, dice: Random) -> None:
    del out[dice.randint(0, len(out)) :]


def _number(out: bytearray, dice: Random) -> None:
    width = dice.choice((2, 4, 8))
    if len(out) >= width:
        at = dice.randrange(len(out) - width + 1)
        value = dice.choice(NUMBERS[:-4]) % (1 << 8 * width)
        out[at : at + width] = value.to_bytes(width, dice.choice(("little", "big")))


_BYTE_CHANGES: tuple[Callable[[bytearray, Random], None], ...] = (
    _flip_bit,
    _flip_bit,
    _set_byte,
    _insert,
    _cut_out,
    _double,
    _truncate,
    _number,
)
