"""Words that may stand where the cursor is, as the query has to hold them.

Contract: a guess by words, which never keeps anybody from typing something else. What is offered can be put
in place of the word that is begun, opening quote included. A name that is a word of the language, too, is
offered as both. Nothing is offered inside of a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lazydelta.engines import sql_completion
from lazydelta.engines.kql import completion as kql_completion
from lazydelta.engines.kql.vocabulary import FUNCTIONS, OPERATORS, SOURCES, WORDS
from lazydelta.serve.page.requests import Language
from lazydelta.serve.page.spelling import spelled

_KQL_WORD = re.compile(r"[\w\-#]*\Z")
_KQL_QUOTE = re.compile(r"\[(['\"])((?:(?!\1)[^\n])*)\Z")
_KQL_AFTER_BAR = re.compile(r"\|\s*[\w\-]*\Z")
_KQL_IN_TEXT = re.compile(r"\(\s*['\"][^'\"\n]*\Z")
_SQL_WORD = re.compile(r"\w*\Z")
# What is closed: texts, names, remarks. A quote that is left is open.
_SQL_CLOSED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z)""", re.DOTALL)
_SQL_QUOTE = re.compile(r'"([^"]*)\Z')
_CANDIDATES_MAX = 50
_KQL_WORDS = frozenset((*OPERATORS, *SOURCES, *FUNCTIONS, *WORDS))
Candidate = dict[str, str]


def completions(language: Language, before: str, columns: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """`word`: what is begun there; `candidates`: what may stand in its place; `columns`: of each table."""
    if language == "sql" and _is_in_text(before):
        return {"word": "", "candidates": []}
    quoted = _open_quote(language, before)
    if quoted is not None:
        start, begun = quoted
    else:
        (begun,) = (_SQL_WORD if language == "sql" else _KQL_WORD).findall(before)[:1]
        start = len(before) - len(begun)
    known = before[:start] + begun
    possible = sql_completion.candidates if language == "sql" else kql_completion.candidates
    kinds = {name: "column" for names in columns.values() for name in names} | dict.fromkeys(columns, "table")
    is_bare = language == "kql" and bool(_KQL_AFTER_BAR.search(before) or _KQL_IN_TEXT.search(before))
    shown: list[Candidate] = []
    for name in possible(known, begun, columns):
        kind = kinds.get(name, "")
        if kind and not is_bare:
            shown.append({"text": spelled(name, language), "kind": kind})
        if quoted is None and (not kind or is_bare or _is_word(name, language, shown[-1]["text"])):
            shown.append({"text": name, "kind": kind if _KQL_IN_TEXT.search(before) else ""})
    return {"word": before[start:], "candidates": shown[:_CANDIDATES_MAX]}


def _is_word(name: str, language: Language, as_name: str) -> bool:
    """Whether the bare word means something else than the name does."""
    if as_name == name:
        return False
    keywords = sql_completion.vocabulary()[0] if language == "sql" else _KQL_WORDS
    return name in keywords


def _is_in_text(before: str) -> bool:
    """Whether the cursor is inside of a text in SQL, where no name and no word can stand."""
    open_quote = re.search("['\"]", _SQL_CLOSED.sub(" ", before))
    return open_quote is not None and open_quote[0] == "'"


def _open_quote(language: Language, before: str) -> tuple[int, str] | None:
    """Where a quoted name begins that is not closed yet, and what of it there is."""
    if language == "kql":
        found = _KQL_QUOTE.search(before)
        return None if found is None else (found.start(), found[2])
    found = _SQL_QUOTE.search(before)
    is_open = found is not None and before.count('"') % 2 == 1
    return (found.start(), found[1]) if found is not None and is_open else None
