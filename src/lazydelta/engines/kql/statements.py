"""What stands around a query: `set` statements before it, `render` after it, brackets around its source.

Contract: they are taken out of the text in place, so that the library sees the query alone; an option that
would change the answer and is not honoured is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lazydelta.engines.kql.errors import SYNTAX, KqlError, kql_error, place_of, unsupported
from lazydelta.engines.kql.tokens import Token, replaced, string_value, tokens

# Options that the library is told of, and those that whoever runs the query honours.
_OF_LIBRARY = frozenset({"query_now"})
_HONOURED = frozenset(
    {
        "query_explain",
        "query_take_max_records",
        "notruncation",
        "truncationmaxrecords",
        "truncationmaxsize",
        "truncation_max_records",
        "truncation_max_size",
        "servertimeout",
        "norequesttimeout",
    }
)
# `render`'s properties, as Kusto's answers name them, with what they are where the query does not say.
NO_VISUALIZATION: dict[str, Any] = {  # Any: text, numbers, true and false
    "Visualization": None,
    "Title": None,
    "XColumn": None,
    "Series": None,
    "YColumns": None,
    "AnomalyColumns": None,
    "XTitle": None,
    "YTitle": None,
    "XAxis": None,
    "YAxis": None,
    "Legend": None,
    "YSplit": None,
    "Accumulate": False,
    "IsQuerySorted": False,
    "Kind": None,
    "Ymin": "NaN",
    "Ymax": "NaN",
    "Xmin": None,
    "Xmax": None,
}
_PROPERTY_NAMES = {name.lower(): name for name in NO_VISUALIZATION}


class Statements(msgspec.Struct, frozen=True):
    """A text, taken apart."""

    text: str  # the query alone, every word at its place
    settings: Mapping[str, Any]  # Any: text, numbers, true and false
    visualization: Mapping[str, Any] | None


def taken_apart(text: str) -> Statements:
    """The query without its options and its drawing."""
    words = tokens(text)
    _refuse_command(text, words)
    settings: dict[str, Any] = {}
    spans = []
    for name, value, start, end in _options(text, words):
        if name not in _OF_LIBRARY:
            spans.append((start, end, ""))
        settings[name] = value
    visualization = None
    for at, word in enumerate(words):
        if word.text == "render" and at and words[at - 1].text == "|":
            visualization, end = _drawing(text, words, at)
            spans.append((words[at - 1].at, end, ""))
    spans += _brackets(words)
    left = replaced(text, spans)
    if not any(word.text != ";" for word in tokens(left)):
        raise _empty(text)
    return Statements(left, settings, visualization)


def _refuse_command(text: str, words: Sequence[Token]) -> None:
    if not words:
        raise _empty(text)
    if words[0].text == ".":
        command = "".join(word.text for word in words[:2])
        raise unsupported(
            command,
            text,
            place_of(text, words[0].at),
            why="it is a management command, and only queries run here",
            fix="write a query, as in: TABLE | take 10; tables are written by Spark or another Delta writer",
        )


def _empty(text: str) -> KqlError:
    return kql_error("the query is empty", text, None, "write one, as in: TABLE | take 10", SYNTAX)


def _options(text: str, words: Sequence[Token]) -> Iterator[tuple[str, Any, int, int]]:
    """Each `set name = value;` with its place."""
    from duckdb_kql.options import OPTION_SUPPORT, OptionSupport

    at = 0
    while at + 1 < len(words) and words[at].text in ("set", ";"):
        if words[at].text == ";":
            at += 1
            continue
        start, name = words[at].at, words[at + 1].text.lower()
        end = next((i for i in range(at + 1, len(words)) if words[i].text == ";"), len(words))
        value = _option_value(text, words[at + 3 : end]) if end > at + 2 else True
        support, reason = OPTION_SUPPORT.get(name, (None, ""))
        if support == OptionSupport.REFUSED and name not in _HONOURED:
            raise unsupported(f"set {name}", text, place_of(text, start), why=reason)
        last = words[end].end if end < len(words) else len(text)
        yield name, value, start, last
        at = end + 1


def _option_value(text: str, words: Sequence[Token]) -> Any:  # Any: text, numbers, true and false
    if not words:
        return None
    if len(words) == 1:
        return _plain(words[0])
    return text[words[0].at : words[-1].end]


def _drawing(text: str, words: Sequence[Token], at: int) -> tuple[dict[str, Any], int]:
    """What `render KIND with (…)` asks for, and where it ends."""
    if at + 1 >= len(words) or words[at + 1].kind != "name":
        raise kql_error(
            "render needs the kind of a chart",
            text,
            place_of(text, words[at].at),
            "as in: | render timechart",
            SYNTAX,
        )
    found = {**NO_VISUALIZATION, "Visualization": words[at + 1].text}
    at += 2
    is_listed = at < len(words) and words[at].text == "with"
    at += 2 if is_listed else 0
    while at + 2 < len(words) and words[at].kind == "name" and words[at + 1].text == "=":
        name, (value, at) = words[at].text, _property(words, at + 2)
        if name.lower() not in _PROPERTY_NAMES:
            raise unsupported(f"render's {name}", text, place_of(text, words[at - 1].at))
        found[_PROPERTY_NAMES[name.lower()]] = value
        at += 1 if at < len(words) and words[at].text == "," else 0
    if is_listed:
        if at >= len(words) or words[at].text != ")":
            raise kql_error(
                "render's properties do not end",
                text,
                place_of(text, words[at - 1].at),
                "expected here: )",
                SYNTAX,
            )
        at += 1
    return found, words[at - 1].end


def _property(words: Sequence[Token], at: int) -> tuple[Any, int]:
    """A value, or columns by commas, and the word after it."""
    if words[at].kind != "name":
        return _plain(words[at]), at + 1
    names = [words[at].text]
    at += 1
    while at + 1 < len(words) and words[at].text == "," and words[at + 1].kind == "name":
        if at + 2 < len(words) and words[at + 2].text == "=":  # the next property
            break
        names.append(words[at + 1].text)
        at += 2
    return (_plain_name(names[0]) if len(names) == 1 else ",".join(names)), at


def _brackets(words: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """The brackets around a whole source, `((T | take 5) | count)`, which change nothing."""
    for at, word in enumerate(words):
        before = words[at - 1].text if at else ";"
        is_start = before == ";" or (before == "=" and at > 2 and words[at - 3].text == "let")
        if word.text != "(" or not (is_start or before == "("):
            continue
        end = _closing(words, at)
        after = words[end + 1].text if end is not None and end + 1 < len(words) else ";"
        if end is not None and after in (("|", ";") if is_start else ("|",)):
            yield word.at, word.end, " "
            yield words[end].at, words[end].end, " "


def _closing(words: Sequence[Token], at: int) -> int | None:
    depth = 0
    for index in range(at, len(words)):
        depth += (words[index].text in ("(", "[", "{")) - (words[index].text in (")", "]", "}"))
        if depth == 0:
            return index
    return None


def _plain(word: Token) -> Any:  # Any: text, numbers, true and false
    if word.kind == "text":
        return string_value(word.text)
    if word.text.isdecimal():
        return int(word.text)
    return _plain_name(word.text)


def _plain_name(name: str) -> bool | str:
    return {"true": True, "false": False}.get(name.lower(), name)
