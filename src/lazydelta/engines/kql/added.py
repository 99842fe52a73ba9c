"""Functions that the translation library lacks: which they are, and how a call of one is written.

Why here: the library keeps its functions in tables of rows; while a query of ours is translated, rows of
ours stand beside its own (`library.extended`). Contract: a function gives what Kusto documents, or is not
in these tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import (
    quote_string,
    render_expr,
    render_kql_tostring,
    render_regex,
)
from duckdb_kql.translate.functions import (
    SCALAR_FUNCTIONS,
    AggregateSpec,
    FunctionSpec,
    term_match_sql,
)

from lazydelta import limits
from lazydelta.engines.kql import (
    decimals,
    dynamics,
    macro_arrays,
    macro_ipv4,
    macro_text,
    macro_values,
    memberships,
    times,
)
from lazydelta.engines.kql.kinds import is_timespan, kind_of
from lazydelta.engines.kql.trees import with_parts

MACROS: Mapping[str, tuple[str, ...]] = {
    **macro_arrays.MACROS,
    **macro_text.MACROS,
    **macro_values.MACROS,
    **macro_ipv4.MACROS,
    **decimals.MACROS,
    **dynamics.MACROS,
    **memberships.MACROS,
    **times.MACROS,
    "_present_pairs": (
        "(bag) AS kql__bag(list_filter(kql__pairs(bag), lambda p: json_type(p.value) <> 'NULL' AND p.value "
        "->> '$' <> ''))",
    ),
    "_first_of_each": (
        "(pairs) AS kql__bag(list_filter(pairs, lambda p, i: list_position(list_transform(pairs, lambda q: "
        "q.key), p.key) = i))",
    ),
    "has_any_index": (
        "(s, a) AS CAST(coalesce(list_position(list_transform(kql__texts(a), "
        f"lambda x: {term_match_sql('s', 'x')}), true), 0) - 1 AS BIGINT)",
    ),
}
SERIES_VALUES_MAX = 1_048_576
# Where a list is made, for the order of its rows, if they have one.
IN_ORDER = " /*in order*/"
LISTS = frozenset({"make_list", "makelist", "make_list_if", "make_list_with_nulls"})
_LIST_VALUES_MAX = 1_048_576
# Where they are given no size; Kusto calls them deprecated.
_OLD_SIZES = {"makelist": 128, "makeset": 128}

# Arguments that are texts, whatever is given for them.
_TEXTS: Mapping[str, tuple[int, ...]] = {
    "split": (0, 1),
    "indexof": (0, 1),
    "indexof_regex": (0,),
    "strcmp": (0, 1),
    "string_size": (0,),
    "strrep": (0, 2),
    "regex_quote": (0,),
    "replace_strings": (0,),
    "isascii": (0,),
    "unicode_codepoints_from_string": (0,),
    "url_decode": (0,),
    "url_encode": (0,),
    "url_encode_component": (0,),
    "parse_csv": (0,),
    "parse_version": (0,),
    "parse_urlquery": (0,),
    "has_any_index": (0,),
    "bag_has_key": (1,),
    "bag_set_key": (1,),
    "translate": (0, 1, 2),
    "has_ipv4": (0, 1),
    "has_ipv4_prefix": (0, 1),
    **{name: (0,) for name in macro_ipv4.MACROS if name.startswith(("ipv4", "parse", "format"))},
    **dict.fromkeys(("ipv4_compare", "ipv4_is_match", "ipv4_is_in_range"), (0, 1)),
}
_REGEXES: Mapping[str, int] = {"indexof_regex": 1}
# Of two arguments or more, the later ones put in one after the other.
_FOLDED = ("bag_merge", "set_union", "set_intersect", "set_difference")
# The library's own form of a call stays for these numbers of arguments.
_LIBRARYS_ARITIES: Mapping[str, tuple[int, ...]] = {
    "split": (2,),
}

Special = Callable[[ir.FunctionCall], str | None]


def macro_call(node: ir.FunctionCall) -> str:
    """A call of a function as one of its macro."""
    name = node.name.lower()
    arities = sorted(len(_parameters(overload)) for overload in MACROS[name])
    if name in _FOLDED and len(node.args) > 2:
        first = ir.FunctionCall(node.name, node.args[:-1])
        return f"kql_{name}({macro_call(first)}, {render_expr(node.args[-1])})"
    if len(node.args) not in arities:
        allowed = " or ".join(map(str, arities))
        raise KqlUnsupportedError(f"function:{node.name}", hint=f"takes {allowed} arguments here")
    return f"kql_{name}({', '.join(_argument(name, at, arg) for at, arg in enumerate(node.args))})"


def aggregates() -> dict[str, AggregateSpec]:
    """Rows for the library's table of aggregates."""
    rows = [
        AggregateSpec("stdevp", "coalesce(stddev_pop({0}), 0.0)", (1,)),
        AggregateSpec("variancep", "coalesce(var_pop({0}), 0.0)", (1,)),
        AggregateSpec("variancepif", "coalesce(var_pop({0}) FILTER (WHERE {1}), 0.0)", (2,)),
        AggregateSpec("covariance", "coalesce(covar_samp({0}, {1}), 0.0)", (2,)),
        AggregateSpec("covarianceif", "coalesce(covar_samp({0}, {1}) FILTER (WHERE {2}), 0.0)", (3,)),
        AggregateSpec("covariancep", "coalesce(covar_pop({0}, {1}), 0.0)", (2,)),
        AggregateSpec("covariancepif", "coalesce(covar_pop({0}, {1}) FILTER (WHERE {2}), 0.0)", (3,)),
        AggregateSpec("minif", "min({0}) FILTER (WHERE {1})", (2,)),
        AggregateSpec("maxif", "max({0}) FILTER (WHERE {1})", (2,)),
        AggregateSpec("take_anyif", "any_value({0}) FILTER (WHERE {1})", (2,), name_is_argument=True),
        AggregateSpec("anyif", "any_value({0}) FILTER (WHERE {1})", (2,), name_is_argument=True),
        AggregateSpec("count_distinct", "count(DISTINCT {0})", (1,)),
        AggregateSpec("count_distinctif", "count(DISTINCT {0}) FILTER (WHERE {1})", (2,)),
        AggregateSpec("binary_all_and", "bit_and(CAST({0} AS BIGINT))", (1,), name_is_argument=True),
        AggregateSpec("binary_all_or", "bit_or(CAST({0} AS BIGINT))", (1,), name_is_argument=True),
        AggregateSpec("binary_all_xor", "bit_xor(CAST({0} AS BIGINT))", (1,), name_is_argument=True),
        *_lists(),
        *_sets(),
        *_bags(),
    ]
    return {row.name: row for row in rows}


