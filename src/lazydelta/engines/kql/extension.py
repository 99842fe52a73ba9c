"""The translation library with what is ours in its tables and before its functions, while we translate.

Why: what the library lacks stands where the library looks, so that it composes with everything else
there; outside of our translations the library is as it was. Contract: one translation at a time; nothing
is left behind.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from duckdb_kql import ir, lower, schema, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import functions as tables
from duckdb_kql.translate import regexfrag

from lazydelta.engines.kql import (
    added,
    decimals,
    dynamics,
    expansion,
    literals,
    lowering,
    mends,
    operators,
    regexes,
    search,
    special_values,
    summaries,
    tables_joined,
    windows,
)
from lazydelta.engines.kql.kinds import TypedAggregate, kind_of
from lazydelta.engines.kql.places import Places
from lazydelta.engines.kql.tokens import string_value
from lazydelta.engines.kql.trees import with_parts

_one_at_a_time = threading.RLock()
_librarys_lower_operator = lower._lower_operator
_librarys_lower_call = lower._lower_function_call
_librarys_lower_head = lower._lower_head
_librarys_lower_expr = lower._lower_expr
_librarys_lower_source = lower._lower_source
_librarys_substitute = lower._substitute_operator
_librarys_render = translate.render_operator
_librarys_columns = schema._operator_columns_unchecked
_librarys_join = translate.render_join
_librarys_lookup = translate.render_lookup
_librarys_union = translate.render_union
_librarys_branch_arms = translate._branch_arms
_librarys_left_arms = translate._left_arms
_librarys_timespans = translate._TIMESPAN_RETURNING
_librarys_datetimes = translate._DATETIME_RETURNING
_librarys_texts = translate._STRING_RETURNING
_librarys_forms = dict(translate._SPECIAL_FORMS)
_librarys_lift = translate._lift_aggregates
_librarys_literal = translate.render_literal
_librarys_neutralise = regexfrag.neutralise_groups
# The library's own questions about types, and the types that answer them.
_librarys_questions = {
    "_is_timespan_expr": ("timespan",),
    "_is_datetime_expr": ("datetime",),
    "_is_real_expr": ("real", "decimal"),
    "_is_int_expr": ("int",),
    "_is_string_expr": ("string",),
    "_is_dynamic": ("dynamic",),
    "_is_dynamic_expr": ("dynamic",),
}
_places = Places()


@contextmanager
def extended() -> Iterator[Places]:
    """While it lasts, the library knows what is ours; places are those of the tree that is read."""
    with _one_at_a_time, ExitStack() as undo:
        places = Places()
        undo.enter_context(_in_place_of(sys.modules[__name__], "_places", places))
        for table, rows in (
            (tables.SCALAR_FUNCTIONS, {**added.functions(), **mends.functions()}),
            (
                tables.AGGREGATE_FUNCTIONS,
                {
                    **added.aggregates(),
                    **mends.aggregates(),
                    **summaries.aggregates(),
                    **special_values.aggregates(),
                },
            ),
            (translate.TYPE_MAP, decimals.TYPES),
            (tables.BINARY_OPERATORS, {**mends.operators(), **special_values.operators()}),
            (
                translate._SPECIAL_FORMS,
                _before_the_librarys({**added.special_forms(), **mends.special_forms()}),
            ),
        ):
            undo.enter_context(_with_rows(table, rows))
        for module, name, ours in (
            (lower, "_lower_operator", _lower_operator),
            (lower, "_lower_function_call", _lower_call),
            (lower, "_lower_source", _lower_source),
            (lower, "_lower_head", _lower_head),
            (lower, "_lower_expr", _lower_expr),
            (lower, "_lower_sort_key", lowering.sort_key),
            (lower, "_lower_join_key", lowering.join_keys),
            (lower, "_substitute_operator", _substitute),
            (lower, "_string_value", string_value),
            (translate, "_TIMESPAN_RETURNING", _librarys_timespans | mends.TIMESPAN_RETURNING),
            (translate, "_DATETIME_RETURNING", _librarys_datetimes | mends.DATETIME_RETURNING),
            (translate, "_STRING_RETURNING", _librarys_texts | mends.STRING_RETURNING),
            (translate, "render_operator", _render),
            (translate, "render_join", _render_join),
            (translate, "render_lookup", _render_lookup),
            (translate, "render_union", _render_union),
            (translate, "_branch_arms", _branch_arms),
            (translate, "_left_arms", _left_arms),
            (schema, "_operator_columns_unchecked", _columns),
            (translate, "_lift_aggregates", _lift_aggregates),
            (translate, "_render_arg_max", special_values.arg_extremes),
            (translate, "render_literal", _literal),
            (translate, "render_path", dynamics.member),
            (translate, "_dynamic_element", dynamics.element),
            (translate, "_mv_expand_elements", expansion.elements),
            (translate, "_mv_expand_convert", expansion.converted),
            (translate, "_may_be_dynamic", _may_be_dynamic),
            (translate, "neutralise_groups", _neutralised),
            *((translate, name, _answer(name, kinds)) for name, kinds in _librarys_questions.items()),
        ):
            undo.enter_context(_in_place_of(module, name, ours))
        yield places


@contextmanager
def _with_rows(table: MutableMapping[str, Any], rows: dict[str, Any]) -> Iterator[None]:
    before = dict(table)
    table.update(rows)
    try:
        yield
    finally:
        table.clear()
        table.update(before)


@contextmanager
def _in_place_of(module: ModuleType, name: str, ours: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, ours)
    try:
        yield
    finally:
        setattr(module, name, before)


def _lower_operator(node: Any) -> Any:  # Any: ANTLR's trees have no types
    return lowering.operator(node, _librarys_lower_operator)


def _lower_head(head: Any, rest: list[Any]) -> ir.Query:
    inner = lower._collapse(head)
    if search.is_search(inner):
        return search.leading(inner, lower._lower_operators(rest))
    return _librarys_lower_head(head, rest)


def _lower_expr(node: Any) -> ir.Expr:
    found = _read_expr(node)
    _places.note(found, node)
    return found


def _read_expr(node: Any) -> ir.Expr:
    inner = lower._collapse(node)
    kind = lower._cls(inner)
    if kind == "StringStarOperatorExpression":
        return search.star(inner)
    if kind == "StringBinaryOperatorExpression" and (found := search.colon(inner)) is not None:
        return found
    return literals.read(inner) or _librarys_lower_expr(node)


def _literal(node: ir.Literal) -> str:
    return decimals.rendered(node) if node.kind == "decimal" else _librarys_literal(node)


def _answer(name: str, kinds: tuple[str, ...]) -> Callable[[ir.Expr], bool]:
    librarys = getattr(translate, name)

    def answer(node: ir.Expr) -> bool:
        kind = kind_of(node)
        return kind in kinds if kind is not None else bool(librarys(node))

    return answer


def _neutralised(fragment: str) -> str:
    made: str = _librarys_neutralise(regexes.of_parse(fragment))
    return made


def _may_be_dynamic(node: ir.Expr) -> bool:
    return isinstance(node, ir.ColumnRef) and kind_of(node) != "string"


def _lift_aggregates(expr: ir.Expr, *, depth: int = 0) -> tuple[ir.Expr, int]:
    lifted, count = _librarys_lift(expr, depth=depth)
    kind = kind_of(expr)
    if isinstance(lifted, ir.RenderedAggregate) and kind is not None:
        return TypedAggregate(lifted.sql, kind), count
    return lifted, count


def _lower_source(node: Any) -> ir.Source:
    return lowering.source(node, _librarys_lower_source)


def _lower_call(node: Any) -> ir.Expr:
    return lowering.call(node, _is_known, _librarys_lower_call)


def _is_known(name: str) -> bool:
    declared = lower._LET_FUNCTIONS_STATE.get()
    return (
        name in declared
        or name.lower() in windows.NAMES
        or lower._is_builtin(name.lower())
        or lower._stored(name, None) is not None
    )


def _substitute(op: ir.Operator, scalars: Any) -> ir.Operator:
    """Names bound by `let` inside operators that the library passes by."""
    if isinstance(op, operators.AddedOperator | ir.Top):
        changed: ir.Operator = with_parts(op, lambda part: _substituted(part, scalars))
        return changed
    return _librarys_substitute(op, scalars)


def _substituted(part: Any, scalars: Any) -> Any:
    if isinstance(part, ir.Expr | ir.NamedExpr | ir.SortKey):
        return lower._substitute(part, scalars)
    if isinstance(part, ir.Query):
        return lower._substitute_query(part, scalars)
    return with_parts(part, lambda inner: _substituted(inner, scalars)) if isinstance(part, tuple) else part


def _before_the_librarys(forms: dict[str, added.Special]) -> dict[str, added.Special]:
    """Ours first; what ours leaves alone, the library's."""

    def both(name: str) -> added.Special:
        candidates = [form for form in (forms.get(name), _librarys_forms.get(name)) if form is not None]

        def written(node: ir.FunctionCall) -> str | None:
            try:
                return next(filter(None, (form(node) for form in candidates)), None)
            except KqlUnsupportedError as error:
                if error.span is not None or not error.construct.startswith(f"{name}:"):
                    raise
                raise KqlUnsupportedError(f"function:{node.name}", hint=error.hint) from None

        return written

    return {name: both(name) for name in {**_librarys_forms, **forms}}


