"""`in`, `has_any` and `has_all` beside dynamics: an array stands for what it holds, arrays inside it as well.

Why: the translation library compares texts, so that a datetime is in no set of datetimes and 1.0 not among 1
and 2, and knows arrays by a few shapes alone. Contract: what an array holds is compared in the value's type;
what is not of it equals none. Whether a number equals a text that reads as one is not documented: an error.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from functools import reduce
from typing import Any

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import render_expr, sharing

from lazydelta.engines.kql.kinds import HELD_KINDS, WHOLE, Kind, TypedAggregate, kind_of
from lazydelta.engines.kql.trees import parts_of

AMONG = "among members"
AMONG_CASELESS = "among members, caseless"
MEMBERS = "texts of members"
_LONG = 1 << 63
_UNREAL = "('NaN', 'Infinity', '-Infinity')"  # the texts that dynamics have for such numbers

MACROS: dict[str, tuple[str, ...]] = {
    "_unfolded": (
        "(l) AS flatten(list_transform(l, lambda j: CASE WHEN json_type(j) = 'ARRAY' "
        "THEN json_extract(j, '$[*]') ELSE [j] END))",
    ),
    "_members": (
        "(a) AS list_transform(kql__unfolded(kql__unfolded(kql__unfolded(kql__unfolded([to_json(a)])))), "
        "lambda j: CASE WHEN json_type(j) = 'ARRAY' THEN error('in: arrays inside arrays go too deep') "
        "ELSE j END)",
    ),
    "_member_texts": ("(a) AS list_transform(kql__members(a), lambda j: j ->> '$')",),
    # What is compared is text, in one form for each value.
    "_real_key": ("(d) AS CASE WHEN NOT isnan(d) THEN CAST(d + 0.0 AS VARCHAR) END",),
    "_real_in": (
        f"(j) AS CASE WHEN json_type(j) IN ('BIGINT', 'UBIGINT', 'DOUBLE') OR j ->> '$' IN {_UNREAL} "
        "THEN kql__real_key(TRY_CAST(j ->> '$' AS DOUBLE)) ELSE kql__no_number(j) END",
    ),
    "_long_in": (
        "(j) AS CASE WHEN json_type(j) IN ('BIGINT', 'UBIGINT') THEN j ->> '$' WHEN json_type(j) = 'DOUBLE' "
        "THEN CASE WHEN TRY_CAST(j AS DOUBLE) % 1 = 0 THEN CAST(TRY_CAST(TRY_CAST(j AS DOUBLE) AS BIGINT) AS "
        f"VARCHAR) END WHEN j ->> '$' IN {_UNREAL} THEN NULL ELSE kql__no_number(j) END",
    ),
    # A number as one text, however it was written.
    "_plain_text": (
        "(j) AS CASE WHEN json_type(j) = 'DOUBLE' AND abs(TRY_CAST(j AS DOUBLE)) < 1e15 AND "
        "TRY_CAST(j AS DOUBLE) % 1 = 0 THEN CAST(TRY_CAST(j AS DOUBLE)::BIGINT AS VARCHAR) "
        "WHEN json_type(j) = 'DOUBLE' THEN CAST(TRY_CAST(j AS DOUBLE) AS VARCHAR) ELSE j ->> '$' END",
    ),
}


def listed(node: ir.InList) -> ir.Expr:
    """`in` with arrays among its values, each asked by itself."""
    arrays = [_meant(item) for item in node.items if _is_array(item)]
    kind = kind_of(node.value)
    if not arrays or kind is None:
        return node
    if kind == "decimal":
        raise KqlUnsupportedError("in", hint="of a decimal and a dynamic; convert it with toreal(…)")
    name = AMONG_CASELESS if node.case_insensitive else AMONG
    tests: list[ir.Expr] = []
    lists = [tuple(item for item in node.items if not _is_array(item))]
    for array in arrays:
        told = _written_out(array, kind)
        if told is None:
            tests.append(ir.FunctionCall(name, (node.value, array)))
        else:
            lists += told
    tests += [dataclasses.replace(node, items=items, negated=False) for items in lists if items]
    inside = reduce(lambda left, right: ir.BinaryOp("or", left, right), tests or [ir.Literal(False, "bool")])
    return ir.FunctionCall("not", (inside,)) if node.negated else inside


def with_words(node: ir.HasList) -> ir.HasList:
    """`has_any` and `has_all` with arrays that are known only when the query runs."""
    words = tuple(
        ir.FunctionCall(MEMBERS, (item,)) if _is_array(item) and _is_told_late(item) else item
        for item in node.items
    )
    return dataclasses.replace(node, items=words)


def among(node: ir.FunctionCall) -> str:
    """Whether a value is one of those that an array holds; a null is none."""
    value = render_expr(node.args[0])
    kind = kind_of(node.args[0])
    fold = "lower({})" if kind == "guid" or node.name == AMONG_CASELESS else "{}"
    if kind in WHOLE:
        member, key = "kql__long_in(j)", value
    elif kind == "real":
        member, key = "kql__real_in(j)", f"kql__real_key({value})"
    elif kind == "dynamic":
        member, key = "kql__plain_text(j)", f"kql__plain_text(to_json({value}))"
    elif kind == "timespan":  # which may be written as its ticks
        member, key = f"epoch_us({_converted('totimespan')})", f"epoch_us({value})"
    elif kind in HELD_KINDS:
        member, key = _converted(f"dynamic {kind}"), value
    else:
        member, key = fold.format("(j ->> '$')"), fold.format(f"CAST({value} AS VARCHAR)")
    return f"coalesce({_is_among(node.args[1], member, f'CAST({key} AS VARCHAR)')}, FALSE)"


def _is_among(array: ir.Expr, member: str, key: str) -> str:
    """Whether a text is one of the members' texts; without columns in the array those are rows to join."""
    members = f"list_transform(kql__members({{}}), lambda j: CAST({member} AS VARCHAR))"
    if any(isinstance(part, ir.ColumnRef) for part in _own_parts(array)):
        return f"list_contains({members.replace('{}', render_expr(array))}, {key})"
    with sharing.barrier():  # or it is a column after all, and read again for each row
        sql = render_expr(array)
    return f"{key} IN (SELECT unnest({members.replace('{}', '_a')}) FROM (SELECT {sql} AS _a))"


