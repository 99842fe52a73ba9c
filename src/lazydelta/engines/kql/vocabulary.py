"""Words of KQL: what an error suggests and what a prompt completes."""

from __future__ import annotations

OPERATORS = (
    *("as", "count", "distinct", "extend", "getschema", "invoke", "join", "limit", "lookup"),
    *("make-series", "mv-expand", "order", "parse", "parse-where", "project"),
    *("project-away", "project-keep", "project-rename", "project-reorder", "render", "sample"),
    *("sample-distinct", "search", "serialize", "sort", "summarize", "take", "top", "union", "where"),
)
SOURCES = ("database", "datatable", "external_table", "let", "print", "range", "set", "table", "union")
FUNCTIONS = (
    *(
        "ago",
        "arg_max",
        "arg_min",
        "avg",
        "bin",
        "bin_at",
        "case",
        "coalesce",
        "count",
        "countif",
        "datetime",
    ),
    *("dcount", "dynamic", "extract", "iff", "isempty", "isnotempty", "isnotnull", "isnull", "make_list"),
    *("make_set", "max", "min", "now", "parse_json", "percentile", "percentiles", "split", "startofday"),
    *("strcat", "strlen", "sum", "take_any", "todatetime", "tolong", "tolower", "toreal", "toscalar"),
    *("tostring", "toupper"),
)
WORDS = (
    *("and", "asc", "between", "by", "contains", "contains_cs", "desc", "endswith", "has", "has_any", "in"),
    *("kind", "matches regex", "not", "on", "or", "startswith", "startswith_cs", "step", "to", "with"),
)
