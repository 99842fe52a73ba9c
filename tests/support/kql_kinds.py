"""The types that a query's columns are told to have before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lazydelta.engines.kql.catalog import KqlCatalog
from lazydelta.engines.kql.library import extended, lifted_functions, mended_text
from lazydelta.engines.kql.names import resolve_names
from lazydelta.engines.kql.statements import taken_apart


def told_kinds(text: str, tables: Mapping[str, pa.Schema]) -> dict[str, str | None] | None:
    """Of each column; None where the columns are not known."""
    from duckdb_kql.lower import lower
    from duckdb_kql.stored_functions import parse_functions

    from lazydelta.engines.kql.typed_tree import typed

    bare, own = lifted_functions(mended_text(resolve_names(taken_apart(text).text, KqlCatalog(tables))))
    with extended() as places:
        return typed(text, lower(bare, None, parse_functions(own)), tables, places)[1]
