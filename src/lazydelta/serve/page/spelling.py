"""Names of tables and columns as the two languages take them: quoted where they would mean something else.

Contract: a name that needs no quotes stands bare. Words of a language are quoted even where it might do
without: quotes are never wrong.
"""

from __future__ import annotations

import re
from contextlib import closing
from functools import cache

from lazydelta.engines.kql.tokens import quoted_name
from lazydelta.engines.kql.vocabulary import FUNCTIONS, OPERATORS, SOURCES, WORDS
from lazydelta.engines.session import SqlOptions, open_session
from lazydelta.serve.page.requests import Language

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SQL_WORDS_QUERY = (
    "select distinct lower(keyword_name) from duckdb_keywords() where keyword_category <> 'unreserved'"
)
_KQL_TYPES = (
    *("bool", "boolean", "date", "decimal", "double", "guid", "int", "long", "real", "string", "time"),
    *("timespan", "uuid", "true", "false", "null", "typeof"),
)
_KQL_MORE = (
    *("access", "alias", "cluster", "consume", "declare", "evaluate", "externaldata", "facet", "filter"),
    *("find", "fork", "from", "has_all", "has_cs", "hasprefix", "hassuffix", "id", "invoke", "like"),
    *("materialize", "nulls", "first", "last", "of", "partition", "pattern", "query_parameters", "reduce"),
    *("restrict", "scan", "title", "view"),
)
_KQL_WORDS = frozenset((*OPERATORS, *SOURCES, *FUNCTIONS, *WORDS, *_KQL_TYPES, *_KQL_MORE))


def spelled(name: str, language: Language) -> str:
    """The name as a query of that language holds it."""
    if language == "sql":
        is_bare = _PLAIN.match(name) and name.lower() not in _sql_words()
        return name if is_bare else '"' + name.replace('"', '""') + '"'
    return name if _PLAIN.match(name) and name not in _KQL_WORDS else quoted_name(name)


@cache
def _sql_words() -> frozenset[str]:
    """Those of the DuckDB that is installed, which it does not take as any name."""
    with closing(open_session(SqlOptions(threads=1))) as session:
        return frozenset(word for (word,) in session.execute(_SQL_WORDS_QUERY).fetchall())
