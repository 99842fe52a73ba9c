"""Kusto's types of expressions, told from a query's tree before anything runs.

Why: the translation library knows names of columns and no types; DuckDB's rules for unlike types, NaN,
timespans and decimals are not Kusto's. Contract: a type is told only where it is certain; None: it is not.
Columns carry their types once `typed_tree.py` has been over the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from duckdb_kql import ir

Kind = str | None
Node = Any  # Any: of the library's tree

NUMBERS = frozenset({"int", "long", "real", "decimal"})
WHOLE = frozenset({"int", "long"})
HELD_KINDS = frozenset({"bool", "datetime", "timespan"})  # that a dynamic is compared with by what it holds
COMPARISONS = frozenset({"==", "!=", "<>", "<", "<=", ">", ">="})
ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
# Other words for the types, as declarations and `typeof` have them.
_SYNONYMS = {
    "boolean": "bool",
    "date": "datetime",
    "double": "real",
    "time": "timespan",
    "uniqueid": "guid",
    "uuid": "guid",
}


@dataclass(frozen=True)
class TypedColumn(ir.ColumnRef):
    """A column whose type is known."""

    kind: str = ""


@dataclass(frozen=True)
class TypedScalar(ir.ToScalar):
    """The first value of a query, whose type is known."""

    kind: str = ""


@dataclass(frozen=True)
class TypedAggregate(ir.RenderedAggregate):
    """An aggregate in SQL, whose type is known."""

    kind: str = ""


def plain_kind(name: str) -> Kind:
    """A type by the word that a query has for it."""
    word = name.strip().lower()
    return _SYNONYMS.get(word, word) if word else None


def kind_of(node: Node) -> Kind:  # noqa: PLR0911  # one case per node
    """The type of an expression."""
    if isinstance(node, TypedColumn | TypedScalar | TypedAggregate):
        return node.kind
    if isinstance(node, ir.Literal | ir.Parameter):
        return None if node.kind == "null" else plain_kind(node.kind)
    if isinstance(node, ir.InList | ir.HasList | ir.Between):
        return "bool"
    if isinstance(node, ir.PathAccess):
        return "dynamic"
    if isinstance(node, ir.UnaryOp):
        inner = kind_of(node.operand)
        return "bool" if node.op != "-" else _wider(inner) if inner in (*NUMBERS, "timespan") else None
    if isinstance(node, ir.BinaryOp):
        if node.op in ARITHMETIC:
            return arithmetic_kind(node.op, kind_of(node.left), kind_of(node.right))
        return "bool"
    if isinstance(node, ir.FunctionCall):
        return _call_kind(node)
    return None


def arithmetic_kind(operator: str, left: Kind, right: Kind) -> Kind:
    """Of a sum, a difference and so on; None: there is none, or it is not known."""
    if left in NUMBERS and right in NUMBERS:
        return "decimal" if "decimal" in (left, right) else "real" if "real" in (left, right) else "long"
    return _OF_TIMES.get((left, operator, right))


def is_timespan(node: Node) -> bool:
    """Whether an expression certainly is a timespan."""
    return kind_of(node) == "timespan"


def _wider(kind: Kind) -> Kind:
    return "long" if kind == "int" else kind


def common_kind(kinds: Sequence[Kind]) -> Kind:
    """What branches have in common; None: nothing, or one of them is not known."""
    told = set(kinds)
    if len(told) == 1:
        return next(iter(told))
    if not told <= NUMBERS:
        return None
    return "decimal" if "decimal" in told else "real" if "real" in told else "long"


def _call_kind(node: ir.FunctionCall) -> Kind:
    name = node.name.lower()
    if name in _BY_ARGUMENTS:
        return _BY_ARGUMENTS[name]([kind_of(argument) for argument in node.args])
    return RETURNS.get(name)


def _first(kinds: Sequence[Kind]) -> Kind:
    return kinds[0] if kinds else None


def _first_wider(kinds: Sequence[Kind]) -> Kind:
    return _wider(_first(kinds))


def _binned(kinds: Sequence[Kind]) -> Kind:
    if len(kinds) > 1 and kinds[0] in NUMBERS and kinds[1] in NUMBERS:
        return arithmetic_kind("+", kinds[0], kinds[1])
    return _first_wider(kinds)


def _averaged(kinds: Sequence[Kind]) -> Kind:
    kind = _first(kinds)
    return "real" if kind in ("int", "long", "real") else kind if kind in ("decimal", "timespan") else None


def _of_case(kinds: Sequence[Kind]) -> Kind:
    return common_kind([*kinds[1::2], kinds[-1]]) if len(kinds) > 2 else None


_OF_TIMES: dict[tuple[Kind, str, Kind], str] = {
    ("timespan", "+", "timespan"): "timespan",
    ("timespan", "-", "timespan"): "timespan",
    ("timespan", "/", "timespan"): "real",
    ("timespan", "%", "timespan"): "timespan",
    ("datetime", "-", "datetime"): "timespan",
    ("datetime", "+", "timespan"): "datetime",
    ("datetime", "-", "timespan"): "datetime",
    ("timespan", "+", "datetime"): "datetime",
    **{("timespan", operator, number): "timespan" for operator in "*/" for number in NUMBERS},
    **{(number, "*", "timespan"): "timespan" for number in NUMBERS},
}
_BY_ARGUMENTS: dict[str, Callable[[Sequence[Kind]], Kind]] = {
    **dict.fromkeys(("iff", "iif"), lambda kinds: common_kind(kinds[1:])),
    **dict.fromkeys(("coalesce", "max_of", "min_of"), common_kind),
    **dict.fromkeys(("bin", "floor", "bin_at"), _binned),
    **dict.fromkeys(("abs", "ceiling", "sum", "sumif", "row_cumsum"), _first_wider),
    **dict.fromkeys(("avg", "avgif"), _averaged),
    **dict.fromkeys(
        ("min", "max", "minif", "maxif", "any", "take_any", "anyif", "take_anyif", "prev", "next"), _first
    ),
    "case": _of_case,
}
_NAMES = {
    "bool": (
        "tobool toboolean isnull isnotnull notnull isempty isnotempty isnan isinf isfinite not isascii "
        "isutf8 bag_has_key set_has_element around ipv4_is_match ipv4_is_in_range ipv4_is_in_any_range "
        "ipv4_is_private has_ipv4 has_ipv4_prefix has_any_ipv4 has_any_ipv4_prefix"
    ),
    "int": (
        "toint getyear getmonth monthofyear dayofmonth dayofyear hourofday weekofyear week_of_year "
        "datetime_part"
    ),
    "long": (
        "tolong strlen string_size countof indexof indexof_regex array_length datetime_diff strcmp "
        "parse_ipv4 parse_ipv4_mask count countif dcount dcountif count_distinct count_distinctif row_number "
        "row_rank_dense row_rank_min binary_and binary_or binary_xor binary_not binary_shift_left "
        "binary_shift_right binary_all_and binary_all_or binary_all_xor bitset_count_ones has_any_index "
        "array_index_of ipv4_compare ipv4_netmask_suffix"
    ),
    "real": (
        "toreal todouble sqrt exp exp2 exp10 log log2 log10 pow sin cos tan asin acos atan atan2 cot pi "
        "degrees radians gamma loggamma stdev stdevif stdevp variance varianceif variancep variancepif "
        "covariance covarianceif covariancep covariancepif array_sum series_sum series_product "
        "series_magnitude series_dot_product series_cosine_similarity"
    ),
    "decimal": "todecimal parse_version",
    "string": (
        "tostring strcat strcat_delim strcat_array tolower toupper substring replace replace_string "
        "replace_regex replace_strings trim trim_start trim_end strrep reverse extract extract_json "
        "extractjson url_encode url_encode_component url_decode base64_encode_tostring "
        "base64_encodestring base64_decode_tostring base64_decodestring base64_encode_fromarray "
        "base64_encode_fromguid format_datetime format_timespan format_bytes format_ipv4 format_ipv4_mask "
        "tohex gettype hash_md5 hash_sha1 hash_sha256 regex_quote translate unicode_codepoints_to_string "
        "parse_ipv6"
    ),
    "datetime": (
        "now ago todatetime make_datetime datetime_add startofday startofweek startofmonth startofyear "
        "endofday endofweek endofmonth endofyear datetime_local_to_utc datetime_utc_to_local "
        "unixtime_seconds_todatetime unixtime_milliseconds_todatetime unixtime_microseconds_todatetime "
        "unixtime_nanoseconds_todatetime"
    ),
    "timespan": ("totimespan timespan make_timespan dayofweek"),
    "guid": "toguid new_guid base64_decode_toguid",
    "dynamic": (
        "todynamic parse_json pack pack_array pack_all bag_pack bag_pack_columns bag_merge bag_keys "
        "bag_remove_keys bag_set_key array_concat array_slice array_split array_reverse array_iff "
        "array_rotate_left array_rotate_right array_shift_left array_shift_right array_sort_asc "
        "array_sort_desc set_union set_intersect set_difference split zip range parse_url parse_urlquery "
        "parse_csv extract_all make_list make_list_if make_list_with_nulls make_set make_set_if makelist "
        "makeset make_bag make_bag_if percentiles_array percentilesw_array base64_decode_toarray "
        "unicode_codepoints_from_string series_add series_subtract series_multiply series_divide series_pow "
        "series_abs series_fill_const series_fill_forward series_fill_backward series_stats_dynamic"
    ),
}
RETURNS = {name: kind for kind, names in _NAMES.items() for name in names.split()} | {
    "timespan ratio": "real",
    **{f"dynamic {comparison}": "bool" for comparison in COMPARISONS},
    **{f"dynamic {kind}": kind for kind in HELD_KINDS},
    "among members": "bool",
    "among members, caseless": "bool",
    "texts of members": "dynamic",
    "ascii words": "string",
    **dict.fromkeys(
        (f"timespan {what}" for what in ("divided", "modulo", "sum", "sumif", "avg", "avgif", "abs")),
        "timespan",
    ),
    **dict.fromkeys(("datetime avg", "datetime avgif"), "datetime"),
}
