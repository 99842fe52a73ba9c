"""Rows of the library's tables that give something else than Kusto documents, in their right form."""

from __future__ import annotations

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import _numeric_bin, render_expr, render_kql_tostring
from duckdb_kql.translate.functions import AggregateSpec, BinarySpec, FunctionSpec, long_or_wider

from lazydelta.engines.kql import dynamics, memberships
from lazydelta.engines.kql.added import Special
from lazydelta.engines.kql.kinds import is_timespan, kind_of
from lazydelta.engines.kql.regexes import ASCII_WORDS
from lazydelta.engines.kql.special_values import UNLESS_NAN, unless_nan

_INTEGER_PARTS = {
    "getyear": "year",
    "getmonth": "month",
    "monthofyear": "month",
    "dayofmonth": "day",
    "dayofyear": "dayofyear",
    "hourofday": "hour",
    "weekofyear": "weekofyear",
    "week_of_year": "weekofyear",
}
# What calls give, for the library's own question whether two things are of one kind.
TIMESPAN_RETURNING = frozenset({"make_timespan"})
DATETIME_RETURNING = frozenset(
    {"make_datetime", "datetime_add", "endofweek", "datetime_local_to_utc", "datetime_utc_to_local"}
    | {f"unixtime_{unit}_todatetime" for unit in ("seconds", "milliseconds", "microseconds", "nanoseconds")}
)
STRING_RETURNING = frozenset(
    {"extract", "extract_json", "replace_regex", "replace_strings", "replace", "url_decode", "url_encode"}
    | {"url_encode_component", "base64_encode_tostring", "base64_decode_tostring", "tohex", "format_bytes"}
    | {
        "format_ipv4",
        "format_ipv4_mask",
        "regex_quote",
        "translate",
        "gettype",
        "hash_md5",
        "hash_sha1",
        "hash_sha256",
    }
)

_YEAR_ONE_US = -62_135_596_800_000_000


def operators() -> dict[str, BinarySpec]:
    """A real divided by zero is infinite, whatever it is a column of or a number."""
    quotient = "{0} // NULLIF({1}, 0)"
    is_real = f"{{1}} = 0 AND typeof({quotient}) = 'DOUBLE' AND"
    return {
        "/": BinarySpec(
            "/",
            f"(CASE WHEN {is_real} {{0}} > 0 THEN 'Infinity' WHEN {is_real} {{0}} < 0 THEN '-Infinity' "
            f"WHEN {is_real} {{0}} IS NOT NULL THEN 'NaN' ELSE {quotient} END)",
        )
    }


def functions() -> dict[str, FunctionSpec]:
    """Scalar functions."""
    rows = [
        *(
            FunctionSpec(name, "template", f"CAST({part}({{0}}) AS INTEGER)", (1,))
            for name, part in _INTEGER_PARTS.items()
        ),
        *(
            FunctionSpec(
                name, "template", f"CASE WHEN {{0}} >= 0 OR isnan({{0}}) THEN {native}({{0}}) END", (1,)
            )
            for name, native in (("log", "ln"), ("log10", "log10"), ("log2", "log2"), ("sqrt", "sqrt"))
        ),
        *(
            FunctionSpec(name, "template", "coalesce(TRY(decode(from_base64({0}))), '')", (1,))
            for name in ("base64_decode_tostring", "base64_decodestring")
        ),
        *(
            FunctionSpec(name, "template", "to_base64(encode({0}))", (1,))
            for name in ("base64_encode_tostring", "base64_encodestring")
        ),
        # Its simple mapping in Unicode, which DuckDB has otherwise: there is no capital for ß.
        FunctionSpec(
            "toupper",
            "native",
            "array_to_string(list_transform(str_split({0}, 'ß'), lambda part: upper(part)), 'ß')",
            (1,),
            ("R17",),
        ),
    ]
    rows += [FunctionSpec(name, "template", "") for name in special_forms() if " " in name]
    return {row.name: row for row in rows}


def aggregates() -> dict[str, AggregateSpec]:
    """A text is never null; an average may be one of timespans."""
    rows = [
        AggregateSpec(name, f"kql__text_or({template})", arities, name_is_argument=name.startswith("take"))
        for name, template, arities in (
            ("min", "min({0})", (1,)),
            ("max", "max({0})", (1,)),
            ("minif", "min({0}) FILTER (WHERE {1})", (2,)),
            ("maxif", "max({0}) FILTER (WHERE {1})", (2,)),
            ("any", "any_value({0})", (1,)),
            ("take_any", "any_value({0})", (1,)),
            ("anyif", "any_value({0}) FILTER (WHERE {1})", (2,)),
            ("take_anyif", "any_value({0}) FILTER (WHERE {1})", (2,)),
        )
    ]
    rows += [
        AggregateSpec("countif", "count(*) FILTER (WHERE {0})", (1,)),
        AggregateSpec("avg", "coalesce(avg({0}), 'NaN')", (1,)),
        AggregateSpec("avgif", "coalesce(avg({0}) FILTER (WHERE {1}), 'NaN')", (2,)),
        AggregateSpec("datetime avg", "avg({0})", (1,), name_prefix="avg"),
        AggregateSpec("datetime avgif", "avg({0}) FILTER (WHERE {1})", (2,), name_prefix="avgif"),
        *_of_timespans("sum", "coalesce(sum(epoch_us({0})){1}, 0)"),
        # DuckDB's own average of intervals is off by microseconds.
        *_of_timespans("avg", "sum(epoch_us({0})){1} // count({0}){1}"),
    ]
    return {row.name: row for row in rows}


