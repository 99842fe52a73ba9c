"""What may follow in a query in KQL, by what stands before the cursor.

Contract: pure; a guess by words, which never keeps anybody from typing something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lazydelta.engines.kql.vocabulary import FUNCTIONS, OPERATORS, SOURCES, WORDS

_AFTER_BAR = re.compile(r"\|\s*[\w-]*\Z")
_IN_TABLE_CALL = re.compile(r"(?:external_table|table)\(\s*['\"][^'\"]*\Z")
_AT_START = re.compile(r"(?:\A|;)\s*[#\w]*\Z")
_SUBQUERY = re.compile(r"\b(?:join|lookup|union)\b[^|]*\(\s*\w*\Z")


def candidates(before: str, word: str, columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Words that begin as `word` does; `before` is all that was typed, the word included."""
    return sorted({one for one in possible(before, columns) if one.startswith(word)})


def possible(before: str, columns: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Words that may stand there."""
    if _AFTER_BAR.search(before):
        return OPERATORS
    if _IN_TABLE_CALL.search(before) or _SUBQUERY.search(before):
        return list(columns)
    if _AT_START.search(before):
        return [*columns, *SOURCES]
    named = [names for table, names in columns.items() if re.search(rf"\b{re.escape(table)}\b", before)]
    made = re.findall(r"(\w+)\s*=(?![=~])", before)
    own = [name for names in (named or columns.values()) for name in names]
    return [*own, *made, *FUNCTIONS, *WORDS]
