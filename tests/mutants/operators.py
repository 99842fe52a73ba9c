"""The small faults: what each node of the syntax tree may be changed into.

A change replaces a piece of the source text, so that all other lines stay as they are.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from itertools import pairwise

import msgspec

_COMPARISONS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}
_BOOLEANS = {"and": "or", "or": "and"}
_ARITHMETIC = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "//": "*",
    "%": "+",
    "**": "*",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "^": "&",
}
_ASSIGNMENTS = {
    "+=": "-=",
    "-=": "+=",
    "*=": "+=",
    "//=": "*=",
    "|=": "&=",
    "&=": "|=",
    "<<=": ">>=",
    ">>=": "<<=",
}
_EXTREMES = {"min": "max", "max": "min"}


class Change(msgspec.Struct, frozen=True):
    """The bytes from `start` to `end` become `text`."""

    operator: str
    start: int
    end: int
    text: str


class Source:
    """A module's text, where nodes and tokens are found by their place in bytes."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.lines = body.splitlines(keepends=True)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))
        self._tokens = [
            (self._place(token.start), self._place(token.end), token.string)
            for token in tokenize.generate_tokens(io.StringIO(body.decode(), newline="").readline)
            if token.type in (tokenize.OP, tokenize.NAME)
        ]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def line_of(self, place: int) -> int:
        return self.body.count(b"\n", 0, place) + 1

    def between(
        self, left: ast.expr, right: ast.expr, changes: dict[str, str]
    ) -> tuple[int, int, str] | None:
        """The operator between two operands: its place, and what it is changed into."""
        return self._changed(self.span(left)[1], self.span(right)[0], changes)

    def first(self, node: ast.expr | ast.stmt, changes: dict[str, str]) -> tuple[int, int, str] | None:
        """The same for the first such token of a node."""
        return self._changed(*self.span(node), changes)

    def _changed(self, start: int, end: int, changes: dict[str, str]) -> tuple[int, int, str] | None:
        inside = [token for token in self._tokens if start <= token[0] and token[1] <= end]
        for token, following in zip(inside, [*inside[1:], (0, 0, "")], strict=True):
            if f"{token[2]} {following[2]}" in changes:
                return token[0], following[1], changes[f"{token[2]} {following[2]}"]
            if token[2] in changes:
                return token[0], token[1], changes[token[2]]
        return None

    def _place(self, position: tuple[int, int]) -> int:
        row, column = position
        if row > len(self.lines):
            return len(self.body)
        return self._starts[row - 1] + len(self.lines[row - 1].decode()[:column].encode())


def changes_of(node: ast.AST, source: Source, *, returns_value: bool) -> Iterator[Change]:
    """All changes of one node; `returns_value`: the function around it is annotated to return one."""
    for operator, place in _tokens_changed(node, source):
        if place is not None:
            yield Change(operator, *place)
    match node:
        case ast.Constant(value=bool() as value):
            yield Change("constant", *source.span(node), str(not value))
        case ast.Constant(value=int() as value) if not _is_round(value):
            yield Change("constant", *source.span(node), str(value + 1))
        case ast.UnaryOp(op=ast.Not()):
            start, end, _ = source.first(node, {"not": ""}) or (0, 0, "")
            end += source.body[end : end + 1] == b" "
            yield Change("not removed", start, end, "")
        case ast.Return(value=ast.expr() as value) if returns_value and not _is_false(value):
            yield Change("return None", *source.span(value), "None")
        case ast.If(test=test) | ast.IfExp(test=test):
            for forced in ("True", "False"):
                yield Change(f"if {forced}", *source.span(test), forced)
        case ast.Break():
            yield Change("break", *source.span(node), "continue")
        case ast.Continue():
            yield Change("continue", *source.span(node), "break")
        case ast.Expr(value=ast.Call()):
            yield Change("call deleted", *source.span(node), "pass")


def _tokens_changed(node: ast.AST, source: Source) -> Iterator[tuple[str, tuple[int, int, str] | None]]:
    match node:
        case ast.Compare(left=left, comparators=others):
            for one, other in pairwise([left, *others]):
                yield "comparison", source.between(one, other, _COMPARISONS)
        case ast.BoolOp(values=values):
            for one, other in pairwise(values):
                yield "boolean", source.between(one, other, _BOOLEANS)
        case ast.BinOp(left=one, op=op, right=other):
            is_union = isinstance(op, ast.BitOr) and (_is_type(one) or _is_type(other))
            if not (is_union or _is_text(one) or _is_text(other)):
                yield "arithmetic", source.between(one, other, _ARITHMETIC)
        case ast.AugAssign(target=target, value=value) if not _is_text(value):
            yield "arithmetic", source.between(target, value, _ASSIGNMENTS)
        case ast.Call(func=ast.Name(id="min" | "max") as name):
            yield "min and max", source.first(name, _EXTREMES)


def _is_round(value: int) -> bool:
    """Sizes of buffers and batches, of which one more or less changes no result."""
    return value >= 1024 and value % 1024 == 0


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr() | ast.Constant(value=str() | bytes()):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_text(left) or _is_text(right)
    return False


def _is_type(node: ast.expr) -> bool:
    """One side of a union of types, as in `isinstance(value, int | Decimal)`."""
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in ("int", "str", "bytes", "float", "bool", "list", "dict") or (
                name[:1].isupper() and not name.isupper()
            )
        case ast.Subscript(value=value):
            return _is_type(value) and not isinstance(value, ast.Constant)
        case ast.BinOp(left=left):
            return _is_type(left)
    return False
