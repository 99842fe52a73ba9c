"""The filter language, and which files may hold rows that match. Pure."""

from lazydelta.predicate.binding import bind
from lazydelta.predicate.bound import BoundPredicate
from lazydelta.predicate.column import Column, col
from lazydelta.predicate.expression import Expression
from lazydelta.predicate.facts import FileFacts
from lazydelta.predicate.forms import parse_where
from lazydelta.predicate.lower_bounds import partition_lower_bounds
from lazydelta.predicate.nodes import BoundColumn, columns_of

__all__ = [
    "BoundColumn",
    "BoundPredicate",
    "Column",
    "Expression",
    "FileFacts",
    "bind",
    "col",
    "columns_of",
    "parse_where",
    "partition_lower_bounds",
]
