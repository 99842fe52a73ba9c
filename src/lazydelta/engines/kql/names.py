"""Names of tables in the text of a query: `external_table('t')`, `table('t')`, `database('db').t`, `t`.

Why: the translation library knows bare names alone. Contract: each other form is replaced by the bare name of
the table in the catalog, in place (`tokens.replaced`), or is an error at its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lazydelta.engines.kql.bounds import check_text
from lazydelta.engines.kql.catalog import KqlCatalog, NamedTable, nearest
from lazydelta.engines.kql.errors import UNKNOWN_NAME, KqlError, kql_error, place_of, unsupported
from lazydelta.engines.kql.tokens import Token, quoted_name, replaced, string_value, tokens

_TABLE_CALLS = ("external_table", "table", "materialized_view")
_QUALIFIERS = ("cluster", "database")


class _Reference(msgspec.Struct, frozen=True):
    """A table named by calls, and where."""

    named: NamedTable
    start: int
    end: int
    is_plain: bool = False  # a bare name, which the library reads


def named_tables(query: str) -> tuple[NamedTable, ...]:
    """Every name in a query that may be a table's, before anything is known of the tables."""
    check_text(query)
    words = tokens(query)
    found = [reference.named for reference in _references(query, words)]
    has_union = any(word.text == "union" for word in words)
    for at, word in enumerate(words):
        before = words[at - 1].text if at else ";"
        if word.kind == "name" and before != ".":
            starred = at + 1 < len(words) and words[at + 1].text == "*" and words[at + 1].at == word.end
            found.append(NamedTable(f"{word.text}*" if starred else word.text))
        elif word.text == "[" and at + 2 < len(words) and words[at + 1].kind == "text":
            found.append(NamedTable(string_value(words[at + 1].text)))
        if _is_everything(words, at, before, has_union=has_union):
            found.append(NamedTable("*"))
    return tuple(dict.fromkeys(found))


def _is_everything(words: Sequence[Token], at: int, before: str, *, has_union: bool) -> bool:
    """`union *`, and `search` or `find` that nothing stands before, mean all tables."""
    word = words[at]
    if word.text in ("search", "find"):
        return before in (";", "(", "=")
    is_alone = at == 0 or words[at - 1].end < word.at or words[at - 1].kind != "name"
    after = words[at + 1].text if at + 1 < len(words) else ";"
    return has_union and word.text == "*" and is_alone and after in (";", "|", ",", ")")


def with_named_values(query: str, parameters: Mapping[str, object]) -> str:
    """The query with `table(name)` as `table('…')`, where the name is a text that is known beforehand."""
    words = tokens(query)
    values = _texts(words) | {name: value for name, value in parameters.items() if isinstance(value, str)}
    spans = [
        (word.at, word.end, f"'{values[word.text]}'")
        for at, word in enumerate(words)
        if word.kind == "name"
        and word.text in values
        and "'" not in values[word.text]
        and [one.text for one in words[at - 1 : at + 2]] == ["(", word.text, ")"]
        and at > 1
        and words[at - 2].text in _TABLE_CALLS
    ]
    return replaced(query, spans) if spans else query


def _texts(words: Sequence[Token]) -> dict[str, str]:
    """Names that `let` binds to a text, or a parameter has by default."""
    found = {}
    for at, word in enumerate(words):
        before = [one.text for one in words[max(0, at - 4) : at]]
        is_let = before[-3:-2] == ["let"] and before[-1] == "="
        is_default = before[-3:-1] == [":", "string"] and before[-1] == "="
        if word.kind == "text" and (is_let or is_default):
            found[words[at - (2 if is_let else 4)].text] = string_value(word.text)
    return found


def resolve_names(query: str, catalog: KqlCatalog) -> str:
    """The query with every table under its bare name."""
    spans = []
    for reference in _references(query, tokens(query)):
        named = reference.named
        if named.cluster is not None and not catalog.is_here(named.cluster):
            raise _elsewhere(query, reference)
        name = catalog.resolved(named.name, named.database)
        if name is None:
            raise _unknown(query, reference, catalog)
        spans.append((reference.start, reference.end, quoted_name(name)))
    return replaced(query, spans)


