r"""Kusto's regular expressions as DuckDB's RE2 reads them: Unicode's words, digits and blanks, not ASCII's.

Kusto documents `\d` as any digit of Unicode, with `\w`, `\s` and `\b` alike, and classes with `&&`, `--` and
classes inside. Contract: what comes out matches the same texts. What RE2 cannot say is refused by its name;
of `\b` it only knows ASCII's, so that it is written out where it stands at an end of the pattern beside a
word, and elsewhere asks for a text whose words are ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import constant_string

ASCII_WORDS = "ascii words"
# Where a function takes a pattern, and the text for it.
_PLACES = {
    "extract": (0, 2),
    "extract_all": (0, -1),
    "replace_regex": (1, 0),
    "trim": (0, 1),
    "trim_start": (0, 1),
    "trim_end": (0, 1),
    "indexof_regex": (1, 0),
    "countof": (1, 0),
}
# Letters, marks, digits, joiners, and the symbols that Unicode calls alphabetic.
WORD = (
    r"\pL\pM\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}"
    r"\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}"
)
_BLANK = r"\pZ\t-\r\x{85}"
_SETS = {"d": r"\p{Nd}", "w": WORD, "s": _BLANK}
_BEFORE, _AFTER = rf"(?:\A|[^{WORD}])", rf"(?:\z|[^{WORD}])"
_BOUNDARY = r"\b"
_TOKEN = re.compile(
    r"""\\x\{[0-9A-Fa-f]+\}|\\u\{[0-9A-Fa-f]+\}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\[pP]\{\^?\w+\}|\\[pP]\w
      | \\b\{\w+(?:-\w+)?\} | \\. | \[:\^?\w+:\] | \(\?P?<\w+> | \(\?[a-zA-Z-]*[:)] | && | -- | ~~ | .""",
    re.VERBOSE | re.DOTALL,
)
_CODE_POINT = re.compile(r"\\(?:u\{([0-9A-Fa-f]+)\}|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_FLAGS = re.compile(r"\(\?[a-zA-Z-]*[xuR]")
_OFTEN = re.compile(r"(?:[?*+]|\{\d*,?\d*\})[?+]?")
_OPTIONAL = re.compile(r"[?*]|\{0?,|\{0\}")
_WORD_PART = re.compile(r"\w|\\[wd]|\[(?:[A-Za-z0-9_]-[A-Za-z0-9_]|[A-Za-z0-9_]|\\[wd])+\]")


def with_kustos_patterns(node: ir.Expr) -> ir.Expr:
    """A call or an operator whose pattern RE2 reads as Kusto does."""
    if isinstance(node, ir.BinaryOp) and node.op == "matches regex":
        pattern = _constant(node.right, "matches regex")
        made, is_ascii = as_re2(pattern, is_consumed=True)
        left = ir.FunctionCall(ASCII_WORDS, (node.left,)) if is_ascii else node.left
        return ir.BinaryOp(node.op, left, ir.Literal(made, "string"))
    if isinstance(node, ir.FunctionCall) and node.name.lower() in _PLACES:
        return _call(node)
    return node


def as_re2(pattern: str, *, is_consumed: bool = False) -> tuple[str, bool]:
    r"""The pattern, and whether it needs texts whose words are ASCII.

    `is_consumed`: what stands beside a match may be taken into it, so that `\b` at an end can be written out.
    """
    head = re.match(r"\(\?[ims]+\)", pattern)
    flags = head[0] if head else ""
    body = pattern[len(flags) :]
    begins, ends = _word_edges(body) if is_consumed else (False, False)
    inside = body[len(_BOUNDARY) if begins else 0 : len(body) - (len(_BOUNDARY) if ends else 0)]
    made = "".join(_translated(inside))
    is_ascii = any(token[:2] in (r"\b", r"\B") for token in _outside_classes(inside))
    return f"{flags}{_BEFORE if begins else ''}{made}{_AFTER if ends else ''}", is_ascii


def of_parse(fragment: str) -> str:
    """A part of the pattern of `parse kind=regex`."""
    made, is_ascii = as_re2(fragment)
    if is_ascii:
        raise KqlUnsupportedError("parse", hint=r"\b and \B in its pattern")
    return made


def _call(node: ir.FunctionCall) -> ir.FunctionCall:
    name = node.name.lower()
    at, text_at = _PLACES[name]
    is_plain = name == "countof" and not (len(node.args) == 3 and _is_regex_kind(node.args[2]))
    if is_plain or len(node.args) <= max(at, text_at) or len(node.args) < 2:
        return node
    pattern = _constant(node.args[at], name)
    group = node.args[1] if name == "extract" else None
    is_consumed = isinstance(group, ir.Literal) and isinstance(group.value, int) and group.value > 0
    made, is_ascii = as_re2(pattern, is_consumed=is_consumed)
    args = list(node.args)
    args[at] = ir.Literal(made, "string")
    if is_ascii:
        args[text_at] = ir.FunctionCall(ASCII_WORDS, (args[text_at],))
    return ir.FunctionCall(node.name, tuple(args))


def _is_regex_kind(node: ir.Expr) -> bool:
    return isinstance(node, ir.Literal) and str(node.value).lower() == "regex"


def _constant(node: ir.Expr, name: str) -> str:
    pattern = constant_string(node)
    if pattern is None:
        raise KqlUnsupportedError(name, hint="the pattern must be a literal")
    return pattern


def _word_edges(body: str) -> tuple[bool, bool]:
    r"""Whether `\b` stands at the start, at the end, with a word beside it, and nowhere else."""
    tokens = list(_outside_classes(body))
    count = tokens.count(_BOUNDARY)
    if not count or "|" in _top_level(tokens):
        return False, False
    begins, ends = tokens[0] == _BOUNDARY, len(tokens) > 1 and tokens[-1] == _BOUNDARY
    pieces = _pieces(tokens[begins : len(tokens) - ends])
    if count != begins + ends or not pieces:
        return False, False
    is_beside = (not begins or _is_word(pieces[0])) and (not ends or _is_word(pieces[-1], at_end=True))
    return (begins, ends) if is_beside else (False, False)


def _pieces(tokens: list[str]) -> list[tuple[list[str], str]]:
    """The parts of a pattern, a group as the parts in its brackets, each with how often it may come."""
    found: list[tuple[list[str], str]] = []
    at = 0
    while at < len(tokens):
        end = at + 1
        if tokens[at].startswith("(") and not tokens[at].endswith(")"):
            depth = 1
            while end < len(tokens) and depth:
                is_open = tokens[end].startswith("(") and not tokens[end].endswith(")")
                depth += is_open - (tokens[end] == ")")
                end += 1
        often = _OFTEN.match("".join(tokens[end:]))
        size = len(often[0]) if often else 0
        found.append((tokens[at:end], often[0] if often else ""))
        at = end + size
    return found


def _is_word(piece: tuple[list[str], str], *, at_end: bool = False) -> bool:
    """Whether a part is there for certain, and begins (or ends) with a character of a word."""
    tokens, often = piece
    if _OPTIONAL.match(often):
        return False
    if len(tokens) == 1:
        return _WORD_PART.fullmatch(tokens[0]) is not None
    branches: list[list[str]] = [[]]
    depth = 0
    for token in tokens[1:-1]:
        depth += (token.startswith("(") and not token.endswith(")")) - (token == ")")
        if token == "|" and not depth:
            branches.append([])
        else:
            branches[-1].append(token)
    parts = [_pieces(branch) for branch in branches]
    return all(one and _is_word(one[-1 if at_end else 0], at_end=at_end) for one in parts)


def _top_level(tokens: list[str]) -> list[str]:
    depth, found = 0, []
    for token in tokens:
        depth += (token.startswith("(") and not token.endswith(")")) - (token == ")")
        found += [token] if not depth else []
    return found


def _outside_classes(pattern: str) -> Iterator[str]:
    """The parts of a pattern that stand in no class; a class is one part."""
    tokens = iter(_TOKEN.findall(pattern))
    for token in tokens:
        yield token if token != "[" else "[" + "".join(_class_tokens(tokens)) + "]"


def _class_tokens(tokens: Iterator[str]) -> list[str]:
    """What stands in a class, to its end; a bracket that comes first is a member."""
    found: list[str] = []
    for token in tokens:
        if token == "]" and [one for one in found if one != "^"]:
            return found
        found.append(token)
    return found


def _translated(pattern: str) -> Iterator[str]:
    tokens = iter(_TOKEN.findall(pattern))
    for token in tokens:
        if token == "[":
            yield _class(_class_tokens(tokens))
        elif token[0] == "\\" and token[1:].lower() in _SETS:
            negated = "^" if token[1].isupper() else ""
            yield f"[{negated}{_SETS[token[1].lower()]}]"
        elif token.startswith(r"\b{") or _FLAGS.match(token):
            raise KqlUnsupportedError(f"regex {token}")
        else:
            yield _one(token)


def _class(members: list[str]) -> str:
    is_negated = members[:1] == ["^"]
    rest = members[1:] if is_negated else members
    for token in rest:
        if token in ("&&", "--", "~~", "["):
            raise KqlUnsupportedError(f"regex {token if token != '[' else '[[]]'}", hint="in a class")
    others = [token for token in rest if token in (r"\W", r"\S")]
    plain = "".join(_member(token) for token in rest if token not in others)
    if not others:
        return f"[{'^' if is_negated else ''}{plain}]"
    if is_negated:
        raise KqlUnsupportedError(f"regex {others[0]}", hint="in a class that is negated")
    parts = [f"[^{_SETS[token[1].lower()]}]" for token in others] + ([f"[{plain}]"] if plain else [])
    return f"(?:{'|'.join(parts)})"


def _member(token: str) -> str:
    if token == r"\D":
        return r"\P{Nd}"
    return _SETS[token[1]] if token in (r"\d", r"\w", r"\s") else _one(token)


def _one(token: str) -> str:
    """A part as RE2 writes it: it has no `\\u`."""
    found = _CODE_POINT.fullmatch(token)
    return token if found is None else rf"\x{{{next(group for group in found.groups() if group)}}}"
