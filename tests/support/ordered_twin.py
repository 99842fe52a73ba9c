"""The order of a table's files, worked out the slow and obvious way; shares nothing with `lazydelta`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date
from typing import Any

from tests.support.keys import Action, FileKey

SortKey = tuple[int, Any, bytes]


def order_keys(
    live: dict[FileKey, Action], column: str | None, *, kind: str = "string", is_partition: bool = True
) -> dict[FileKey, SortKey]:
    """What each file is ordered by: null, NaN, values of the column; then its path as the log spells it."""
    return {
        key: _sort_key(_value(action, column, kind, is_partition), action) for key, action in live.items()
    }


def is_in_order(found: Sequence[FileKey], keys: dict[FileKey, SortKey], *, descending: bool) -> bool:
    """Whether these files come as their keys do, none missing and none twice; equal keys in any order."""
    told = [keys[key] for key in found]
    return told == sorted(keys.values(), reverse=descending) and len(set(found)) == len(found)


def _sort_key(value: Any, action: Action) -> SortKey:
    path = action["path"].encode()
    if value is None:
        return 0, 0, path
    return (1, 0, path) if isinstance(value, float) and math.isnan(value) else (2, value, path)


def _value(action: Action, column: str | None, kind: str, is_partition: bool) -> Any:
    if column is None:
        return None
    if is_partition:
        text = action["partitionValues"].get(column)
    else:
        text = _statistics(action).get("minValues", {}).get(column)
    if text is None or (text == "" and kind != "string"):
        return None
    readers = {"date": date.fromisoformat, "long": int, "double": float}
    return readers.get(kind, str)(text)


def _statistics(action: Action) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(action.get("stats") or "{}")
    except ValueError:
        return {}
    return found