def _lists() -> list[AggregateSpec]:
    # A list is cut at its size, and keeps no nulls unless it is asked to.
    kept = f"list(kql__element({{0}}){IN_ORDER}) FILTER (WHERE {{0}} IS NOT NULL"
    size = f"[1 : least(CAST({{size}} AS BIGINT), {_LIST_VALUES_MAX})]"
    cut = "to_json(coalesce(({kept}))" + size + ", CAST([] AS JSON[])))"
    return [
        _Sized("make_list", cut.replace("{kept}", kept), 1, name_prefix="list"),
        _Sized("makelist", cut.replace("{kept}", kept), 1, name_prefix="list"),
        _Sized("make_list_if", cut.replace("{kept}", kept + " AND ({1})"), 2, name_prefix="list"),
        AggregateSpec(
            "make_list_with_nulls",
            f"to_json(coalesce((list(kql__element({{0}}){IN_ORDER}))[1 : {_LIST_VALUES_MAX}], "
            "CAST([] AS JSON[])))",
            (1,),
            name_prefix="list",
        ),
    ]


def _sets() -> list[AggregateSpec]:
    # Arrays in it are united, as the library does; the values of large sets come in any order.
    kept = (
        "to_json((kql__distinct(coalesce(flatten(list(CASE WHEN json_type(to_json({0})) = 'ARRAY' "
        "THEN json_extract(to_json({0}), '$[*]') ELSE [kql__element({0})] END) FILTER (WHERE {0} IS NOT "
        "NULL{more})), "
        f"CAST([] AS JSON[]))))[1 : least(CAST({{size}} AS BIGINT), {_LIST_VALUES_MAX})])"
    )
    return [
        _Sized("make_set", kept.replace("{more}", ""), 1, name_prefix="set"),
        _Sized("makeset", kept.replace("{more}", ""), 1, name_prefix="set"),
        _Sized("make_set_if", kept.replace("{more}", " AND ({1})"), 2, name_prefix="set"),
    ]


