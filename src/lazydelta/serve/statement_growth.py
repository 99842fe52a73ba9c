"""How large the values of a statement may become all together, by what its functions multiply.

Why: DuckDB works out constants while it plans, where nothing can interrupt it and its memory limit does not
count: `repeat(repeat('x', 1000), 1000)` is a value of a megabyte, and each further one multiplies. Names that
a statement gives to its own values make it the same without nesting.
Contract: the longest text times everything that multiplies, wherever it stands, is bounded; what cannot be
told is refused. A bound against accidents and idle malice, not a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.statement_bounds import (
    FORMATS,
    Node,
    arguments_of,
    name_of,
    nodes_of,
    number_of,
    text_of,
)

GROWTH_MAX = 64_000_000
_PADS = frozenset({"lpad", "rpad", "bitstring"})  # as large as they say, whatever they are given
_TIMES = frozenset({"repeat", "list_resize", "array_resize"})
_SERIES = frozenset({"range", "generate_series"})
_REPLACES = frozenset({"replace", "regexp_replace"})
_JOINS = frozenset(
    {"||", "concat", "concat_ws", "list_value", "list_pack", "array_value"}
    | {f"{kind}_{word}" for kind in ("list", "array") for word in ("concat", "cat")}
)
_REDUCES = frozenset({"list_reduce", "array_reduce", "reduce"})
_RECURSIVE = "RECURSIVE_CTE_NODE"


def check_growth(nodes: Sequence[Node], *, parameter_bytes: int = 0) -> None:
    """Raise where values of a statement of these nodes might become too large; outer ones come first."""
    own = _own_names(nodes)
    base = max([1, parameter_bytes, *(size for size in map(_size, nodes) if size is not None)])
    product = 1.0
    for factor in _factors(nodes, own):
        product *= factor
        if base * product > GROWTH_MAX:
            raise _refused("its functions multiply values to more than a server may hold")
    for node in nodes:
        is_repeated = node.get("type") == _RECURSIVE or name_of(node) in _REDUCES
        if is_repeated and any(_grows(inner) for inner in nodes_of(node)):
            raise _refused("it makes a value larger again and again")


def _factors(nodes: Iterable[Node], own: frozenset[str]) -> Iterator[float]:
    """What each function makes values larger by."""
    seen: set[int] = set()
    for node in nodes:
        name, arguments = name_of(node), arguments_of(node)
        if name in _TIMES:
            yield max([1.0, *map(number_of, arguments[1:2])])
        elif name in _SERIES:
            yield max([1.0, *map(number_of, arguments)])
        elif name in _REPLACES:
            yield _replaced(name, arguments)
        elif name in FORMATS and arguments:
            places = (text_of(arguments[0]) or "").count("{" if name == "format" else "%")
            yield max(1.0, places - len(arguments) + 2.0)
        elif name in _JOINS and id(node) not in seen:
            parts = list(_joined(node, seen))
            yield max(1.0, sum(1.0 for part in parts if _is_own(part, own)))


def _grows(node: Node) -> bool:
    """Whether a function gives more than it is given, of the same."""
    name, arguments = name_of(node), arguments_of(node)
    if name in _JOINS:
        names = [tuple(_column(part)) for part in _joined(node, set()) if _column(part)]
        return len(set(names)) < len(names)
    return name in _TIMES or (name in _REPLACES and _replaced(name, arguments) > 1)


def _replaced(name: str, arguments: Sequence[Node]) -> float:
    """How much longer the third argument is than what it stands for."""
    if len(arguments) < 3:
        return 1.0
    pattern, replacement = arguments[1:3]
    size = _size(replacement)
    if size is None:
        raise _refused(f"{name} needs a plain text to replace by")
    before = len(text_of(pattern) or "") if name == "replace" else 1
    return max(1.0, size / max(1, before))


def _size(node: Node) -> float | None:
    """Of a text, or of what is padded; None: that cannot be told."""
    if name_of(node) in _PADS:
        return max([1.0, *map(number_of, arguments_of(node)[1:2])])
    text = text_of(node)
    return None if text is None else float(len(text))


def _joined(node: Node, seen: set[int]) -> Iterator[Node]:
    """The parts of `a || b || c`, which are nested."""
    for argument in arguments_of(node):
        if name_of(argument) in _JOINS:
            seen.add(id(argument))
            yield from _joined(argument, seen)
        else:
            yield argument


def _own_names(nodes: Iterable[Node]) -> frozenset[str]:
    """Names that the statement gives to its own values, and to what its lambdas take."""
    found: set[str] = set()
    for node in nodes:
        found.add(str(node.get("alias") or "").lower())
        for key in ("aliases", "column_name_alias"):
            found |= {str(name).lower() for name in node.get(key) or []}
        if node.get("class") == "LAMBDA":
            found |= {name for inner in nodes_of(node.get("lhs")) for name in _column(inner)}
    return frozenset(found - {""})


def _is_own(node: Node, own: frozenset[str]) -> bool:
    names = _column(node)
    return bool(names) and names[-1] in own


def _column(node: Node) -> list[str]:
    return [str(name).lower() for name in node.get("column_names") or []]


def _refused(what: str) -> InvalidRequestError:
    return InvalidRequestError(f"the statement is too large: {what}", "SQL", "write a smaller statement")
