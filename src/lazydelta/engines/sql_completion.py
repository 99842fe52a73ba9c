"""What may follow in a statement of SQL, by what stands before the cursor.

Contract: a guess by words, which never keeps anybody from typing something else. Keywords and functions are
those of the DuckDB that is installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache

from lazydelta.engines.session import SqlOptions, open_session

_OF_TABLE = re.compile(r"\b(?:from|join)\s+[\w.\"]*\Z|\bfrom\s+[\w\s.\",]*,\s*\w*\Z", re.IGNORECASE)
_MEMBER = re.compile(r"(\w+)\.\w*\Z")
_ALIAS = re.compile(r"\b(\w+)\s+(?:as\s+)?(?=(\w+)\b)", re.IGNORECASE)
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_WORDS_QUERY = """
select distinct lower(keyword_name) from duckdb_keywords() where keyword_category = 'reserved'
union select unnest(['by', 'between', 'date', 'exists', 'interval', 'over', 'partition', 'timestamp'])
"""
_FUNCTIONS_QUERY = """
select distinct function_name from duckdb_functions()
where function_type in ('scalar', 'aggregate') and not starts_with(function_name, '__')
"""


def candidates(before: str, word: str, columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Words that begin as `word` does, whatever their cases; those of the tables come first."""
    begins, found = word.lower(), dict.fromkeys(_possible(before, columns))
    return [one for one in found if one.lower().startswith(begins)]


def _possible(before: str, columns: Mapping[str, Sequence[str]]) -> Sequence[str]:
    member = _MEMBER.search(before)
    if member is not None:
        return sorted(_columns_of(member[1], before, columns))
    if _OF_TABLE.search(before):
        return sorted(columns)
    own = sorted({name for names in columns.values() for name in names})
    keywords, functions = vocabulary()
    return [*own, *sorted(columns), *keywords, *functions]


def _columns_of(name: str, before: str, columns: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The columns of a table, by its name or by the one that the statement gives it."""
    by_name = {table.lower(): names for table, names in columns.items()}
    if name.lower() in by_name:
        return by_name[name.lower()]
    for table, alias in _ALIAS.findall(before):
        if alias.lower() == name.lower() and table.lower() in by_name:
            return by_name[table.lower()]
    return ()


@cache
def vocabulary() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keywords and functions of DuckDB."""
    with closing(open_session(SqlOptions(threads=1))) as session:
        return _words(session.execute(_WORDS_QUERY).fetchall()), _words(
            session.execute(_FUNCTIONS_QUERY).fetchall()
        )


def _words(rows: Sequence[tuple[str]]) -> tuple[str, ...]:
    return tuple(sorted(name for (name,) in rows if _NAME.match(name)))
