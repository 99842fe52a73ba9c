"""What the parser trips over, told from the words of a query: its own errors say what its grammar has.

Contract: looked at where a query is refused anyway, but for `check_operators`, which refuses what the
library would read as something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from lazydelta.engines.kql.errors import SYNTAX, KqlError, Place, kql_error, place_of, unsupported
from lazydelta.engines.kql.tokens import Token, tokens

# What has to stand after an operator, as an example.
_NEEDED = {
    "where": "a condition, as in where x > 1",
    "filter": "a condition, as in filter x > 1",
    "project": "columns, as in project x, y = z + 1",
    "project-away": "columns, as in project-away x, y*",
    "project-keep": "columns, as in project-keep x, y*",
    "project-rename": "names, as in project-rename new = old",
    "project-reorder": "columns, as in project-reorder x, y*",
    "extend": "columns, as in extend y = x + 1",
    "summarize": "aggregates or keys, as in summarize count() by x",
    "distinct": "columns, as in distinct x, y",
    "sort": "keys, as in sort by x desc",
    "order": "keys, as in order by x desc",
    "top": "a number and a key, as in top 10 by x",
    "take": "a number, as in take 10",
    "limit": "a number, as in limit 10",
    "join": "a table and keys, as in join (T) on x",
    "lookup": "a table and keys, as in lookup (T) on x",
    "union": "tables, as in union T, U",
    "parse": "a column and a pattern, as in parse x with 'a=' a:long",
    "mv-expand": "columns, as in mv-expand x",
    "search": "a condition, as in search 'error'",
}
# Kusto's, which the grammar lacks.
UNREAD = ("macro-expand", "parse-kv")
_SPELLED = re.compile(r"\w+(?:-[a-z]+)*")
_ENDS = ("|", ";", ")", "}")
# Words of the grammar that people give to columns.
_COLUMN_WORDS = (
    "accumulate bool boolean card consume count datascope date datetime decimal double dynamic filter find "
    "first flags float getschema guid int kind last like limit long materialize of order others panels "
    "print real regex relaxed sample scan search set simple string table take time timeline timespan title "
    "to top union"
)
_WORDS = frozenset(_COLUMN_WORDS.split())
_BEFORE_A_COLUMN = (
    "by , ( = == != < <= > >= + - * / and or not where filter project extend distinct summarize print "
    "away keep rename reorder expand on"
)
_BEFORE_COLUMNS = frozenset(_BEFORE_A_COLUMN.split())


def check_operators(text: str) -> None:
    """Raise where an operator has nothing to work with, or is one that the parser takes for names."""
    words = [Token("sign", ";", 0), *tokens(text), Token("sign", ";", len(text))]
    for at, (before, word) in enumerate(pairwise(words)):
        if word.kind != "name" or before.text not in ("|", ";"):
            continue
        found = _SPELLED.match(text, word.at)
        spelled = word.text if found is None else found[0]
        if spelled in UNREAD:
            raise unsupported(spelled, text, place_of(text, word.at))
        after = next(one for one in words[at + 2 :] if one.at >= word.at + len(spelled))
        if before.text == "|" and spelled in _NEEDED and after.text in _ENDS:
            what = f"nothing stands after {spelled!r}"
            fix = f"expected here: {_NEEDED[spelled]}"
            raise kql_error(what, text, place_of(text, word.at), fix, SYNTAX)


def as_a_column(words: Sequence[Token], start: int) -> str:
    """A hint, where a word of the language stands as a column."""
    ended = [*words, Token("sign", "|", 0)]
    for at, (word, after) in enumerate(pairwise(ended)):
        if word.at < start:
            continue
        is_by = word.text == "by" and after.kind == "sign" and after.text not in "([="
        before = words[at - 1].text if at else ""
        is_other = word.text in _WORDS and before in _BEFORE_COLUMNS and after.text != "("
        if is_by or is_other:
            name = word.text
            return f"; {name} is a word of the language, and a column of that name is written ['{name}']"
    return ""


def unclosed_text(text: str) -> KqlError | None:
    """A quote that begins a text which does not end on its line."""
    for word in tokens(text):
        if word.kind == "sign" and word.text in ("'", '"'):
            what = f"the text that begins with {word.text} is not closed on its line"
            return kql_error(what, text, place_of(text, word.at), f"close it with {word.text}", SYNTAX)
    return None


def second_naming(text: str, name: str) -> Place:
    """Where a part of a pipeline names a column that it has named before."""
    seen = [False]  # in each of the brackets that are open
    for before, word in pairwise([Token("sign", ";", 0), *tokens(text)]):
        if word.text in ("(", "[", "{"):
            seen.append(False)
        elif word.text in (")", "]", "}"):
            seen = seen[:-1] or [False]
        elif word.text in ("|", ";"):
            seen[-1] = False
        elif word.text == name and (before.text == "," or before.kind == "name"):
            if seen[-1]:
                return place_of(text, word.at)
            seen[-1] = True
    return None
