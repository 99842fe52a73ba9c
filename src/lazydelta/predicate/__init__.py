"""The filter language, and which files may hold rows that match. Pure."""

from lazydelta.predicate.binding import bind
from lazydelta.predicate.bound import BoundPredicate
from lazydelta.predicate.column import Column, col
from lazydelta.predicate.expression import Expression
from lazydelta.predicate.facts import FileFacts
from lazydelta.predicate.forms import parse_where

__all__ = ["BoundPredicate", "Column", "Expression", "FileFacts", "bind", "col", "parse_where"]
