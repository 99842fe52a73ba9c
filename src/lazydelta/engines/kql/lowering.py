"""Operators and calls that the translation library cannot read, read into its tree.

Contract: each function here gets a node of the parsed text and gives what belongs into the library's
tree, or None where the library reads it rightly itself. Refusals carry the place.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from duckdb_kql import ir, lower
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS

from lazydelta.engines.kql import expansion, make_series, search, windows
from lazydelta.engines.kql.library import SERIALIZED
from lazydelta.engines.kql.operators import (
    DistinctRows,
    KeepColumns,
    NamedRows,
    ReorderColumns,
    Sample,
    Serialized,
    TakeSome,
)

Node = Any  # Any: ANTLR's trees have no types
Lowered = ir.Operator | list[ir.Operator] | None
_NO_PATTERN = "a pattern begins with a text or *, and has a text between any two columns"


def operator(node: Node, librarys: Callable[[Node], Lowered]) -> Lowered:
    """An operator of the pipeline."""
    inner = _inner(node)
    kind = lower._cls(inner)
    read = _READERS.get(kind)
    if read is not None:
        return read(inner)
    if kind in ("SummarizeOperator", "ProjectOperator", "ExtendOperator"):
        _refuse_tuples(inner)
    try:
        return _put_right(librarys(node))
    except KqlUnsupportedError as error:
        if error.construct == "parse" and error.span is not None:
            raise KqlUnsupportedError("parse", error.span, _NO_PATTERN) from None
        raise _by_its_own_name(inner, kind, error) from None


def sort_key(node: Node) -> ir.SortKey:
    """A key of an order, by the words after its expression; the library looks for them in its names, too."""
    of, ordering = lower._rule_children(lower._collapse(node))
    words = [leaf.getText().lower() for leaf in ordering.children or ()]
    ascending = any(word.endswith("asc") for word in words)
    nulls_first = "first" in words if "nulls" in words else None
    return ir.SortKey(lower._lower_expr(of), ascending=ascending, nulls_first=nulls_first)


def join_keys(node: Node) -> tuple[ir.JoinKey, ...]:
    """What stands after `on`, up to a comma: columns, or equations of both sides, with `and` between them."""
    inner = lower._collapse(node)
    if lower._cls(inner) == "LogicalAndExpression":
        first, *others = lower._rule_children(inner)
        parts = [first, *(lower._rule_children(other)[0] for other in others)]
        return tuple(key for part in parts for key in join_keys(part))
    if lower._cls(inner) == "EqualityExpression":
        left, equals = lower._rule_children(inner)
        right = lower._rule_children(equals)[0]
        of_left, of_right = _of_side(left, "$left"), _of_side(right, "$right")
        if equals.children[0].getText() == "==" and of_left and of_right:
            return (ir.JoinKey(of_left, of_right),)
    elif isinstance(column := lower._lower_expr(node), ir.ColumnRef):
        return (ir.JoinKey(column.name, column.name),)
    hint = "a key is a column of both sides, or $left.<column> == $right.<column>"
    raise KqlUnsupportedError("join key", lower._span(node), hint)


def _of_side(node: Node, side: str) -> str | None:
    """The column in `$left.x`."""
    inner = lower._collapse(node)
    if lower._cls(inner) != "FunctionCallOrPathPathExpression":
        return None
    word, *path = inner.children
    names = lower._find_names(path[0])
    return names[0] if len(path) == len(names) == 1 and word.getText().lower() == side else None


def _put_right(found: Lowered) -> Lowered:
    """What the library made of a node, with the keys of `join_keys` one by one, and columns in order."""
    if isinstance(found, ir.Join | ir.Lookup):
        given: Any = found.keys  # Any: tuples of them, since the library asks for one at a time
        return dataclasses.replace(found, keys=tuple(key for keys in given for key in keys))
    if isinstance(found, list) and isinstance(found[0], ir.Extend) and isinstance(found[-1], ir.MvExpand):
        return expansion.lowered(found[0], found[-1])
    return found


def source(node: Node, librarys: Callable[[Node], ir.Source]) -> ir.Source:
    """What a pipeline begins with."""
    try:
        return librarys(node)
    except KqlUnsupportedError as error:
        inner = lower._collapse(node)
        raise _by_its_own_name(inner, f"source:{lower._cls(inner)}", error) from None


def _by_its_own_name(node: Node, kind: str, error: KqlUnsupportedError) -> KqlUnsupportedError:
    """An error that says the word of the query, where the library's says its own for it."""
    if error.construct != kind:
        return error
    word = re.split(r"[\s(]", source_text(node))[0]
    name = f"function:{word}" if kind.endswith("FunctionCallExpression") else word
    return KqlUnsupportedError(name, lower._span(node), error.hint)


