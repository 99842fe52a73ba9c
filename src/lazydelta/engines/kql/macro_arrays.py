"""Kusto's functions of arrays, bags and sets, as macros of DuckDB.

Contract: an argument is a dynamic in any of its forms (JSON, or a list of DuckDB's); a result is JSON.
What is not an array where one is expected gives null, as Kusto does. Names with an underscore in front
are used by others here.
"""

from __future__ import annotations

# Sets up to this size keep the order in which their values were met; larger ones come in any order.
_ORDERED_SET_MAX = 4096

MACROS: dict[str, tuple[str, ...]] = {
    "_items": ("(a) AS CASE WHEN json_type(to_json(a)) = 'ARRAY' THEN json_extract(to_json(a), '$[*]') END",),
    "_pairs": (
        "(a) AS CASE WHEN json_type(to_json(a)) = 'OBJECT' "
        """THEN map_entries(from_json(to_json(a), '"MAP(VARCHAR, JSON)"')) END""",
    ),
    "_bag": (
        "(pairs) AS CAST('{' || array_to_string(list_transform(pairs, lambda p: "
        "CAST(to_json(p.key) AS VARCHAR) || ':' || coalesce(CAST(p.value AS VARCHAR), 'null')), ',') || "
        "'}' AS JSON)",
    ),
    # A value as an element of a dynamic: times are text there.
    "_element": (
        "(v) AS CASE WHEN v IS NULL THEN NULL ELSE CASE typeof(v) "
        "WHEN 'TIMESTAMP' THEN to_json(strftime(TRY_CAST(v AS TIMESTAMP), '%Y-%m-%dT%H:%M:%S.%f') || '0Z') "
        "WHEN 'TIMESTAMP WITH TIME ZONE' "
        "THEN to_json(strftime(TRY_CAST(v AS TIMESTAMP), '%Y-%m-%dT%H:%M:%S.%f') || '0Z') "
        "WHEN 'INTERVAL' THEN to_json(kql__timespan(TRY_CAST(v AS INTERVAL))) "
        "WHEN 'DOUBLE' THEN CASE WHEN isfinite(TRY_CAST(v AS DOUBLE)) THEN to_json(v) "
        "WHEN isnan(TRY_CAST(v AS DOUBLE)) THEN to_json('NaN') "
        "WHEN TRY_CAST(v AS DOUBLE) > 0 THEN to_json('Infinity') ELSE to_json('-Infinity') END "
        "ELSE to_json(v) END END",
    ),
    # Text is never null in Kusto; the literal takes the type of the value.
    "_text_or": ("(v) AS CASE WHEN v IS NULL AND typeof(v) = 'VARCHAR' THEN '' ELSE v END",),
    "_timespan": (
        "(v) AS CASE WHEN epoch_us(v) < 0 THEN '-' ELSE '' END || CASE WHEN abs(epoch_us(v)) >= 86400000000 "
        "THEN CAST(abs(epoch_us(v)) // 86400000000 AS VARCHAR) || '.' ELSE '' END "
        "|| lpad(CAST(abs(epoch_us(v)) // 3600000000 % 24 AS VARCHAR), 2, '0') "
        "|| ':' || lpad(CAST(abs(epoch_us(v)) // 60000000 % 60 AS VARCHAR), 2, '0') "
        "|| ':' || lpad(CAST(abs(epoch_us(v)) // 1000000 % 60 AS VARCHAR), 2, '0') "
        "|| CASE WHEN abs(epoch_us(v)) % 1000000 <> 0 "
        "THEN '.' || lpad(CAST(abs(epoch_us(v)) % 1000000 AS VARCHAR), 6, '0') || '0' ELSE '' END",
    ),
    "_distinct": (
        f"(l) AS CASE WHEN len(l) <= {_ORDERED_SET_MAX} "
        "THEN list_filter(l, lambda x, i: list_position(l, x) = i) ELSE list_distinct(l) END",
    ),
    "_rotated": (
        "(l, n) AS CASE WHEN len(l) = 0 THEN l ELSE l[((n % len(l)) + len(l)) % len(l) + 1 :] "
        "|| l[: ((n % len(l)) + len(l)) % len(l)] END",
    ),
    "_shifted": (
        "(l, n, d) AS CASE WHEN n >= 0 THEN l[n + 1 :] || repeat([d], least(n, len(l))) "
        "ELSE repeat([d], least(-n, len(l))) || l[: greatest(0, len(l) + n)] END",
    ),
    "array_rotate_left": ("(a, n) AS to_json(kql__rotated(kql__items(a), n))",),
    "array_rotate_right": ("(a, n) AS to_json(kql__rotated(kql__items(a), -n))",),
    "array_shift_left": (
        "(a, n) AS to_json(kql__shifted(kql__items(a), n, CAST('null' AS JSON)))",
        "(a, n, d) AS to_json(kql__shifted(kql__items(a), n, to_json(d)))",
    ),
    "array_shift_right": (
        "(a, n) AS to_json(kql__shifted(kql__items(a), -n, CAST('null' AS JSON)))",
        "(a, n, d) AS to_json(kql__shifted(kql__items(a), -n, to_json(d)))",
    ),
    "_cuts": (
        "(l, cut) AS [0] || list_transform(CAST(CASE WHEN json_type(to_json(cut)) = 'ARRAY' "
        "THEN json_extract(to_json(cut), '$[*]') ELSE [to_json(cut)] END AS BIGINT[]), "
        "lambda i: greatest(0, least(len(l), CASE WHEN i < 0 THEN len(l) + i ELSE i END))) || [len(l)]",
    ),
    "array_split": (
        "(a, cut) AS CASE WHEN kql__items(a) IS NOT NULL THEN to_json(list_transform("
        "generate_series(1, len(kql__cuts(kql__items(a), cut)) - 1), lambda k: "
        "kql__items(a)[kql__cuts(kql__items(a), cut)[k] + 1 : kql__cuts(kql__items(a), cut)[k + 1]])) END",
    ),
    "_truth": (
        "(j) AS CASE json_type(j) WHEN 'BOOLEAN' THEN CAST(j AS VARCHAR) = 'true' WHEN 'UBIGINT' "
        "THEN TRY_CAST(j AS DOUBLE) <> 0 WHEN 'BIGINT' THEN TRY_CAST(j AS DOUBLE) <> 0 "
        "WHEN 'DOUBLE' THEN TRY_CAST(j AS DOUBLE) <> 0 END",
    ),
    "_at": (
        "(a, i) AS CASE WHEN json_type(to_json(a)) = 'ARRAY' THEN kql__items(a)[i] ELSE kql__element(a) END",
    ),
    "array_iff": (
        "(c, t, f) AS CASE WHEN kql__items(c) IS NOT NULL THEN to_json(list_transform(kql__items(c), "
        "lambda x, i: "
        "CASE kql__truth(x) WHEN true THEN kql__at(t, i) WHEN false THEN kql__at(f, i) END)) END",
    ),
    "_found": (
        "(l, v, first, size, nth) AS CASE WHEN nth < 1 OR size < -1 THEN NULL ELSE coalesce(list_filter("
        "generate_series(greatest(0, first), CASE WHEN size < 0 THEN len(l) ELSE least(len(l), first + "
        "size) END - 1), "
        "lambda i: l[i + 1] = v)[nth], -1) END",
    ),
    "array_index_of": (
        "(a, v) AS kql__found(kql__items(a), kql__element(v), 0, -1, 1)",
        "(a, v, s) AS kql__found(kql__items(a), kql__element(v), kql__start(s, len(kql__items(a))), -1, 1)",
        "(a, v, s, n) AS kql__found(kql__items(a), kql__element(v), kql__start(s, len(kql__items(a))), n, 1)",
        "(a, v, s, n, nth) AS kql__found(kql__items(a), kql__element(v), kql__start(s, "
        "len(kql__items(a))), n, nth)",
    ),
    "_start": ("(s, size) AS CASE WHEN s < 0 THEN greatest(0, size + s) ELSE s END",),
    "_is_number": ("(j) AS json_type(j) IN ('UBIGINT', 'BIGINT', 'DOUBLE')",),
    "_sorted": (
        "(l) AS list_transform(list_sort(list_transform(l, lambda x: {'n': CASE WHEN kql__is_number(x) "
        "THEN CAST(x AS DOUBLE) END, 't': x ->> '$', 'j': x})), lambda s: s.j)",
    ),
    "_sorted_back": ("(l) AS list_reverse(kql__sorted(l))",),
    "_present": ("(l) AS list_filter(l, lambda x: json_type(x) <> 'NULL')",),
    "_absent": ("(l) AS list_filter(l, lambda x: json_type(x) = 'NULL')",),
    "array_sort_asc": (
        "(a) AS kql__array_sort_asc(a, true)",
        "(a, last) AS kql__array_sort_asc(a, last)",
    ),
    "_array_sort_asc": (
        "(a, last) AS to_json(CASE WHEN last THEN kql__sorted(kql__present(kql__items(a))) || "
        "kql__absent(kql__items(a)) "
        "ELSE kql__absent(kql__items(a)) || kql__sorted(kql__present(kql__items(a))) END)",
    ),
    "array_sort_desc": (
        "(a) AS kql__array_sort_desc(a, true)",
        "(a, last) AS kql__array_sort_desc(a, last)",
    ),
    "_array_sort_desc": (
        "(a, last) AS to_json(CASE WHEN last THEN kql__sorted_back(kql__present(kql__items(a))) "
        "|| kql__absent(kql__items(a)) "
        "ELSE kql__absent(kql__items(a)) || kql__sorted_back(kql__present(kql__items(a))) END)",
    ),
    "bag_keys": (
        "(a) AS CASE WHEN json_type(to_json(a)) = 'OBJECT' THEN to_json(json_keys(to_json(a))) END",
    ),
    "bag_has_key": (
        "(a, k) AS CASE WHEN json_type(to_json(a)) <> 'OBJECT' THEN false WHEN starts_with(k, '$') "
        "THEN json_exists(to_json(a), k) ELSE list_contains(json_keys(to_json(a)), k) END",
    ),
    "bag_merge": (
        "(a, b) AS CASE WHEN kql__pairs(a) IS NULL THEN CASE WHEN kql__pairs(b) IS NOT NULL THEN "
        "to_json(b) END "
        "WHEN kql__pairs(b) IS NULL THEN to_json(a) ELSE kql__bag(kql__pairs(a) || "
        "list_filter(kql__pairs(b), "
        "lambda p: NOT list_contains(json_keys(to_json(a)), p.key))) END",
    ),
    # A JSON path as the patch that sets its end (RFC 7396).
    "_patch": (
        "(path, v) AS CAST(list_reduce([v] || list_reverse(str_split(substring(path, 3), '.')), "
        "lambda inner_text, k: '{' || CAST(to_json(k) AS VARCHAR) || ':' || inner_text || '}') AS JSON)",
    ),
    "_without": (
        "(a, k) AS CASE WHEN NOT starts_with(k, '$.') "
        "THEN kql__bag(list_filter(kql__pairs(a), lambda p: p.key <> k)) "
        "WHEN json_exists(a, k) THEN json_merge_patch(a, kql__patch(k, 'null')) ELSE a END",
    ),
    "bag_remove_keys": (
        "(a, keys) AS CASE WHEN kql__pairs(a) IS NOT NULL THEN list_reduce([to_json(a)] || kql__items(keys), "
        "lambda bag, k: kql__without(bag, k ->> '$')) END",
    ),
    "bag_set_key": (
        "(a, k, v) AS CASE WHEN kql__pairs(a) IS NULL THEN NULL WHEN starts_with(k, '$.') "
        "THEN CASE WHEN json_type(kql__element(v)) IN ('NULL', 'OBJECT') OR v IS NULL "
        "THEN error('bag_set_key: a path is set to a scalar or an array only') "
        "ELSE json_merge_patch(to_json(a), kql__patch(k, CAST(kql__element(v) AS VARCHAR))) END "
        "WHEN list_contains(json_keys(to_json(a)), k) THEN kql__bag(list_transform(kql__pairs(a), lambda p: "
        "{'key': p.key, 'value': CASE WHEN p.key = k THEN kql__element(v) ELSE p.value END})) "
        "ELSE kql__bag(kql__pairs(a) || [{'key': k, 'value': kql__element(v)}]) END",
    ),
    "set_union": ("(a, b) AS to_json(kql__distinct(kql__items(a) || kql__items(b)))",),
    "set_intersect": (
        "(a, b) AS to_json(list_filter(kql__distinct(kql__items(a)), lambda x: "
        "list_contains(kql__items(b), x)))",
    ),
    "set_difference": (
        "(a, b) AS to_json(list_filter(kql__distinct(kql__items(a)), lambda x: NOT "
        "list_contains(kql__items(b), x)))",
    ),
    "jaccard_index": (
        "(a, b) AS CASE WHEN kql__items(a) IS NULL OR kql__items(b) IS NULL THEN NULL "
        "WHEN len(kql__items(a)) + len(kql__items(b)) = 0 THEN to_json('NaN') "
        "ELSE to_json(len(kql__items(kql_set_intersect(a, b))) / len(kql__items(kql_set_union(a, b)))) END",
    ),
}