def _render(op: ir.Operator, prev: str, cols: list[str] | None = None) -> str:
    if isinstance(op, operators.AddedOperator):
        return operators.rendered(op, prev, cols)
    op = _with_columns(op, cols)
    if isinstance(op, ir.Summarize):
        return _render_summarize(op, prev, cols)
    if windows.is_windowed(op):
        return windows.rendered(op, prev, cols, _librarys_render)
    return _librarys_render(op, prev, cols)


def _columns(op: ir.Operator, cols: list[str], known: Any) -> list[str]:
    if isinstance(op, operators.AddedOperator):
        return operators.columns(op, cols)
    cols = _shown(cols) or []
    return _librarys_columns(_with_columns(op, cols), cols, known)


def _render_summarize(op: ir.Summarize, prev: str, cols: list[str] | None) -> str:
    is_numbered = operators.ROW_COLUMN in (cols or ())
    sql = _librarys_render(op, prev, _shown(cols))
    order = f" ORDER BY {translate.quote_ident(operators.ROW_COLUMN)}" if is_numbered else ""
    return sql.replace(added.IN_ORDER, order)


def _shown(cols: list[str] | None) -> list[str] | None:
    """Without the numbers of rows, which are nobody's column."""
    return None if cols is None else [name for name in cols if name != operators.ROW_COLUMN]


