"""Walking and changing the translation library's tree, which is made of dataclasses.

Contract: a tree is not changed in place; what stays the same is the same object.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

Node = Any  # Any: of the translation library, which is an extra


def changed(node: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with `change` done to every node, innermost first."""
    return change(with_parts(node, lambda part: changed(part, change)))


def with_parts(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with `change` done to what is directly in it: fields of a dataclass, members of a sequence."""
    if isinstance(node, tuple | list):
        parts = [change(part) for part in node]
        if all(new is old for new, old in zip(parts, node, strict=True)):
            return node
        return tuple(parts) if isinstance(node, tuple) else parts
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        old = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
        new = {name: change(value) for name, value in old.items()}
        if any(new[name] is not old[name] for name in old):
            return dataclasses.replace(node, **new)
    return node


def nodes_of(tree: Node) -> Iterator[Node]:
    """Every dataclass in a tree, the tree itself first."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple | list):
            waiting.extend(reversed(node))
        elif dataclasses.is_dataclass(node) and not isinstance(node, type):
            yield node
            waiting.extend(getattr(node, field.name) for field in reversed(dataclasses.fields(node)))


def parts_of(node: Node) -> list[Node]:
    """The dataclasses directly in a node, in their order."""
    is_node = dataclasses.is_dataclass(node) and not isinstance(node, type)
    waiting = [getattr(node, field.name) for field in dataclasses.fields(node)][::-1] if is_node else []
    found = []
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple | list):
            waiting += reversed(part)
        elif dataclasses.is_dataclass(part) and not isinstance(part, type):
            found.append(part)
    return found