def _references(query: str, words: Sequence[Token]) -> Iterator[_Reference]:
    at = 0
    while at < len(words):
        word = words[at]
        is_begun = word.kind == "name" and (at == 0 or words[at - 1].text != ".")
        argument = _call_arguments(words, at) if is_begun else None
        if argument is None or word.text not in (*_TABLE_CALLS, *_QUALIFIERS):
            at += 1
            continue
        texts, at = argument
        if word.text in _TABLE_CALLS:
            if not texts:
                raise _no_name(query, word)
            yield _Reference(NamedTable(texts[0]), word.at, words[at - 1].end)
            continue
        qualifiers = {word.text: texts[0] if texts else ""}
        found = _qualified(query, words, at, qualifiers)
        if found is None:
            raise _no_name(query, word)
        name, at = found
        named = NamedTable(name, qualifiers.get("database"), qualifiers.get("cluster"))
        yield _Reference(named, word.at, words[at - 1].end)


def _qualified(
    query: str, words: Sequence[Token], at: int, qualifiers: dict[str, str]
) -> tuple[str, int] | None:
    """The name after `database('db').`, and the word after it."""
    while at + 1 < len(words) and words[at].text == ".":
        word = words[at + 1]
        argument = _call_arguments(words, at + 1)
        if word.text in _QUALIFIERS and argument is not None:
            texts, at = argument
            qualifiers[word.text] = texts[0] if texts else ""
        elif word.text in _TABLE_CALLS and argument is not None:
            return (argument[0][0], argument[1]) if argument[0] else None
        elif word.kind == "name":
            if argument is not None or _is_call(words, at + 1):
                raise unsupported(
                    f"database().{word.text}()",
                    query,
                    place_of(query, word.at),
                    why="a function of another database",
                    fix="call it by its bare name",
                )
            return word.text, at + 2
        elif word.text == "[" and at + 3 < len(words) and words[at + 2].kind == "text":
            return string_value(words[at + 2].text), at + 4
        else:
            return None
    return None


def _is_call(words: Sequence[Token], at: int) -> bool:
    return at + 1 < len(words) and words[at + 1].text == "("


def _call_arguments(words: Sequence[Token], at: int) -> tuple[list[str], int] | None:
    """The texts that a call of a name is given, and the word after it; None: it is no such call."""
    if not _is_call(words, at):
        return None
    texts: list[str] = []
    at += 2
    while at < len(words) and words[at].text != ")":
        if words[at].kind == "text":
            texts.append(string_value(words[at].text))
        elif words[at].text != ",":
            return None
        at += 1
    return (texts, at + 1) if at < len(words) else None


def _unknown(query: str, reference: _Reference, catalog: KqlCatalog) -> KqlError:
    named, at = reference.named, reference.start
    if named.database is not None and named.database not in catalog.databases:
        what, known = f"there is no database {named.database!r}", list(catalog.databases)
        hint = nearest(named.database, known, "databases")
    else:
        known = catalog.names if named.database is None else list(catalog.databases[named.database])
        what, hint = f"there is no table {named.name!r}", nearest(named.name, known, "tables")
    return kql_error(what, query, place_of(query, at), hint, UNKNOWN_NAME)


def _elsewhere(query: str, reference: _Reference) -> KqlError:
    return unsupported(
        "cluster()",
        query,
        place_of(query, reference.start),
        why=f"{reference.named.cluster!r} is not this server",
        fix="ask that cluster, or leave cluster('…') out to read the tables here",
    )


def _no_name(query: str, word: Token) -> KqlError:
    return kql_error(
        f"{word.text}() needs the name of a table as a plain text",
        query,
        place_of(query, word.at),
        "write external_table('name'), table('name') or database('db').name",
        UNKNOWN_NAME,
    )