def _bags() -> list[AggregateSpec]:
    # Of several values for a key Kusto keeps any; here the first.
    kept = (
        "kql__first_of_each(coalesce(flatten(list(kql__pairs({0})) "
        "FILTER (WHERE json_type(to_json({0})) = 'OBJECT'{more})), []))"
    )
    return [
        _Sized("make_bag", kept.replace("{more}", ""), 1, name_prefix="bag"),
        _Sized("make_bag_if", kept.replace("{more}", " AND ({1})"), 2, name_prefix="bag"),
    ]


class _Sized(AggregateSpec):
    """An aggregate whose last argument, when it is there, is the largest size."""

    def __init__(self, name: str, template: str, arity: int, name_prefix: str) -> None:
        super().__init__(name, template, (arity, arity + 1), name_prefix=name_prefix)

    def render(self, args: list[str]) -> str:
        least = self.arities[0]
        if len(args) not in self.arities:
            raise ValueError(f"{self.name}() takes {least} or {least + 1} arguments, got {len(args)}")
        size = args[least] if len(args) > least else str(_OLD_SIZES.get(self.name, _LIST_VALUES_MAX))
        return self.template.replace("{size}", size).format(*args)


def functions() -> dict[str, FunctionSpec]:
    """Rows for the library's table of functions, which also tell it what is one."""
    names = [name for name in (*MACROS, *_special_forms()) if not name.startswith("_")]
    rows = {name: FunctionSpec(name, "template", f"kql_{name}({{}})") for name in names}
    return {name: row for name, row in rows.items() if name not in SCALAR_FUNCTIONS}


def special_forms() -> dict[str, Special]:
    """How calls are written; a form that answers None leaves the call to the library."""
    made: dict[str, Special] = {}
    for name in MACROS:
        if not name.startswith("_"):
            made[name] = _unless_the_librarys(name)
    return {**made, **_special_forms()}


def _special_forms() -> dict[str, Special]:
    return {
        "range": _range,
        "strrep": _strrep,
        "bin_at": _bin_at,
        "format_timespan": _format_timespan,
        "array_sort_asc": _sorted,
        "array_sort_desc": _sorted,
        "bag_pack_columns": _bag_of_columns,
        "bag_pack_present_columns": _bag_of_columns,
        "pack_all": _refused("pack_all"),
        "unicode_codepoints_to_string": _of_codepoints,
        "ipv4_is_in_any_range": _any_of("_in_any_range"),
        "has_any_ipv4": _any_of("_has_any_ip"),
        "has_any_ipv4_prefix": _any_of("_has_any_ip_prefix"),
        "make_datetime": times.make_datetime,
        "make_timespan": times.make_timespan,
        "datetime_part": times.datetime_part,
        "datetime_diff": times.datetime_diff,
        "format_datetime": times.format_datetime,
        "todatetime": times.to_datetime,
        "parse_json": dynamics.parsed,
        "todynamic": dynamics.parsed,
        "parsejson": dynamics.parsed,
        "toobject": dynamics.parsed,
        "extract_json": _extract_json,
        "extractjson": _extract_json,
        "todecimal": decimals.converted,
    }


def _unless_the_librarys(name: str) -> Special:
    def written(node: ir.FunctionCall) -> str | None:
        return None if len(node.args) in _LIBRARYS_ARITIES.get(name, ()) else macro_call(node)

    return written


def _argument(name: str, at: int, node: ir.Expr) -> str:
    if _REGEXES.get(name) == at:
        return render_regex(node)
    if at in _TEXTS.get(name, ()) and not (isinstance(node, ir.Literal) and node.kind == "string"):
        return render_kql_tostring(node)
    return render_expr(node)


