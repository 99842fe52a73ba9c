"""Translations that are kept: dashboards ask the same queries again and again.

Contract: one is used again for the same text, options of its language and parameters, by who sees the same
tables, while the tables that it reads have the same columns. What depends on the moment, on chance or on
stored functions is translated anew each time. Bounded.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

import msgspec
import pyarrow as pa

from lazydelta.engines.kql.translate import KqlCatalog, Translated

_KEPT_MAX = 256
_TEXT_MAX = 16_384  # characters; longer ones are not kept
_MOMENTARY = re.compile(r"now|ago|rand|new_guid|sample|current_|ingestion_time", re.IGNORECASE)
Key = tuple[object, ...]


class _Kept(msgspec.Struct, frozen=True):
    translated: Translated
    schemas: dict[str, pa.Schema]


class Translations:
    """Those of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()

    def get(
        self,
        text: str,
        catalog: KqlCatalog,
        parameters: Mapping[str, object],
        translate: Callable[[], Translated],
    ) -> Translated:
        """The one that is kept, or what `translate` gives."""
        if catalog.functions or len(text) > _TEXT_MAX or _MOMENTARY.search(text):
            return translate()
        # By their spelling: 1, 1.0 and true are one to a dictionary.
        given = tuple(sorted((name, repr(value)) for name, value in parameters.items()))
        key = (text, tuple(catalog.tables), _databases(catalog), given)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and all(catalog.tables[name] == kept.schemas[name] for name in kept.schemas):
            return kept.translated
        translated = translate()
        schemas = {name: catalog.tables[name] for name in translated.tables}
        with self._lock:
            self._kept[key] = _Kept(translated, schemas)
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        return translated


def _databases(catalog: KqlCatalog) -> Key:
    return tuple((name, tuple(tables)) for name, tables in catalog.databases.items())