def _own_parts(node: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of an expression without the queries inside it, whose columns are their own."""
    yield node
    if not isinstance(node, ir.ToScalar):
        for part in parts_of(node):
            yield from _own_parts(part)


def _written_out(array: ir.Expr, kind: Kind) -> list[tuple[ir.Expr, ...]] | None:
    """The texts or numbers of an array in the query, by their types; None: others are in it, or asked for."""
    if not isinstance(array, ir.Literal) or kind not in ("string", "real", *WHOLE):
        return None
    digits = str if kind == "string" else None
    told = json.loads(str(array.value), parse_int=digits, parse_float=digits) if array.value else None
    members = list(_unfolded(told))
    if kind == "string":
        is_plain = all(isinstance(one, str) for one in members)
        return [tuple(ir.Literal(one, "string") for one in members)] if is_plain else None
    if not all(type(one) in (int, float) and abs(one) < _LONG for one in members):
        return None
    longs = tuple(ir.Literal(one, "long") for one in members if type(one) is int)
    return [longs, tuple(ir.Literal(one, "real") for one in members if type(one) is float)]


def _unfolded(value: Any) -> Iterator[Any]:  # Any: what JSON has
    if isinstance(value, list):
        for one in value:
            yield from _unfolded(one)
    elif value is not None:
        yield value


def _converted(function: str) -> str:
    sql: str = render_expr(ir.FunctionCall(function, (TypedAggregate("j", "dynamic"),)))
    return sql


def _meant(node: ir.Expr) -> ir.Expr:
    return node.value if isinstance(node, ir.LetRef) else node


def _is_array(node: ir.Expr) -> bool:
    return kind_of(_meant(node)) == "dynamic"


def _is_told_late(node: ir.Expr) -> bool:
    return not isinstance(node, ir.Literal | ir.LetRef | ir.Parameter | ir.ToScalar)


FORMS = {
    AMONG: among,
    AMONG_CASELESS: among,
    MEMBERS: lambda node: f"kql__member_texts({render_expr(node.args[0])})",
}