def _parameters(overload: str) -> list[str]:
    inside = overload[1 : overload.index(")")]
    return [part for part in inside.split(",") if part.strip()]


def _refused(name: str) -> Special:
    def refuse(_: ir.FunctionCall) -> str:
        raise KqlUnsupportedError(f"function:{name}")

    return refuse


def _range(node: ir.FunctionCall) -> str:
    """`range(start, stop[, step])` as an array, cut as Kusto cuts it."""
    if len(node.args) not in (2, 3):
        raise KqlUnsupportedError("function:range", hint="takes 2 or 3 arguments")
    start, stop = node.args[:2]
    is_timed = any(kind_of(arg) in ("timespan", "datetime") for arg in node.args)
    default = ir.Literal("1h", "timespan") if is_timed else ir.Literal(1, "long")
    step = node.args[2] if len(node.args) == 3 else default
    first, last, by = (render_expr(arg) for arg in (start, stop, step))
    if is_timed:
        steps = f"CAST(floor((epoch_us({last}) - epoch_us({first})) / epoch_us({by})) AS BIGINT)"
    else:
        steps = f"CAST(floor(CAST({last} - {first} AS DOUBLE) / {by}) AS BIGINT)"
    last_step = f"least({steps}, {SERIES_VALUES_MAX - 1})"
    if not all(_is_constant(arg) for arg in node.args):
        most = limits.KQL_ROW_ARRAY_MAX
        told = f"error('range gives more than {most:,} values in a row')"
        last_step = f"CASE WHEN {steps} >= {most} THEN {told} ELSE {steps} END"
    counted = f"generate_series(0, {last_step})"
    return f"to_json(list_transform({counted}, lambda _n: kql__element({first} + _n * {by})))"


def _strrep(node: ir.FunctionCall) -> str:
    if len(node.args) == 2 and all(isinstance(arg, ir.Literal) for arg in node.args):  # bounded by its text
        return f"repeat({render_kql_tostring(node.args[0])}, {render_expr(node.args[1])})"
    return macro_call(node)


def _is_constant(node: ir.Expr) -> bool:
    return isinstance(node.operand if isinstance(node, ir.UnaryOp) else node, ir.Literal)


def _bin_at(node: ir.FunctionCall) -> str:
    if len(node.args) != 3:
        raise KqlUnsupportedError("function:bin_at", hint="takes 3 arguments")
    value, size, fixed = node.args
    if is_timespan(size):
        kind = "span" if is_timespan(fixed) else "time"
    else:
        kind = "number" if any(kind_of(arg) in ("real", "decimal") for arg in node.args) else "whole"
    if kind == "whole" and kind_of(value) is None:
        raise KqlUnsupportedError(
            "function:bin_at", hint="of a column with a size that is no timespan or real"
        )
    return f"kql__bin_at_{kind}({', '.join(render_expr(arg) for arg in node.args)})"


def _format_timespan(node: ir.FunctionCall) -> str:
    """Digits of each part, as many as the format has letters for it."""
    if len(node.args) != 2 or not isinstance(node.args[1], ir.Literal):
        raise KqlUnsupportedError("function:format_timespan", hint="takes a timespan and a literal format")
    micros = f"abs(epoch_us({render_expr(node.args[0])}))"
    parts = []
    for found in re.finditer(r"(d+|[Hh]+|m+|s+|f+|F+)|([^dHhmsfF])", str(node.args[1].value)):
        letters, other = found[1], found[2]
        if other is not None:
            parts.append(quote_string(other))
            continue
        parts.append(_timespan_part(letters, micros))
    sign = f"CASE WHEN epoch_us({render_expr(node.args[0])}) < 0 THEN '-' ELSE '' END"
    return f"({' || '.join([sign, *parts])})"