def call(node: Node, is_known: Callable[[str], bool], librarys: Callable[[Node], ir.Expr]) -> ir.Expr:
    """A call of a function; of one that nobody has, a refusal."""
    kids = lower._rule_children(node)
    if kids and lower._cls(node) == "CountExpression":
        hint = "it takes no argument; countif(isnotnull(x)) counts what is not null"
        raise KqlUnsupportedError("function:count", span=lower._span(node), hint=hint)
    name = kids[0].getText() if kids else node.getText().rstrip("()")
    if not is_known(name):
        raise KqlUnsupportedError(f"function:{name}", span=lower._span(node), hint=_no_function(name))
    arguments = kids[1:]
    typed = lower._collapse(arguments[-1]) if arguments else None
    if typed is not None and lower._cls(typed) == "TypeLiteralExpression":
        return _typed_call(node, name, arguments[:-1], typed)
    if any(lower._find_all(argument, "NamedExpressionNameClause") for argument in arguments):
        return _named_call(node, name, arguments)
    return librarys(node)


def _no_function(name: str) -> str:
    known = [*SCALAR_FUNCTIONS, *AGGREGATE_FUNCTIONS, *windows.NAMES]
    close = get_close_matches(name.lower(), [one for one in known if " " not in one], 1, 0.75)
    return "there is none of this name here" + (f"; did you mean {close[0]}?" if close else "")


def _typed_call(node: Node, name: str, arguments: list[Node], typed: Node) -> ir.Expr:
    """`extract(…, typeof(long))`: what is found, converted."""
    kind = typed.getText().removeprefix("typeof(").removesuffix(")").lower()
    if name.lower() not in ("extract", "extract_json", "extractjson") or kind not in _CONVERSIONS:
        raise KqlUnsupportedError(f"function:{name}", span=lower._span(node), hint="with typeof()")
    found = ir.FunctionCall(name, tuple(lower._lower_expr(argument) for argument in arguments))
    return found if kind == "string" else ir.FunctionCall(_CONVERSIONS[kind], (found,))


def _named_call(node: Node, name: str, arguments: list[Node]) -> ir.Expr:
    """Arguments under names, which a function of `let` may be given in any order."""
    declared = lower._LET_FUNCTIONS_STATE.get().get(name)
    if declared is None or declared.body is None:
        raise KqlUnsupportedError(f"function:{name}", span=lower._span(node), hint="with a named argument")
    parameters = [parameter for parameter, _ in declared.parameters]
    given: dict[str, ir.Expr] = {}
    free = list(parameters)
    for argument in arguments:
        named = lower._lower_named(argument)
        parameter = named.name or (free[0] if free else "")
        if parameter not in free:
            raise KqlUnsupportedError(
                f"function:{name}", span=lower._span(node), hint=f"has no parameter {parameter}"
            )
        free.remove(parameter)
        given[parameter] = named.expr
    defaults = {parameter: default for parameter, default in declared.parameters if default is not None}
    values = {**defaults, **given}
    missing = [parameter for parameter in parameters if parameter not in values]
    if missing:
        raise KqlUnsupportedError(f"function:{name}", span=lower._span(node), hint=f"lacks {missing[0]}")
    body: ir.Expr = lower._substitute(declared.body, values)
    return body


def source_text(node: Node) -> str:
    """What stands in the query where a node was read."""
    text: str = node.start.getInputStream().getText(node.start.start, node.stop.stop)
    return text


def _inner(node: Node) -> Node:
    while lower._cls(node) in ("PipedOperator", "AfterPipeOperator"):
        rules = lower._rule_children(node)
        if not rules:
            break
        node = rules[0]
    return lower._collapse(node)


def _names_with_stars(node: Node) -> list[str]:
    return [_name_or_pattern(kid) for kid in lower._rule_children(node)]


def _name_or_pattern(node: Node) -> str:
    text = source_text(node).strip()
    if "*" in text and not text.startswith("["):
        return text
    names = lower._find_names(node)
    return names[0] if names else text


def _keep(node: Node) -> Lowered:
    return KeepColumns(tuple(_names_with_stars(node)))


def _away(node: Node) -> Lowered:
    return KeepColumns(tuple(_names_with_stars(node)), is_away=True)


