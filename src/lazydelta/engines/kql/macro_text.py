"""Kusto's functions of text, as macros of DuckDB. Contract as in macro_arrays."""

from __future__ import annotations

from lazydelta import limits
from lazydelta.engines.kql.regexes import WORD

# The first of the characters that stand for a text found while others are replaced: nobody's text has them.
_MARK = 0xF0000

MACROS: dict[str, tuple[str, ...]] = {
    # RE2 knows boundaries of ASCII's words only.
    "_ascii_words": (
        f"(s) AS CASE WHEN regexp_matches(s, '[^\\x00-\\x7F]') AND regexp_matches("
        f"regexp_replace(s, '[\\x00-\\x7F]', '', 'g'), '[{WORD}]') "
        "THEN error('\\b and \\B of texts whose words are not ASCII are not supported') ELSE s END",
    ),
    "split": (
        "(s, d, i) AS to_json(CASE WHEN i < -len(str_split(s, d)) OR i >= len(str_split(s, d)) THEN "
        "CAST([] AS VARCHAR[]) "
        "ELSE [str_split(s, d)[CASE WHEN i < 0 THEN i ELSE i + 1 END]] END)",
    ),
    "_part": (
        "(s, first, size) AS CASE WHEN size < 0 THEN substring(s, first + 1) ELSE substring(s, first + 1, "
        "size) END",
    ),
    # Each further occurrence is looked for behind the one before, in as many characters again.
    "_next_place": (
        "(s, t, p, size) AS CASE WHEN p < 0 OR position(t IN kql__part(s, p, size)) = 0 THEN -1 "
        "ELSE p + position(t IN kql__part(s, p, size)) END",
    ),
    "_indexof": (
        "(s, t, first, size, nth) AS CASE WHEN nth < 1 OR size < -1 THEN NULL "
        "ELSE greatest(list_reduce([first] || generate_series(1, nth), lambda p, i: kql__next_place(s, t, "
        "p, size)) - 1, -1) "
        "END",
    ),
    "indexof": (
        "(s, t) AS position(t IN s) - 1",
        "(s, t, b) AS kql__indexof(s, t, kql__start(b, length(s)), -1, 1)",
        "(s, t, b, n) AS kql__indexof(s, t, kql__start(b, length(s)), n, 1)",
        "(s, t, b, n, nth) AS kql__indexof(s, t, kql__start(b, length(s)), n, nth)",
    ),
    # What precedes the n-th match is matched too, and its length is the place.
    "_before": (
        "(p, nth) AS '(?s)^((?:.*?(?:' || p || ')){' || CAST(nth - 1 AS VARCHAR) || '}.*?)(?:' || p || ')'",
    ),
    "_indexof_regex": (
        "(s, p, first, size, nth) AS CASE WHEN first < 0 OR nth < 1 OR size < -1 THEN NULL "
        "WHEN regexp_matches(kql__part(s, first, size), kql__before(p, nth)) "
        "THEN first + length(regexp_extract(kql__part(s, first, size), kql__before(p, nth), 1)) ELSE -1 END",
    ),
    "indexof_regex": (
        "(s, p) AS kql__indexof_regex(s, p, 0, -1, 1)",
        "(s, p, b) AS kql__indexof_regex(s, p, b, -1, 1)",
        "(s, p, b, n) AS kql__indexof_regex(s, p, b, n, 1)",
        "(s, p, b, n, nth) AS kql__indexof_regex(s, p, b, n, nth)",
    ),
    "strcmp": ("(a, b) AS CAST(CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END AS BIGINT)",),
    "string_size": ("(s) AS strlen(s)",),
    # Texts that are handed out are not counted by the memory limit.
    "_repeated": (
        f"(s, n) AS CASE WHEN n > 0 AND length(s) > {limits.KQL_ROW_TEXT_MAX} // n "
        "THEN error('strrep makes values too large') ELSE repeat(s, n) END",
    ),
    "strrep": (
        "(s, n) AS kql__repeated(s, n)",
        "(s, n, d) AS CASE WHEN n < 1 THEN '' ELSE s || kql__repeated(d || s, n - 1) END",
    ),
    "regex_quote": (r"(s) AS regexp_replace(s, '([\\.+*?()|\[\]{}^$#&~-])', '\\\1', 'g')",),
    "_marked": (
        f"(s, l) AS list_reduce([s] || l, lambda acc, x, i: replace(acc, x, chr(CAST({_MARK} + i AS "
        f"INTEGER))))",
    ),
    "replace_strings": (
        f"(s, l, r) AS CASE WHEN len(kql__items(l)) <> len(kql__items(r)) THEN NULL "
        "ELSE list_reduce([kql__marked(s, list_transform(kql__items(l), lambda x: x ->> '$'))] "
        "|| list_transform(kql__items(r), lambda x, i: CASE WHEN json_type(x) = 'VARCHAR' THEN x ->> '$' "
        "ELSE kql__items(l)[i] ->> '$' END), "
        f"lambda acc, x, i: replace(acc, chr(CAST({_MARK} + i AS INTEGER)), x)) END",
    ),
    "isascii": ("(s) AS regexp_full_match(s, '(?s)[\\x00-\\x7F]*')",),
    "isutf8": ("(s) AS s IS NOT NULL",),
    "unicode_codepoints_from_string": (
        "(s) AS to_json(CASE WHEN s = '' THEN CAST([] AS INTEGER[]) "
        "ELSE list_transform(str_split(s, ''), lambda c: unicode(c)) END)",
    ),
    "_codepoints": (
        "(a) AS CASE WHEN json_type(to_json(a)) = 'ARRAY' THEN CAST(json_extract(to_json(a), '$[*]') AS "
        "INTEGER[]) "
        "ELSE [TRY_CAST(to_json(a) AS INTEGER)] END",
    ),
    "_of_codepoints": ("(l) AS array_to_string(list_transform(l, lambda c: chr(c)), '')",),
    "url_decode": ("(s) AS url_decode(replace(s, '+', '%20'))",),
    "url_encode": (
        "(s) AS array_to_string(list_transform(str_split(s, ''), lambda c: CASE WHEN c = ' ' THEN '+' "
        "WHEN regexp_full_match(c, '[A-Za-z0-9_.!*()-]?') THEN c ELSE lower(url_encode(c)) END), '')",
    ),
    "url_encode_component": (
        "(s) AS array_to_string(list_transform(str_split(s, ''), lambda c: "
        "CASE WHEN regexp_full_match(c, '[A-Za-z0-9_.!*()-]?') THEN c ELSE lower(url_encode(c)) END), '')",
    ),
    "_hex": (
        "(v) AS lower(CASE typeof(v) WHEN 'INTEGER' THEN right('0000000' || to_hex(v), 8) ELSE to_hex(v) "
        "END)",
    ),
    "tohex": (
        "(v) AS coalesce(nullif(ltrim(kql__hex(v), '0'), ''), '0')",
        f"(v, n) AS CASE WHEN n > {limits.KQL_ROW_TEXT_MAX} THEN error('tohex makes values too large') ELSE "
        "lpad(coalesce(nullif(ltrim(kql__hex(v), '0'), ''), '0'), CAST(greatest(n, "
        "length(coalesce(nullif(ltrim(kql__hex(v), '0'), ''), '0'))) AS INTEGER), '0') END",
    ),
    # Fields of the first record; a quoted one may hold commas, line ends and doubled quotes.
    "_csv_record": ("""(s) AS regexp_extract(s, '^(?:[^"\\r\\n]|"(?:[^"]|"")*")*', 0)""",),
    "parse_csv": (
        """(s) AS to_json(list_transform(regexp_extract_all(',' || kql__csv_record(s), """
        """',("(?:[^"]|"")*"|[^,]*)', 1), lambda f: CASE WHEN starts_with(f, '"') """
        """THEN replace(f[2:length(f) - 1], '""', '"') ELSE f END))""",
    ),
    "_version_part": ("(s, i) AS coalesce(TRY_CAST(str_split(s, '.')[i] AS DECIMAL(38, 0)), 0)",),
    "parse_version": (
        "(s) AS CASE WHEN regexp_full_match(s, '[0-9]{1,8}(\\.[0-9]{1,8}){0,3}') THEN "
        "kql__version_part(s, 1) * CAST(1000000000000000000000000 AS DECIMAL(38, 0)) "
        "+ kql__version_part(s, 2) * CAST(10000000000000000 AS DECIMAL(38, 0)) "
        "+ kql__version_part(s, 3) * CAST(100000000 AS DECIMAL(38, 0)) + kql__version_part(s, 4) END",
    ),
    "parse_urlquery": (
        "(s) AS json_object('Query Parameters', kql__bag(list_transform(list_filter(str_split("
        "regexp_replace(s, '^\\?', ''), '&'), lambda p: p <> ''), lambda p: "
        "{'key': kql_url_decode(str_split(p, '=')[1]), "
        "'value': to_json(kql_url_decode(CASE WHEN contains(p, '=') THEN p[position('=' IN p) + 1 :] ELSE "
        "'' END))})))",
    ),
    "_base64_bytes": (
        "(b) AS list_transform(generate_series(1, octet_length(b)), "
        "lambda i: CAST('0x' || substring(hex(b), 2 * i - 1, 2) AS INTEGER))",
    ),
    "base64_decode_toarray": ("(s) AS to_json(kql__base64_bytes(TRY(from_base64(s))))",),
    "base64_encode_fromarray": (
        "(a) AS coalesce(to_base64(unhex(array_to_string(list_transform(CAST(kql__items(a) AS INTEGER[]), "
        "lambda v: lpad(to_hex(v), 2, '0')), ''))), '')",
    ),
    "base64_encode_fromguid": (
        "(g) AS to_base64(unhex(regexp_replace(replace(CAST(g AS VARCHAR), '-', ''), "
        "'^(..)(..)(..)(..)(..)(..)(..)(..)', '\\4\\3\\2\\1\\6\\5\\8\\7')))",
    ),
    "_guid_text": (
        "(h) AS regexp_replace(h, '^(..)(..)(..)(..)(..)(..)(..)(..)(....)(.*)$', "
        "'\\4\\3\\2\\1-\\6\\5-\\8\\7-\\9-')"
        " || substring(h, 21)",
    ),
    "base64_decode_toguid": (
        "(s) AS CASE WHEN octet_length(TRY(from_base64(s))) = 16 "
        "THEN TRY_CAST(kql__guid_text(hex(from_base64(s))) AS UUID) END",
    ),
    "translate": (
        "(f, t, s) AS array_to_string(list_transform(str_split(s, ''), lambda c: CASE WHEN c = '' OR "
        "position(c IN f) = 0 "
        "THEN c WHEN t = '' THEN '' ELSE substring(t, least(position(c IN f), length(t)), 1) END), '')",
    ),
    "_all_keys_sorted": ("(j) AS list_sort(json_keys(j))",),
    "format_bytes": (
        "(v) AS kql__bytes_text(v, 0, kql__bytes_unit(v))",
        "(v, d) AS kql__bytes_text(v, d, kql__bytes_unit(v))",
        "(v, d, u) AS kql__bytes_text(v, d, u)",
    ),
    "_bytes_unit": (
        "(v) AS ['Bytes', 'KB', 'MB', 'GB', 'TB', 'PB', 'EB'][CASE WHEN abs(v) < 1024 THEN 1 "
        "WHEN abs(v) < 1048576 THEN 2 WHEN abs(v) < 1073741824 THEN 3 WHEN abs(v) < 1099511627776 THEN 4 "
        "WHEN abs(v) < 1125899906842624 THEN 5 WHEN abs(v) < 1152921504606846976 THEN 6 ELSE 7 END]",
    ),
    "_bytes_text": (
        "(v, d, u) AS kql__number(round(v / pow(1024, list_position(['Bytes', 'KB', 'MB', 'GB', 'TB', "
        "'PB', 'EB'], u) - 1), "
        "CAST(d AS INTEGER))) || ' ' || u",
    ),
    "_number": ("(v) AS regexp_replace(CAST(v AS VARCHAR), '\\.0$', '')",),
}
