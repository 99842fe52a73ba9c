"""Kusto's functions of numbers, times and series, as macros of DuckDB. Contract as in macro_arrays."""

from __future__ import annotations

_MICROSECONDS_A_UNIT = {"microseconds": 1, "milliseconds": 1_000, "seconds": 1_000_000}
# A series holds numbers; what is none of them, or has no partner in the other series, is null in the result.
_SERIES_OF_TWO = {
    "add": "p[1] + p[2]",
    "subtract": "p[1] - p[2]",
    "multiply": "p[1] * p[2]",
    "divide": "p[1] / p[2]",
    "pow": "pow(p[1], p[2])",
    "equals": "p[1] = p[2]",
    "not_equals": "p[1] <> p[2]",
    "greater": "p[1] > p[2]",
    "greater_equals": "p[1] >= p[2]",
    "less": "p[1] < p[2]",
    "less_equals": "p[1] <= p[2]",
}
_SERIES_OF_ONE = {
    "abs": "abs(x)",
    "acos": "CASE WHEN abs(x) <= 1 THEN acos(x) END",
    "asin": "CASE WHEN abs(x) <= 1 THEN asin(x) END",
    "atan": "atan(x)",
    "ceiling": "ceil(x)",
    "cos": "cos(x)",
    "exp": "exp(x)",
    "floor": "floor(x)",
    "log": "CASE WHEN x > 0 THEN ln(x) END",
    "sign": "sign(x)",
    "sin": "sin(x)",
    "tan": "tan(x)",
}
_WHOLE = frozenset({"add", "subtract", "multiply", "abs", "sign"})

