"""Functions of `let` that give tables: `let F = (n:long) { T | take n }`, `let V = view () { … }`.

Why: the translation library reads those of `let` that give a scalar, and stored functions that give a
table. So the first kind is handed to it as the second. Contract: what is taken out of the text leaves
blanks, so that places stay.
"""

from __future__ import annotations

import re
from typing import Any

from duckdb_kql import lower
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.parser import parse

from lazydelta.engines.kql.lowering import source_text
from lazydelta.engines.kql.tokens import replaced

_TABULAR_WORDS = re.compile(r"^(range|print|datatable|union|search|find)\b")

_DECLARATIONS = ("LetFunctionDeclaration", "LetViewDeclaration")


def lifted(text: str) -> tuple[str, list[str]]:
    """The query without such functions, and their definitions as stored ones."""
    if not re.search(r"\blet\b[^=;]*=\s*(?:view\s*)?\(", text):
        return text, []
    spans, definitions = [], []
    names: set[str] = set()
    tree = parse(text).tree
    declared = [node for kind in _DECLARATIONS for node in lower._find_all(tree, kind)]
    for node in sorted(declared, key=lambda node: node.start.start):
        made = _definition(node, names)
        if made is not None:
            names.add(lower._rule_children(node)[0].getText())
            definitions.append(made)
            end = node.stop.stop + 1
            rest = re.match(r"\s*;", text[end:])
            spans.append((node.start.start, end + (rest.end() if rest else 0), ""))
    return (replaced(text, spans), definitions) if spans else (text, [])


def _definition(node: Any, names: set[str]) -> str | None:  # Any: ANTLR's trees have no types
    kids = lower._rule_children(node)
    name = kids[0].getText()
    parameters = [kid for kid in kids if lower._cls(kid) == "LetFunctionParameterList"]
    bodies = [kid for kid in kids if lower._cls(kid) == "LetFunctionBody"]
    for tabular in (found for one in parameters for found in lower._find_all(one, "TabularParameter")):
        raise KqlUnsupportedError(
            f"function:{name}", span=lower._span(tabular), hint="a parameter that is a table"
        )
    if not bodies:
        return None
    inner = [kid for kid in lower._rule_children(bodies[0]) if lower._cls(kid) != "LetFunctionBodyStatement"]
    if len(inner) != 1 or not _is_tabular(inner[0], node, names):
        return None
    listed = source_text(parameters[0]) if parameters else ""
    return f"function {name}({listed}) {source_text(bodies[0])}"


def _is_tabular(node: Any, declaration: Any, names: set[str]) -> bool:
    inner = lower._unparenthesize(node)
    if lower._cls(declaration) == "LetViewDeclaration" or lower._cls(inner) == "PipeExpression":
        return True
    text = source_text(inner).strip()
    return text.partition("(")[0].strip() in names or _TABULAR_WORDS.match(text) is not None
