"""Where the expressions of a query stand in its text: the library's tree does not say.

Contract: noted while the tree is read, of the query's own text alone; functions that are kept elsewhere have
no place in it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from lazydelta.engines.kql.errors import Place

Node = Any  # Any: of the translation library, and of ANTLR


class Places:
    """The places of the nodes of one tree."""

    def __init__(self) -> None:
        self.text = ""
        self._found: dict[int, tuple[Node, Place]] = {}  # with the node, so that its id stays its own
        self._streams: dict[int, tuple[Node, bool]] = {}

    def note(self, node: Node, parsed: Node) -> None:
        """Remember where a node was read; brackets around it do not count."""
        start = getattr(parsed, "start", None)
        if start is not None and id(node) not in self._found and self._is_own(start.getInputStream()):
            self._found[id(node)] = (node, (start.line, start.column + 1))

    def moved(self, old: Node, new: Node) -> Node:
        """A node that stands for another, at its place."""
        if new is not old and id(old) in self._found:
            self._found.setdefault(id(new), (new, self._found[id(old)][1]))
        return new

    def of(self, node: Node) -> Place:
        """The place of a node, or of the first of its parts that has one."""
        known = self._found.get(id(node))
        if known is not None:
            return known[1]
        parts = node if isinstance(node, tuple | list) else ()
        if dataclasses.is_dataclass(node) and not isinstance(node, type):
            parts = [getattr(node, field.name) for field in dataclasses.fields(node)]
        return next(filter(None, map(self.of, parts)), None)

    def _is_own(self, stream: Node) -> bool:
        known = self._streams.get(id(stream))
        if known is None:
            known = self._streams[id(stream)] = (stream, stream.strdata == self.text)
        return known[1]