def _with_columns(op: ir.Operator, cols: list[str] | None) -> ir.Operator:
    """The operator with what stands for all columns written out."""
    cols = _shown(cols)
    if isinstance(op, ir.ProjectRename) and cols is not None:
        lowering.refuse_taken_names(op, cols)
    op = added.with_all_packed(op, cols)
    op = search.over_columns(op, cols) if cols is not None else op
    return summaries.spread(op, cols) if isinstance(op, ir.Summarize) else op


def _render_join(op: ir.Join, prev: str, left: list[str], right_sql: str, right: list[str]) -> str:
    sql = _librarys_join(op, prev, left, right_sql, right)
    names = tables_joined.apart(schema.join_output_columns(left, right, op.kind), "join")
    return tables_joined.without_null_texts(sql, names, op.kind)


def _render_lookup(op: ir.Lookup, prev: str, left: list[str], right_sql: str, right: list[str]) -> str:
    sql = _librarys_lookup(op, prev, left, right_sql, right)
    names = schema.lookup_output_columns(left, right, [key.right for key in op.keys])
    names = tables_joined.apart(names, "lookup")
    return tables_joined.without_null_texts(sql, names, op.kind)


def _render_union(op: ir.Union, prev: str, cols: list[str], *rest: Any) -> str:
    sql = _librarys_union(op, prev, cols, *rest)
    return tables_joined.checked_union(sql, op, prev, cols, rest[1])


def _branch_arms(branch: ir.Query, *rest: Any) -> list[tuple[str, str]]:
    name = tables_joined.label(branch) or tables_joined.view_label(branch.source)
    return [(sql, name or label) for sql, label in _librarys_branch_arms(branch, *rest)]


def _left_arms(op: ir.Union, prev: str, query: ir.Query, *rest: Any) -> list[tuple[str, str]]:
    before = query.operators[: query.operators.index(op)]
    name = tables_joined.label(ir.Query(query.source, before))
    if not before:
        name = name or tables_joined.view_label(query.source)
    if op.with_source == search.TABLE_COLUMN and isinstance(query.source, ir.TableRef):
        name = name or tables_joined.view_label(query.source) or query.source.name
    return [(sql, name or label) for sql, label in _librarys_left_arms(op, prev, query, *rest)]