MACROS: dict[str, tuple[str, ...]] = {
    "_is_nan": ("(v) AS CASE WHEN typeof(v) = 'DOUBLE' THEN isnan(TRY_CAST(v AS DOUBLE)) ELSE false END",),
    "_unless_nan": ("(v) AS CASE WHEN kql__is_nan(v) THEN NULL ELSE v END",),
    **{
        f"unixtime_{unit}_todatetime": (f"(v) AS make_timestamp(CAST(round(v * {microseconds}) AS BIGINT))",)
        for unit, microseconds in _MICROSECONDS_A_UNIT.items()
    },
    # DuckDB keeps microseconds: a value that would lose a tick of 100 ns is an error.
    "unixtime_nanoseconds_todatetime": (
        "(v) AS CASE WHEN v // 100 % 10 <> 0 THEN error('a datetime is kept to the microsecond here') "
        "ELSE make_timestamp(CAST(v // 1000 AS BIGINT)) END",
    ),
    # An hour that a change of clocks leaves out is taken by the clock after the change.
    "datetime_local_to_utc": (
        "(v, z) AS ((v AT TIME ZONE z) AT TIME ZONE 'UTC') - ((v AT TIME ZONE z) AT TIME ZONE z - v)",
    ),
    "datetime_utc_to_local": ("(v, z) AS (v AT TIME ZONE 'UTC') AT TIME ZONE z",),
    "around": ("(v, c, d) AS v BETWEEN c - d AND c + d",),
    "bitset_count_ones": ("(v) AS CAST(bit_count(CAST(v AS BIGINT)) AS BIGINT)",),
    # By the number modulo 64, and what is shifted out is lost; the right one keeps the sign.
    "binary_shift_left": (
        "(v, n) AS CASE WHEN n >= 0 THEN CAST(CAST(CAST(v AS BIGINT) AS BIT) << CAST(n % 64 AS INTEGER) "
        "AS BIGINT) END",
    ),
    "binary_shift_right": (
        "(v, n) AS CASE WHEN n >= 0 THEN CAST(v AS BIGINT) >> (CAST(n AS BIGINT) % 64) END",
    ),
    "array_sum": (
        "(a) AS CASE WHEN len(list_filter(kql__items(a), lambda j: NOT kql__is_number(j) AND json_type(j) "
        "<> 'NULL')) = 0 THEN CAST(list_sum(kql__series_numbers(a, 0)) AS DOUBLE) END",
    ),
    "loggamma": ("(v) AS lgamma(v)",),
    "_weighted": (
        "(rows, share, guard) AS coalesce(guard, list_filter(rows, lambda r, i: "
        "list_sum(list_transform(rows[1:i], "
        "lambda q: q.w)) >= share * list_sum(list_transform(rows, lambda q: q.w)))[1].v)",
    ),
    "new_guid": ("() AS uuid()",),
    # A bin of no size, or of less, is null.
    "_bin_at_number": (
        "(v, s, f) AS CASE WHEN s > 0 THEN CAST(f AS DOUBLE) + floor((v - f) / CAST(s AS DOUBLE)) * s END",
    ),
    "_bin_at_whole": (
        "(v, s, f) AS CASE WHEN s > 0 THEN f + (v - f - ((v - f) % nullif(s, 0) + s) % nullif(s, 0)) END",
    ),
    "_bin_at_time": (
        "(v, s, f) AS CASE WHEN epoch_us(s) > 0 THEN f + to_microseconds(CAST(floor((epoch_us(v) - "
        "epoch_us(f)) / epoch_us(s)) AS BIGINT) * epoch_us(s)) END",
    ),
    "_bin_at_span": (
        "(v, s, f) AS CASE WHEN epoch_us(s) > 0 THEN to_microseconds(epoch_us(f) + CAST(floor((epoch_us(v) - "
        "epoch_us(f)) / epoch_us(s)) AS BIGINT) * epoch_us(s)) END",
    ),
    "_series_numbers": (
        "(a, n) AS CASE WHEN json_type(to_json(a)) = 'ARRAY' THEN list_transform(kql__items(a), "
        "lambda j: CASE WHEN kql__is_number(j) THEN CAST(j AS DOUBLE) END) "
        "ELSE list_transform(generate_series(1, n), lambda i: TRY_CAST(to_json(a) AS DOUBLE)) END",
    ),
    "_series_length": (
        "(a, b) AS greatest(coalesce(len(kql__items(a)), 0), coalesce(len(kql__items(b)), 0))",
    ),
    "_all_whole": (
        "(a) AS CASE WHEN json_type(to_json(a)) = 'ARRAY' THEN len(list_filter(kql__items(a), "
        "lambda j: json_type(j) NOT IN ('UBIGINT', 'BIGINT', 'NULL'))) = 0 "
        "ELSE coalesce(json_type(to_json(a)) IN ('UBIGINT', 'BIGINT'), false) END",
    ),
    "_as_whole": ("(l) AS to_json(CAST(l AS BIGINT[]))",),
    **{
        f"series_{name}": (
            "(a, b) AS CASE WHEN kql__items(a) IS NULL AND kql__items(b) IS NULL THEN NULL "
            + (
                f"WHEN kql__all_whole(a) AND kql__all_whole(b) THEN kql__as_whole(kql__zip_{name}(a, b)) "
                * (name in _WHOLE)
            )
            + f"ELSE to_json(kql__zip_{name}(a, b)) END",
        )
        for name in _SERIES_OF_TWO
    },
    **{
        f"_zip_{name}": (
            "(a, b) AS list_transform(list_zip(kql__series_numbers(a, kql__series_length(a, b)), "
            f"kql__series_numbers(b, kql__series_length(a, b))), lambda p: {body})",
        )
        for name, body in _SERIES_OF_TWO.items()
    },
    **{
        f"series_{name}": (
            "(a) AS CASE WHEN kql__items(a) IS NULL THEN NULL "
            + (f"WHEN kql__all_whole(a) THEN kql__as_whole(kql__each_{name}(a)) " * (name in _WHOLE))
            + f"ELSE to_json(kql__each_{name}(a)) END",
        )
        for name in _SERIES_OF_ONE
    },
    **{
        f"_each_{name}": (f"(a) AS list_transform(kql__series_numbers(a, 0), lambda x: {body})",)
        for name, body in _SERIES_OF_ONE.items()
    },
    "series_sum": ("(a) AS list_sum(kql__series_numbers(a, 0))",),
    "series_product": ("(a) AS list_product(kql__series_numbers(a, 0))",),
    "series_magnitude": (
        "(a) AS sqrt(list_sum(list_transform(kql__series_numbers(a, 0), lambda x: x * x)))",
    ),
    "series_dot_product": ("(a, b) AS list_sum(kql__zip_multiply(a, b))",),
    "series_cosine_similarity": (
        "(a, b) AS kql_series_dot_product(a, b) / (kql_series_magnitude(a) * kql_series_magnitude(b))",
    ),
    "series_fill_const": (
        "(a, c) AS to_json(list_transform(kql__items(a), lambda j: "
        "CASE WHEN json_type(j) = 'NULL' THEN to_json(c) ELSE j END))",
    ),
    "_filled": (
        "(l) AS list_transform(l, lambda j, i: CASE WHEN json_type(j) <> 'NULL' THEN j "
        "ELSE list_filter(l[1:i], lambda k: json_type(k) <> 'NULL')[-1] END)",
    ),
    "series_fill_forward": ("(a) AS to_json(kql__filled(kql__items(a)))",),
    "series_fill_backward": ("(a) AS to_json(list_reverse(kql__filled(list_reverse(kql__items(a)))))",),
    "_number_parts": ("(a) AS list_filter(kql__series_numbers(a, 0), lambda x: x IS NOT NULL)",),
    "series_stats_dynamic": (
        "(a) AS CASE WHEN len(kql__number_parts(a)) > 0 THEN json_object("
        "'min', list_min(kql__number_parts(a)), "
        "'min_idx', list_position(kql__series_numbers(a, 0), list_min(kql__number_parts(a))) - 1, "
        "'max', list_max(kql__number_parts(a)), "
        "'max_idx', list_position(kql__series_numbers(a, 0), list_max(kql__number_parts(a))) - 1, "
        "'avg', list_avg(kql__number_parts(a)), 'stdev', coalesce(list_stddev_samp(kql__number_parts(a)), "
        "0.0), "
        "'variance', coalesce(list_var_samp(kql__number_parts(a)), 0.0), "
        "'sum', list_sum(kql__number_parts(a)), 'len', len(kql__items(a))) END",
    ),
}
