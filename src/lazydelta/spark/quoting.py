"""Names as Spark's SQL takes them, whatever characters they have."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(name: str) -> str:
    """One name."""
    return f"`{name.replace('`', '``')}`"


def quoted_path(names: Iterable[str]) -> str:
    """A column, or a field inside one."""
    return ".".join(map(quoted, names))


def delta_table_name(path: str) -> str:
    """A Delta table by its path."""
    return f"delta.{quoted(path)}"