def _reorder(node: Node) -> Lowered:
    patterns = []
    for kid in lower._rule_children(node):
        found = re.fullmatch(
            r"(.*?)\s+(asc|desc|granny-asc|granny-desc)", source_text(kid).strip(), re.DOTALL
        )
        if found:
            inside = lower._rule_children(kid)
            patterns.append((_name_or_pattern(inside[0] if inside else kid), found[2]))
        else:
            patterns.append((_name_or_pattern(kid), None))
    return ReorderColumns(tuple(patterns))


def _serialize(node: Node) -> Lowered:
    named = tuple(lower._lower_named(kid) for kid in lower._rule_children(node))
    return [Serialized(), ir.Extend(named)] if named else Serialized()


def _take(node: Node) -> Lowered:
    count = lower._lower_expr(lower._rule_children(node)[-1])
    if isinstance(count, ir.Literal) and type(count.value) is int and count.value >= 0:
        return ir.Take(count.value)
    if isinstance(count, ir.Literal | ir.UnaryOp):
        span = lower._span(lower._rule_children(node)[-1])
        word = re.split(r"\s", source_text(node))[0]
        raise KqlUnsupportedError(word, span=span, hint="of anything but a whole number from 0 on")
    return TakeSome(count)


def _top(node: Node) -> Lowered:
    kids = lower._rule_children(node)
    count = lower._lower_expr(kids[0])
    if isinstance(count, ir.Literal) and (type(count.value) is not int or count.value < 0):
        hint = "of anything but a whole number from 0 on"
        raise KqlUnsupportedError("top", span=lower._span(kids[0]), hint=hint)
    if isinstance(count, ir.Literal) or len(kids) != 2:
        return _LIBRARYS(node)
    return [ir.Sort((sort_key(kids[1]),)), TakeSome(count)]


def _distinct(node: Node) -> Lowered:
    if any(lower._cls(kid) == "DistinctOperatorStarTarget" for kid in lower._rule_children(node)):
        return DistinctRows()
    return _LIBRARYS(node)


def _sample(node: Node) -> Lowered:
    return Sample(lower._lower_expr(lower._rule_children(node)[-1]))


def _sample_distinct(node: Node) -> Lowered:
    count, of = lower._rule_children(node)[-2:]
    return Sample(lower._lower_expr(count), lower._lower_named(of))


def _refuse_tuples(node: Node) -> None:
    """Several names before one expression: the library reads the first of them only."""
    for found in lower._find_all(node, "NamedExpressionNameList"):
        raise KqlUnsupportedError(
            "(names) = expression", span=lower._span(found), hint="name the columns one by one"
        )


def refuse_taken_names(op: ir.ProjectRename, cols: list[str]) -> None:
    """A column under the name of another: Kusto's documentation does not say what becomes of that one."""
    taken = set(cols) - {old for old, _ in op.renames}
    for _, new in op.renames:
        if new in taken:
            raise KqlUnsupportedError("project-rename", hint=f"there is a column {new!r} already")
        taken.add(new)


def _as(node: Node) -> Lowered:
    name = _name_or_pattern(lower._rule_children(node)[-1])
    if f"as {name}" == SERIALIZED:
        return Serialized()
    return NamedRows(name)


_LIBRARYS = lower._lower_operator
_CONVERSIONS = {
    "string": "tostring",
    "long": "tolong",
    "int": "toint",
    "real": "toreal",
    "double": "toreal",
    "datetime": "todatetime",
    "timespan": "totimespan",
    "bool": "tobool",
    "guid": "toguid",
    "dynamic": "todynamic",
}
_READERS: dict[str, Callable[[Node], Lowered]] = {
    "ProjectKeepOperator": _keep,
    "ProjectAwayOperator": _away,
    "ProjectReorderOperator": _reorder,
    "SerializeOperator": _serialize,
    "TakeOperator": _take,
    "TopOperator": _top,
    "AsOperator": _as,
    "DistinctOperator": _distinct,
    "SampleOperator": _sample,
    "SampleDistinctOperator": _sample_distinct,
    "SearchOperator": search.piped,
    "MakeSeriesOperator": lambda node: make_series.read(node, source_text),
}
# As KQL spells those of them that the library does not read at all.
OPERATORS_READ = frozenset(
    {
        "project-keep",
        "project-reorder",
        "serialize",
        "as",
        "distinct *",
        "sample",
        "sample-distinct",
        "search",
    }
    | {"make-series"}
)
