"""How large the values of a query may become, by what its functions repeat and join.

Why: rows are handed out by thousands, and what they take then is not counted by DuckDB's memory limit: a
text of a megabyte that stands once in a plan is gigabytes in a batch. Contract: sizes are told from the query
alone, in characters of literals and in times of a table's own values, and follow columns from operator to
operator; what is told by rows only is guarded where it is worked out. A bound against
accidents and idle malice, not a proof.
"""

from __future__ import annotations

from typing import Any

from lazydelta import limits
from lazydelta.engines.kql.constants import Constants
from lazydelta.engines.kql.errors import TOO_LARGE, kql_error
from lazydelta.engines.kql.problems import place_of_name
from lazydelta.engines.kql.ranges import value_count
from lazydelta.engines.kql.trees import nodes_of, parts_of

Node = Any  # Any: of the translation library, which is an extra
_TEXTS = ("string", "dynamic", None)
_JOINS = frozenset(
    {"strcat", "strcat_delim", "array_concat", "pack_array", "pack", "bag_pack", "bag_pack_columns"}
    | {"bag_merge", "set_union", "zip"}
)
_JOINED = 4  # texts as large as may be made, in one
_DIGITS_OF_A_MEMBER = 8  # of an array of numbers, with what stands between
_SHARE_OF_MATCHES = 8  # a match of a pattern is taken to have so many characters


def check_growth(text: str, query: Node, constants: Constants) -> None:
    """Raise where a function makes values too large."""
    _Growth(text, constants, is_single=_is_single(query)).of(query)


class _Growth:
    """Sizes of the columns so far."""

    def __init__(self, text: str, constants: Constants, *, is_single: bool) -> None:
        self._text = text
        self._constants = constants
        self._is_single = is_single
        self._columns: dict[str, float] = {}

    def of(self, query: Node) -> None:
        """Go through a query; its own parts come before what reads them."""
        from duckdb_kql import ir

        for _, value in query.lets:
            if isinstance(value, ir.Query):
                self.of(value)
        for part in (query.source, *query.operators):
            self._go_through(part)

    def _go_through(self, part: Node) -> None:
        from duckdb_kql import ir

        made: dict[str, float] = {}
        for inner in parts_of(part):
            if isinstance(inner, ir.Query):
                self.of(inner)
            elif isinstance(inner, ir.NamedExpr):
                size = self._size(inner.expr)
                if inner.name:
                    made[inner.name] = size
            else:
                self._size(inner)
        if isinstance(part, ir.ProjectRename):
            made = {new: self._columns.get(old, 1.0) for old, new in part.renames}
        for name, size in made.items():
            self._columns[name] = max(size, self._columns.get(name, 1.0))

    def _size(self, node: Node) -> float:
        from duckdb_kql import ir

        from lazydelta.engines.kql.kinds import kind_of

        if isinstance(node, ir.Literal):
            return float(len(node.value)) if isinstance(node.value, str) else 1.0
        if isinstance(node, ir.ColumnRef):
            return self._columns.get(node.name, 1.0)
        if isinstance(node, ir.Query):
            self.of(node)
            return 1.0
        sizes = [self._size(part) for part in parts_of(node)]
        if isinstance(node, ir.FunctionCall):
            size = self._called(node, sizes)
            is_joined = node.name.lower() in _JOINS
            if size > self._text_max * (_JOINED if is_joined else 1) and size > max([1.0, *sizes]):
                raise self._refused(node.name, f"{node.name} makes values too large")
        else:
            size = max([1.0, *sizes])
        return size if not isinstance(node, ir.Expr) or kind_of(node) in _TEXTS else 1.0

    def _called(self, node: Node, sizes: list[float]) -> float:
        name, args = node.name.lower(), node.args
        largest = max([1.0, *sizes])
        if name == "range" and len(args) > 1:
            return self._range(args)
        if name == "strrep" and len(args) > 1:
            times = self._constants.value(args[1])
            # What rows tell is guarded when it is worked out.
            return largest * max(1.0, float(times)) if isinstance(times, int | float) else self._text_max
        if name in ("replace", "replace_string", "replace_regex") and len(args) == 3:
            old = sizes[1] if name != "replace_regex" else _SHARE_OF_MATCHES
            return sizes[0] * max(1.0, sizes[2] / max(1.0, old))
        return sum(sizes) if name in _JOINS else largest

    def _range(self, args: Any) -> float:  # Any: nodes
        """`range(1, 10)` makes an array out of two numbers."""
        values = [self._constants.value(argument) for argument in args]
        count = value_count(values[0], values[1], values[2] if len(values) > 2 else 1)
        most = limits.KQL_ARRAY_MAX if self._is_single else limits.KQL_ROW_ARRAY_MAX
        if count is not None and count > most:
            where = "" if self._is_single else " in each row"
            raise self._refused("range", f"range gives {count:,.0f} values{where}, more than {most:,}")
        return _DIGITS_OF_A_MEMBER * (count or 1.0)

    @property
    def _text_max(self) -> float:
        return limits.KQL_GROWTH_MAX if self._is_single else limits.KQL_ROW_TEXT_MAX

    def _refused(self, name: str, what: str) -> Exception:
        at = place_of_name(self._text, name)
        return kql_error(
            f"the query is too large: {what}", self._text, at, "write a smaller query", TOO_LARGE
        )


def _is_single(query: Node) -> bool:
    """Whether it is about one row that it makes itself."""
    from duckdb_kql import ir

    sources = [node.source for node in nodes_of(query) if isinstance(node, ir.Query)]
    return all(isinstance(source, ir.PrintSource) for source in sources)
