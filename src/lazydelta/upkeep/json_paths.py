"""The columns that a JSON document of statistics speaks of."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

_Path = tuple[str, ...]


def json_stats_paths(text: str) -> Iterator[_Path]:
    """Physical paths of every column with a bound or a null count; none where the text is no statistics."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    for kind in ("minValues", "maxValues", "nullCount"):
        yield from _leaf_paths(document.get(kind) if isinstance(document, dict) else None)


def _leaf_paths(values: object) -> Iterator[_Path]:
    for name, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, dict):
            yield from ((name, *path) for path in _leaf_paths(value))
        else:
            yield (name,)
