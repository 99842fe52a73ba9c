"""The words of a query in KQL, with their places.

Why: what the translation library does not know (`external_table`, `table`, options, the properties of
`render`) is read and replaced in the text before it parses. Contract: strings and comments are told apart
from everything else; a replacement is as long as what it replaces, so that places in errors stay right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>//[^\n]*)
      | (?P<text>[hH]?(?:```[\s\S]*?```|~~~[\s\S]*?~~~|@"(?:[^"\n]|"")*"|@'(?:[^'\n]|'')*'
                     |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
      | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<number>[0-9][A-Za-z0-9_]*(?:\.[0-9][A-Za-z0-9_]*)?)
      | (?P<sign>\.\.|==|!=|=~|!~|<=|>=|<\||=>|<>|.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "0": "\0"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)


class Token(msgspec.Struct, frozen=True):
    """A word: a name, a number, a text or a sign."""

    kind: str
    text: str
    at: int

    @property
    def end(self) -> int:
        """Where the next may begin."""
        return self.at + len(self.text)


def tokens(query: str) -> list[Token]:
    """The words of a query, without blanks and comments."""
    return list(_tokens(query))


def string_value(literal: str) -> str:
    """What a text says."""
    body = literal.removeprefix("h").removeprefix("H")
    if body.startswith(("```", "~~~")):
        return body[3:-3]
    if body.startswith("@"):
        quote = body[1]
        return body[2:-1].replace(quote * 2, quote)
    return _ESCAPE.sub(_escaped, body[1:-1])


def quoted_name(name: str) -> str:
    """A name as KQL takes any: ['a b']."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


def replaced(query: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """The text with parts replaced, each by what is as long and has as many lines."""
    parts, done = [], 0
    for start, end, instead in sorted(spans):
        old = query[start:end]
        # Blanks after it keep the rest in place, lines included.
        rest = "".join("\n" if character == "\n" else " " for character in old[len(instead) :])
        lost = old[: len(instead)].count("\n")
        parts += [query[done:start], instead, "\n" * lost, rest]
        done = end
    return "".join([*parts, query[done:]])


def _tokens(query: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(query):
        kind = found.lastgroup or "sign"
        if kind not in ("space", "comment"):
            yield Token(kind, found[0], found.start())


def _escaped(found: re.Match[str]) -> str:
    what = found[1]
    if what[0] in "ux" and len(what) > 1:
        return chr(int(what[1:], 16))
    return _ESCAPES.get(what, what)
