"""The filter language, and which files may hold rows that match. Pure."""

from lazydelta.lazy_exports import lazy_exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lazydelta.predicate.binding import bind
    from lazydelta.predicate.bound import BoundPredicate
    from lazydelta.predicate.column import Column, col
    from lazydelta.predicate.expression import (
        And,
        Comparison,
        Constant,
        Expression,
        In,
        IsNull,
        Like,
        Not,
        Or,
        all_of,
        any_of,
    )
    from lazydelta.predicate.facts import FileFacts
    from lazydelta.predicate.forms import parse_where
    from lazydelta.predicate.lower_bounds import partition_lower_bounds
    from lazydelta.predicate.nodes import BoundColumn, columns_of
    from lazydelta.predicate.periods import event_time_of, period_format, period_starts, source_bounds
    from lazydelta.predicate.rows import matches

__all__ = [
    "And",
    "BoundColumn",
    "BoundPredicate",
    "Column",
    "Comparison",
    "Constant",
    "Expression",
    "FileFacts",
    "In",
    "IsNull",
    "Like",
    "Not",
    "Or",
    "all_of",
    "any_of",
    "bind",
    "col",
    "columns_of",
    "event_time_of",
    "matches",
    "parse_where",
    "partition_lower_bounds",
    "period_format",
    "period_starts",
    "source_bounds",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_exports(
        __name__,
        {
            "binding": "bind",
            "bound": "BoundPredicate",
            "column": "Column col",
            "expression": "And Comparison Constant Expression In IsNull Like Not Or all_of any_of",
            "facts": "FileFacts",
            "forms": "parse_where",
            "lower_bounds": "partition_lower_bounds",
            "nodes": "BoundColumn columns_of",
            "periods": "event_time_of period_format period_starts source_bounds",
            "rows": "matches",
        },
    )
