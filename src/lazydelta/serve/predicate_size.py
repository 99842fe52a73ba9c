"""How long a filter or a statement may be.

Why: both are parsed and bound before anything can stop it, a fifth of a millisecond for each condition.
Contract: counted without being parsed: words, numbers, texts and signs of SQL, values and keys of JSON.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from lazydelta import limits
from lazydelta.errors import InvalidRequestError

_WORD = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|[^\w\s]")


def checked_words(
    predicate: Any,  # Any: SQL, or JSON
    what: str = "the filter",
    where: str = "predicate",
) -> int:
    """How many words it has; raises where they are too many."""
    most = limits.SERVE_PREDICATE_WORDS_MAX
    count = _of_text(predicate, most) if isinstance(predicate, str) else _of_json(predicate, most)
    if count > most:
        raise InvalidRequestError(
            f"{what} has more than {most:,} words and signs",
            where,
            "ask in parts, or for a range of values instead of each of them",
        )
    return count


def _of_text(text: str, most: int) -> int:
    return sum(1 for _ in islice(_WORD.finditer(text), most + 1))


def _of_json(tree: Any, most: int) -> int:  # Any: JSON
    count, left = 0, [tree]
    while left and count <= most:
        node = left.pop()
        count += 1
        if isinstance(node, dict):
            count += len(node)
            left += node.values()
        elif isinstance(node, list):
            left += node
    return count