def _timespan_part(letters: str, micros: str) -> str:
    width = len(letters)
    if letters[0] in "fF":
        if width > 7:
            raise KqlUnsupportedError("function:format_timespan", hint=f"{letters} is no part of a format")
        digits = f"substring(lpad(CAST({micros} % 1000000 AS VARCHAR), 6, '0') || '0', 1, {width})"
        return digits if letters[0] == "f" else f"rtrim({digits}, '0')"
    divisor, modulus = {
        "d": (86_400_000_000, None),
        "h": (3_600_000_000, 24),
        "H": (3_600_000_000, 24),
        "m": (60_000_000, 60),
        "s": (1_000_000, 60),
    }[letters[0]]
    if width > (8 if letters[0] == "d" else 2):
        raise KqlUnsupportedError("function:format_timespan", hint=f"{letters} is no part of a format")
    number = f"{micros} // {divisor}" + (f" % {modulus}" if modulus else "")
    text = f"CAST({number} AS VARCHAR)"
    return f"lpad({text}, CAST(greatest({width}, length({text})) AS INTEGER), '0')"


def _sorted(node: ir.FunctionCall) -> str:
    if len(node.args) == 1:
        return macro_call(node)
    if len(node.args) == 2 and isinstance(node.args[1], ir.Literal) and node.args[1].kind == "bool":
        return macro_call(node)
    raise KqlUnsupportedError(f"function:{node.name}", hint="of several arrays gives several columns")


def _bag_of_columns(node: ir.FunctionCall) -> str:
    if not node.args or not all(isinstance(arg, ir.ColumnRef) for arg in node.args):
        raise KqlUnsupportedError("function:bag_pack_columns", hint="takes columns")
    columns = [arg for arg in node.args if isinstance(arg, ir.ColumnRef)]
    bag = packed([(column.name, dynamics.element(column)) for column in columns])
    return bag if node.name.lower() == "bag_pack_columns" else f"kql__present_pairs({bag})"


def with_all_packed(op: ir.Operator, cols: list[str] | None) -> ir.Operator:
    """The operator with `pack_all()` written out as the columns that come in."""

    def written(node: Any) -> Any:  # Any: a node of the tree, or a part of one
        if isinstance(node, ir.Query):
            return node
        inner = with_parts(node, written)
        if not isinstance(inner, ir.FunctionCall) or inner.name.lower() != "pack_all":
            return inner
        if cols is None or len(inner.args) > 1:
            raise KqlUnsupportedError("function:pack_all")
        is_present = bool(inner.args and isinstance(inner.args[0], ir.Literal) and inner.args[0].value)
        name = "bag_pack_present_columns" if is_present else "bag_pack_columns"
        return ir.FunctionCall(name, tuple(map(ir.ColumnRef, cols)))

    changed: ir.Operator = written(op)
    return changed


def packed(named: list[tuple[str, str]]) -> str:
    """A bag of values under names."""
    pairs = ", ".join(f"{{'key': {quote_string(name)}, 'value': {value}}}" for name, value in named)
    return f"kql__bag([{pairs}])"


def _of_codepoints(node: ir.FunctionCall) -> str:
    if not node.args:
        raise KqlUnsupportedError(f"function:{node.name}", hint="takes codepoints or arrays of them")
    lists = " || ".join(f"kql__codepoints({render_expr(arg)})" for arg in node.args)
    return f"kql__of_codepoints({lists})"


def _any_of(macro: str) -> Special:
    """Of one text and any number of others, or arrays of them."""

    def written(node: ir.FunctionCall) -> str:
        if len(node.args) < 2:
            raise KqlUnsupportedError(f"function:{node.name}", hint="takes 2 arguments or more")
        lists = " || ".join(f"kql__texts({render_expr(arg)})" for arg in node.args[1:])
        return f"kql_{macro}({render_kql_tostring(node.args[0])}, {lists})"

    return written


def _extract_json(node: ir.FunctionCall) -> str:
    if len(node.args) not in (2, 3):
        raise KqlUnsupportedError(f"function:{node.name}", hint="takes a path, a text and a type")
    path, text = node.args[:2]
    if not isinstance(path, ir.Literal) or not str(path.value).startswith("$"):
        raise KqlUnsupportedError(f"function:{node.name}", hint="takes a literal path")
    parsed = f"TRY_CAST({render_kql_tostring(text)} AS JSON)"
    return f"coalesce(json_extract_string({parsed}, {render_expr(path)}), '')"