def _of_timespans(name: str, microseconds: str) -> list[AggregateSpec]:
    """An aggregate of timespans by their microseconds, and the one with a condition."""
    sql = f"to_microseconds(CAST({microseconds} AS BIGINT))"
    return [
        AggregateSpec(f"timespan {name}", sql.replace("{1}", ""), (1,), name_prefix=name),
        AggregateSpec(
            f"timespan {name}if", sql.replace("{1}", " FILTER (WHERE {1})"), (2,), name_prefix=f"{name}if"
        ),
    ]


def special_forms() -> dict[str, Special]:
    """Calls that a row cannot write."""
    return {
        "bin": _bin,
        "floor": _bin,
        "ceiling": _ceiling,
        UNLESS_NAN: lambda node: unless_nan(node.args[0]),
        "timespan divided": _divided,
        "timespan ratio": _ratio,
        "timespan modulo": _modulo,
        "timespan abs": lambda node: f"to_microseconds(abs(epoch_us({render_expr(node.args[0])})))",
        "decimal bin": _decimal_bin,
        **dynamics.COMPARISONS,
        **dynamics.HELD,
        **memberships.FORMS,
        ASCII_WORDS: lambda node: f"kql__ascii_words({render_kql_tostring(node.args[0])})",
    }


def _bin(node: ir.FunctionCall) -> str:
    """To the microsecond, of a datetime as of a timespan; the library counts in seconds."""
    if len(node.args) != 2:
        raise KqlUnsupportedError(f"function:{node.name}", hint="takes 2 arguments")
    value, size = (render_expr(arg) for arg in node.args)
    if not is_timespan(node.args[1]):
        binned = _numeric_bin(value, size)
        return binned if _is_positive(node.args[1]) else f"CASE WHEN {size} < 0 THEN NULL ELSE {binned} END"
    start = bins_from(f"typeof({value})")
    if kind_of(node.args[0]) is not None:
        start = "0" if is_timespan(node.args[0]) else str(_YEAR_ONE_US)
    at, step = f"(epoch_us({value}) - ({start}))", f"epoch_us({size})"
    binned = f"({value} - to_microseconds(({at} % {step} + {step}) % {step}))"
    return binned if _is_positive(node.args[1]) else f"CASE WHEN {step} > 0 THEN {binned} END"


def _is_positive(node: ir.Expr) -> bool:
    """Whether the size of a bin is certain to be one; bins of others are null."""
    if not isinstance(node, ir.Literal):
        return False
    if isinstance(node.value, int | float):
        return node.value > 0
    return (
        node.kind == "timespan" and str(node.value)[:1].isdigit() and str(node.value).strip("0:.dhms") != ""
    )


def bins_from(kind: str) -> str:
    """Where bins of times begin, in microseconds from 1970: datetimes count from the year 1 in Kusto, so that
    weeks begin on Mondays. `kind` is DuckDB's name of the type, as SQL."""
    return f"CASE WHEN {kind} = 'INTERVAL' THEN 0 ELSE {_YEAR_ONE_US} END"


def _divided(node: ir.FunctionCall) -> str:
    """A timespan by a number; the library takes every quotient with a timespan for one of two."""
    left, right = (render_expr(arg) for arg in node.args)
    return f"to_microseconds(CAST(trunc(epoch_us({left}) / CAST({right} AS DOUBLE)) AS BIGINT))"


def _ratio(node: ir.FunctionCall) -> str:
    """How often one timespan is in another."""
    left, right = (f"epoch_us({render_expr(arg)})" for arg in node.args)
    return f"(CAST({left} AS DOUBLE) / {right})"


def _modulo(node: ir.FunctionCall) -> str:
    """What is left of a timespan, never negative, as of numbers."""
    left, right = (f"epoch_us({render_expr(arg)})" for arg in node.args)
    size = f"nullif(abs({right}), 0)"
    return f"to_microseconds(({left} % {size} + {size}) % {size})"


def _decimal_bin(node: ir.FunctionCall) -> str:
    """Down to a multiple, by what is left, which is exact."""
    value, size = (render_expr(arg) for arg in node.args)
    return f"CASE WHEN {size} > 0 THEN {value} - (({value} % {size}) + {size}) % {size} END"


def _ceiling(node: ir.FunctionCall) -> str:
    """Of a whole number it is that number, still a long."""
    if len(node.args) != 1:
        raise KqlUnsupportedError("function:ceiling", hint="takes 1 argument")
    if kind_of(node.args[0]) == "decimal":
        return f"ceil({render_expr(node.args[0])})"
    return f"(-{_numeric_bin(f'(-{long_or_wider(render_expr(node.args[0]))})', 'CAST(1 AS BIGINT)')})"
