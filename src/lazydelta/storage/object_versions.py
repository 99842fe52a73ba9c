"""Which version of each object a scan has read from: bytes of two versions must never be taken for one file.

Why: a file is read in many ranges at many moments. If somebody replaces it in between, the ranges still have
the right lengths, and a mixture may even decode.
Contract: the e-tag of the first range or stream of an object is kept, and every later one must have the same,
also after one that had another: requests side by side cannot agree on a second version. It comes with the
answer, so that no request is added. What was read while the table was opened counts for each of its scans,
what one scan read does not count for the next. A bounded number of objects is remembered, those used last.
A caller that reads an object again from its start calls `forget` first. Whole objects (`get`) are one version
anyhow, and some of them may change (`_last_checkpoint`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from lazydelta import limits
from lazydelta.storage.interface import ObjectReplacedError


class ObjectVersions:
    """E-tags by the objects' addresses; those of `before` hold as well."""

    def __init__(self, before: ObjectVersions | None = None) -> None:
        self._before = before
        self._lock = threading.Lock()
        self._etags: OrderedDict[str, str] = OrderedDict()

    def check(self, where: str, etag: str | None) -> None:
        """Keep the e-tag if it is the object's first, or raise if it is another one."""
        if etag is None or self._first(where, etag) == etag:
            return
        if self._before is not None:
            self._before.forget(where)  # the next scan reads the object as it is now
        raise replaced(where)

    def forget(self, where: str) -> None:
        """The next read is of the object as it is now: it was written or deleted here, or is read again."""
        with self._lock:
            self._etags.pop(where, None)
        if self._before is not None:
            self._before.forget(where)

    def _first(self, where: str, etag: str) -> str:
        """The first e-tag, which is this one if there is none yet."""
        if self._before is not None:
            etag = self._before._known(where) or etag
        with self._lock:
            first = self._etags.setdefault(where, etag)
            self._etags.move_to_end(where)
            if len(self._etags) > limits.OBJECT_VERSIONS_MAX:
                self._etags.popitem(last=False)
        return first

    def _known(self, where: str) -> str | None:
        with self._lock:
            known = self._etags.get(where)
            if known is not None:
                self._etags.move_to_end(where)
                return known
        return None if self._before is None else self._before._known(where)


def replaced(where: str) -> ObjectReplacedError:
    """The object changed between two reads that belong together."""
    return ObjectReplacedError(
        "the object was replaced while it was being read",
        where,
        "open the table and read again; files of a Delta table must never change, so check who writes there",
    )
