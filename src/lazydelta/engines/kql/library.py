"""What the translation library lacks or does otherwise than Kusto, mended in one place.

Three ways, in the order they happen: `mended_text` changes the query's text before it is parsed,
`mended_tree` changes the library's tree before SQL is made of it, `install` makes functions known to the
session that the SQL then calls. Contract: places in the text stay where they were; nothing reaches outside
the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lazydelta.engines.kql.places import Places
from lazydelta.engines.kql.tokens import replaced, tokens
from lazydelta.engines.kql.trees import changed
from lazydelta.engines.session import Duck

Node = Any  # Any: of the translation library, which is an extra
# Stands for `serialize`, and is as long.
SERIALIZED = "as __srlz"
_MACRO_CALL = re.compile(r"\bkql_(\w+)\(")


def mended_text(text: str) -> str:
    """The query as the library can parse it: its grammar has no `serialize` without columns."""
    words = tokens(text)
    after = [word.text for word in words[1:]] + [";"]
    spans = [
        (word.at, word.end, SERIALIZED)
        for word, next_text in zip(words, after, strict=True)
        if word.text == "serialize" and next_text in ("|", ")", ";", "}")
    ]
    return replaced(text, spans) if spans else text


def lifted_functions(text: str) -> tuple[str, list[str]]:
    """The query without functions that the library knows as stored ones only, and those as such."""
    from lazydelta.engines.kql.let_functions import lifted

    return lifted(text)


def mended_tree(query: Node) -> Node:
    """The query as the library translates it rightly."""
    from lazydelta.engines.kql.row_order import in_order

    return changed(in_order(query), _mended)


@contextmanager
def extended() -> Iterator[Places]:
    """While it lasts, the library reads and writes what is ours, too."""
    from lazydelta.engines.kql import extension

    with extension.extended() as places:
        yield places


def install(session: Duck, sql: str) -> None:
    """Make the functions that a query calls known to the session."""
    for name, overloads in called_macros(sql).items():
        session.execute(f"create or replace temp macro {name}{', '.join(overloads)}")


def called_macros(sql: str) -> dict[str, tuple[str, ...]]:
    """The macros that SQL calls, and those that they call, before them."""
    found: dict[str, tuple[str, ...]] = {}
    _collect(sql, found)
    return found


def _collect(sql: str, found: dict[str, tuple[str, ...]]) -> None:
    for name in dict.fromkeys(_MACRO_CALL.findall(sql)):
        if f"kql_{name}" in found:
            continue
        from lazydelta.engines.kql.added import MACROS

        overloads = MACROS.get(name)
        if overloads is not None:
            _collect(" ".join(overloads), found)
            found[f"kql_{name}"] = overloads


def _mended(node: Node) -> Node:
    from duckdb_kql import KqlUnsupportedError, ir

    if isinstance(node, ir.PrintSource):
        names = [one.name for one in node.expressions if one.name]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise KqlUnsupportedError("print", hint=f"the name {twice!r} is given twice")
    if isinstance(node, ir.Between) and _is_text(node.low) and _is_text(node.high):
        return _text_between(node)
    return node


def _text_between(node: Node) -> Node:
    """Kusto orders texts, and the seeds' queries ask for hours between two; the library refuses it."""
    from duckdb_kql import ir

    if node.negated:
        below, above = (ir.BinaryOp("<", node.value, node.low), ir.BinaryOp(">", node.value, node.high))
        return ir.BinaryOp("or", below, above)
    from_, to = ir.BinaryOp(">=", node.value, node.low), ir.BinaryOp("<=", node.value, node.high)
    return ir.BinaryOp("and", from_, to)


def _is_text(node: Node) -> bool:
    from duckdb_kql import ir

    node = node.value if isinstance(node, ir.LetRef) else node
    if isinstance(node, ir.Parameter):
        return bool(node.kind == "string")
    return isinstance(node, ir.Literal) and node.kind == "string"
