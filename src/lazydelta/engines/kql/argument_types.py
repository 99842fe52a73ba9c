"""Of which types the arguments of functions may be, as Microsoft's own parser tells.

Contract: a function or a place that is not here takes anything, or is left to whoever works it out.
"""

from __future__ import annotations

from lazydelta.engines.kql.kinds import NUMBERS, WHOLE

Kinds = frozenset[str]
TRUTH: Kinds = frozenset({"bool"})
TEXTS: Kinds = frozenset({"string", "dynamic"})
TIMED: Kinds = frozenset({"datetime", "timespan"})
_MOMENT: Kinds = frozenset({"datetime"})
_SPAN: Kinds = frozenset({"timespan"})
_NESTED: Kinds = frozenset({"dynamic"})
_ORDERED: Kinds = NUMBERS | TIMED | {"string", "bool"}
_SUMMED: Kinds = NUMBERS | TIMED
_HASHED: Kinds = _ORDERED | {"guid"}
# Of two series, or of a series and a number for each of its members.
SERIES_PAIRS = frozenset(
    f"series_{name}"
    for name in (
        *("add", "subtract", "multiply", "divide", "pow", "dot_product", "equals", "not_equals"),
        *("greater", "greater_equals", "less", "less_equals"),
    )
)
# How many arguments there are at least, where the translation library takes fewer.
FEWEST = {
    **dict.fromkeys(("array_concat", "pack_array"), 1),
    **dict.fromkeys(("bag_pack", "pack", "max_of", "min_of", "format_ipv4_mask"), 2),
    "strcat_delim": 3,
}
# `name/place`, or `name` for its first argument.
_PLACES: tuple[tuple[Kinds, str], ...] = (
    (TRUTH, "not countif iff iif"),
    (
        TRUTH,
        "sumif/1 avgif/1 minif/1 maxif/1 dcountif/1 count_distinctif/1 take_anyif/1 anyif/1 stdevif/1 "
        "varianceif/1 variancepif/1 make_list_if/1 make_set_if/1 make_bag_if/1",
    ),
    (_SUMMED, "sum avg stdev stdevp variance variancep sumif avgif stdevif varianceif variancepif range"),
    (_SUMMED, "range/1 range/2 binary_all_and binary_all_or binary_all_xor covariance covariance/1"),
    (_SUMMED, "covariancep covariancep/1"),
    (_HASHED, "hash_md5 hash_sha1 hash_sha256 count_distinct count_distinctif"),
    (_ORDERED, "min max arg_max arg_min minif maxif"),
    (
        _MOMENT,
        "startofday startofweek startofmonth startofyear endofday endofweek endofmonth endofyear getyear "
        "getmonth monthofyear dayofmonth dayofyear dayofweek hourofday weekofyear week_of_year "
        "format_datetime datetime_diff/1 datetime_diff/2 datetime_add/2 datetime_local_to_utc "
        "datetime_utc_to_local",
    ),
    (_SPAN, "ago format_timespan"),
    (
        NUMBERS,
        "sqrt exp exp2 exp10 log log2 log10 sin cos tan asin acos atan atan2 atan2/1 cot pow pow/1 degrees "
        "radians gamma loggamma ceiling isnan isinf isfinite make_datetime make_datetime/1 make_datetime/2 "
        "format_bytes unixtime_seconds_todatetime unixtime_milliseconds_todatetime "
        "unixtime_microseconds_todatetime unixtime_nanoseconds_todatetime round round/1 "
        "series_fill_backward/1 series_fill_forward/1 series_fill_const/1",
    ),
    (NUMBERS | {"timespan"}, "abs sign"),
    (
        WHOLE,
        "substring/1 substring/2 strrep/1 datetime_add/1 array_slice/1 array_slice/2 tohex tohex/1 "
        "binary_and binary_and/1 binary_or binary_or/1 binary_xor binary_xor/1 binary_not binary_shift_left "
        "binary_shift_left/1 binary_shift_right binary_shift_right/1 array_index_of/2 array_rotate_left/1 "
        "array_rotate_right/1 bitset_count_ones dcount/1 endofday/1 endofmonth/1 endofweek/1 endofyear/1 "
        "format_ipv4/1 format_ipv4_mask/1 indexof/2 ipv4_compare/2 ipv4_is_match/2 make_bag/1 make_list/1 "
        "make_set/1 makelist/1 makeset/1 make_timespan/1 make_timespan/2 parse_ipv4_mask/1 split/2 "
        "startofday/1 startofmonth/1 startofweek/1 startofyear/1",
    ),
    (
        TEXTS,
        "strlen string_size split/1 replace_string replace_string/1 replace_string/2 replace_regex/0 trim/1 "
        "trim_start/1 trim_end/1 extract/2 parse_json todynamic countof countof/1 bag_has_key/1 parse_csv "
        "parse_url parse_urlquery parse_version parse_ipv4 url_encode url_decode base64_encode_tostring "
        "base64_decode_tostring translate translate/1 translate/2 bag_pack datetime_local_to_utc/1 "
        "datetime_utc_to_local/1 has_any_index has_any_ipv4 has_any_ipv4/1 has_any_ipv4/2 "
        "has_any_ipv4_prefix has_any_ipv4_prefix/1 has_any_ipv4_prefix/2 has_ipv4 has_ipv4/1 "
        "has_ipv4_prefix has_ipv4_prefix/1 ipv4_compare ipv4_compare/1 ipv4_is_in_any_range "
        "ipv4_is_in_any_range/1 ipv4_is_in_any_range/2 ipv4_is_in_range ipv4_is_in_range/1 ipv4_is_match "
        "ipv4_is_match/1 ipv4_is_private ipv4_netmask_suffix pack parse_ipv4_mask parsejson replace/2 "
        "replace_strings toguid toobject url_encode_component",
    ),
    (
        _NESTED,
        "array_length array_sum array_concat array_concat/1 array_slice array_split array_reverse "
        "array_index_of array_sort_asc array_sort_desc array_iff array_rotate_left array_rotate_right "
        "array_shift_left array_shift_right bag_keys bag_has_key bag_merge bag_merge/1 bag_remove_keys "
        "bag_set_key set_has_element set_union set_union/1 set_intersect set_intersect/1 set_difference "
        "set_difference/1 zip zip/1 strcat_array series_sum array_concat/2 bag_merge/2 bag_remove_keys/1 "
        "base64_encode_fromarray has_any_index/1 jaccard_index jaccard_index/1 make_bag make_bag_if "
        "replace_strings/1 replace_strings/2 series_abs series_acos series_asin series_atan series_ceiling "
        "series_cos series_cosine_similarity series_cosine_similarity/1 series_exp series_fill_backward "
        "series_fill_const series_fill_forward series_floor series_log series_magnitude series_product "
        "series_sign series_sin series_stats_dynamic series_tan",
    ),
)
_PLACES += (
    (WHOLE | _NESTED, "array_split/1 unicode_codepoints_to_string"),
    (NUMBERS | _NESTED, " ".join(f"{name} {name}/1" for name in sorted(SERIES_PAIRS))),
)
ARGUMENTS: dict[str, dict[int, Kinds]] = {}
for _kinds, _names in _PLACES:
    for _word in _names.split():
        _name, _, _place = _word.partition("/")
        ARGUMENTS.setdefault(_name, {})[int(_place or 0)] = _kinds

# Literals that must lie between two numbers, by the place of the first of them among the arguments.
PERCENTAGES = {
    **dict.fromkeys(("percentile", "percentiles", "percentiles_array"), 1),
    **dict.fromkeys(("percentilew", "percentilesw", "percentilesw_array"), 2),
}
SIZES = {
    **dict.fromkeys(("make_list", "make_set", "make_bag", "makelist", "makeset"), 1),
    **dict.fromkeys(("make_list_if", "make_set_if", "make_bag_if"), 2),
}
