"""A pyarrow expression as a tree that can be read.

Why: `pyarrow.compute.Expression` shows its parts to nobody. Substrait would, but knows neither `isin` nor
`is_null(nan_is_null=True)`, and refuses the whole expression for one of them. What pyarrow pickles does: an
Arrow file whose schema's metadata is the tree in preorder, with the literals as columns. Contract: what
cannot be read, or is not as expected, is None; then nothing may be concluded from the expression.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.predicate.expression import ColumnPath
from lazydelta.telemetry import log_event


class FieldReference(msgspec.Struct, frozen=True):
    """A column, or a field inside one."""

    path: ColumnPath


class Constant(msgspec.Struct, frozen=True, eq=False):
    """A value with its type."""

    value: pa.Scalar


class Call(msgspec.Struct, frozen=True, eq=False):
    """A function of pyarrow's registry with its arguments and options."""

    function: str
    arguments: tuple[ArrowNode, ...]
    options: pa.StructScalar | None = None


ArrowNode = FieldReference | Constant | Call


class _CSchema(ctypes.Structure):
    """The head of `ArrowSchema`, as the Arrow C data interface lays it out."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


_pointer_of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of_capsule.restype = ctypes.c_void_p
_pointer_of_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]


def read_expression(expression: pc.Expression) -> ArrowNode | None:
    """The tree of the expression; None where it cannot be told."""
    try:
        _, (buffer,) = expression.__reduce__()
        rows = pa.ipc.open_file(buffer).get_batch(0)
        return _tree(_pairs(rows.schema), rows)
    except (pa.ArrowException, NotImplementedError, ValueError, TypeError, LookupError, struct.error) as odd:
        log_event("a filter is not pushed into the scan", filter=str(expression), reason=repr(odd))
        return None


def fields_of(node: ArrowNode) -> Iterator[ColumnPath]:
    """Every column that the expression names, repeated as often as named."""
    waiting = [node]
    while waiting:
        match waiting.pop():
            case FieldReference(path):
                yield path
            case Call(_, arguments):
                waiting.extend(arguments)


def _tree(tokens: Iterator[tuple[str, str]], rows: pa.RecordBatch) -> ArrowNode:
    """The one node that the tokens spell."""
    open_calls: list[tuple[str, list[ArrowNode]]] = [("", [])]
    options: dict[int, pa.StructScalar] = {}
    for kind, value in tokens:
        arguments = open_calls[-1][1]
        if kind == "call":
            open_calls.append((value, []))
        elif kind == "literal":
            arguments.append(Constant(rows.column(int(value))[0]))
        elif kind == "field_ref":
            arguments.append(FieldReference((value,)))
        elif kind == "nested_field_ref":
            arguments.append(FieldReference(tuple(_names(tokens, int(value)))))
        elif kind == "options":
            options[len(open_calls)] = rows.column(int(value))[0]
        elif kind == "end" and value == open_calls[-1][0]:
            given = options.pop(len(open_calls), None)
            open_calls.pop()
            open_calls[-1][1].append(Call(value, tuple(arguments), given))
        else:
            raise ValueError(f"unexpected {kind} {value}")
    (root,) = open_calls
    (node,) = root[1]
    return node


def _names(tokens: Iterator[tuple[str, str]], count: int) -> Iterator[str]:
    for _ in range(count):
        kind, name = next(tokens)
        if kind != "field_ref":
            raise ValueError(f"unexpected {kind} {name}")
        yield name


def _pairs(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The metadata in its order, repeated keys among them: `Schema.metadata` keeps one of each."""
    capsule: Any = schema.__arrow_c_schema__()  # Any: capsules have no type
    c_schema = _CSchema.from_address(_pointer_of_capsule(capsule, b"arrow_schema"))
    if c_schema.metadata is None:
        return
    at = c_schema.metadata
    (count,), at = _integer(at), at + 4
    for _ in range(count):
        key, at = _text(at)
        value, at = _text(at)
        yield key, value


def _text(at: int) -> tuple[str, int]:
    (length,) = _integer(at)
    return ctypes.string_at(at + 4, length).decode(), at + 4 + length


def _integer(at: int) -> tuple[int]:
    (value,) = struct.unpack("=i", ctypes.string_at(at, 4))
    return (value,)
