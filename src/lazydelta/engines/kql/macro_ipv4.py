"""Kusto's functions of IPv4 addresses, as macros of DuckDB. Contract as in macro_arrays."""

from __future__ import annotations

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = rf"{_OCTET}(?:\.{_OCTET}){{3}}"

MACROS: dict[str, tuple[str, ...]] = {
    "_ip_number": (
        f"(s) AS CASE WHEN regexp_full_match(s, '{_ADDRESS}(?:/(?:3[0-2]|[12]?[0-9]))?') THEN "
        "list_reduce(CAST(str_split(str_split(s, '/')[1], '.') AS BIGINT[]), lambda n, part: n * 256 + "
        "part) END",
    ),
    "_ip_bits": (
        "(s) AS CASE WHEN contains(s, '/') THEN TRY_CAST(str_split(s, '/')[2] AS BIGINT) ELSE 32 END",
    ),
    "_ip_cut": ("(n, bits) AS n - n % (1 << CAST(32 - bits AS INTEGER))",),
    "_ip_text": (
        "(n) AS CAST(n // 16777216 AS VARCHAR) || '.' || CAST(n // 65536 % 256 AS VARCHAR) || '.' "
        "|| CAST(n // 256 % 256 AS VARCHAR) || '.' || CAST(n % 256 AS VARCHAR)",
    ),
    "_ip_order": (
        "(a, b, bits) AS CASE WHEN bits < 0 OR bits > 32 THEN NULL ELSE "
        "CAST(sign(kql__ip_cut(kql__ip_number(a), "
        "least(bits, kql__ip_bits(a), kql__ip_bits(b))) - kql__ip_cut(kql__ip_number(b), "
        "least(bits, kql__ip_bits(a), kql__ip_bits(b)))) AS BIGINT) END",
    ),
    "ipv4_compare": ("(a, b) AS kql__ip_order(a, b, 32)", "(a, b, bits) AS kql__ip_order(a, b, bits)"),
    "ipv4_is_match": (
        "(a, b) AS kql__ip_order(a, b, 32) = 0",
        "(a, b, bits) AS kql__ip_order(a, b, bits) = 0",
    ),
    "ipv4_is_in_range": (
        "(a, r) AS kql__ip_cut(kql__ip_number(a), kql__ip_bits(r)) = kql__ip_cut(kql__ip_number(r), "
        "kql__ip_bits(r))",
    ),
    "_texts": (
        "(a) AS CASE WHEN json_type(to_json(a)) = 'ARRAY' THEN list_transform(json_extract(to_json(a), "
        "'$[*]'), "
        "lambda j: j ->> '$') ELSE [to_json(a) ->> '$'] END",
    ),
    "_in_any_range": (
        "(a, l) AS CASE WHEN kql__ip_number(a) IS NULL THEN NULL ELSE "
        "coalesce(list_bool_or(list_transform(l, "
        "lambda r: kql_ipv4_is_in_range(a, r))), false) END",
    ),
    "ipv4_is_private": (
        "(a) AS CASE WHEN kql__ip_number(a) IS NULL THEN NULL "
        "ELSE kql__in_any_range(str_split(a, '/')[1], ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16']) END",
    ),
    "ipv4_netmask_suffix": ("(a) AS CASE WHEN kql__ip_number(a) IS NOT NULL THEN kql__ip_bits(a) END",),
    "parse_ipv4_mask": (
        "(a, bits) AS CASE WHEN bits BETWEEN 0 AND 32 "
        "THEN kql__ip_cut(kql__ip_number(a), least(bits, kql__ip_bits(a))) END",
    ),
    "_format_ipv4": (
        "(s, bits) AS CASE WHEN bits BETWEEN 0 AND 32 "
        "THEN coalesce(kql__ip_text(kql__ip_cut(kql__ip_number(s), least(bits, kql__ip_bits(s)))), '') "
        "ELSE '' END",
    ),
    "format_ipv4": ("(s) AS kql__format_ipv4(s, 32)", "(s, bits) AS kql__format_ipv4(s, bits)"),
    "format_ipv4_mask": (
        "(s) AS kql__format_ipv4_mask(s, 32)",
        "(s, bits) AS kql__format_ipv4_mask(s, bits)",
    ),
    "_format_ipv4_mask": (
        "(s, bits) AS CASE WHEN kql__format_ipv4(s, bits) = '' THEN '' "
        "ELSE kql__format_ipv4(s, bits) || '/' || CAST(least(bits, kql__ip_bits(s)) AS VARCHAR) END",
    ),
    # An address in a text, delimited by what is neither a letter, nor a digit, nor a dot.
    "_has_ip": (
        f"(s, a) AS regexp_full_match(a, '{_ADDRESS}') "
        "AND regexp_matches(s, '(?:^|[^A-Za-z0-9.])' || regexp_escape(a) || "
        "'(?:$|[^A-Za-z0-9.]|\\.(?:$|[^0-9]))')",
    ),
    "_has_ip_prefix": (
        "(s, p) AS ends_with(p, '.') AND len(list_filter(regexp_extract_all(' ' || s || ' ', "
        f"'[^A-Za-z0-9.]({_ADDRESS})(?:[^A-Za-z0-9.])', 1), lambda a: starts_with(a, p))) > 0",
    ),
    "has_ipv4": ("(s, a) AS kql__has_ip(s, a)",),
    "has_ipv4_prefix": ("(s, p) AS kql__has_ip_prefix(s, p)",),
    "_has_any_ip": (
        "(s, l) AS coalesce(list_bool_or(list_transform(l, lambda a: kql__has_ip(s, a))), false)",
    ),
    "_has_any_ip_prefix": (
        "(s, l) AS coalesce(list_bool_or(list_transform(l, lambda p: kql__has_ip_prefix(s, p))), false)",
    ),
}
