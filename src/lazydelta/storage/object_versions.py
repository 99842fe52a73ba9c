"""Which version of each object a scan has read from: bytes of two versions must never be taken for one file.

Why: a file is read in many ranges at many moments. If somebody replaces it in between, the ranges still have
the right lengths, and a mixture may even decode.
Contract: the e-tag of the first range or stream of an object is remembered, and every later one must have the
same. It comes with the answer, so that no request is added. What was read while the table was opened counts
for each of its scans, what one scan read does not count for the next. A bounded number of objects is
remembered, those used last. An object that turned out to be replaced is forgotten, so that reading it anew
works. Whole objects (`get`) are one version anyhow, and some of them may change (`_last_checkpoint`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from lazydelta import limits
from lazydelta.storage.interface import ObjectReplacedError


class ObjectVersions:
    """E-tags by key; those of `before` hold as well."""

    def __init__(self, before: ObjectVersions | None = None) -> None:
        self._before = before
        self._lock = threading.Lock()
        self._etags: OrderedDict[str, str] = OrderedDict()

    def check(self, key: str, etag: str | None, where: str) -> None:
        """Remember the e-tag, or raise where it is another than before."""
        if etag is None:
            return
        known = self._known(key)
        if known is None:
            with self._lock:
                known = self._etags.setdefault(key, etag)  # two may be first
                if len(self._etags) > limits.OBJECT_VERSIONS_MAX:
                    self._etags.popitem(last=False)
        if known != etag:
            self.forget(key)
            raise replaced(where)

    def forget(self, key: str) -> None:
        """Whatever comes next is the object: it was written or deleted here, or is known to be another."""
        with self._lock:
            self._etags.pop(key, None)
        if self._before is not None:
            self._before.forget(key)

    def _known(self, key: str) -> str | None:
        with self._lock:
            known = self._etags.get(key)
            if known is not None:
                self._etags.move_to_end(key)
                return known
        return None if self._before is None else self._before._known(key)


def replaced(where: str) -> ObjectReplacedError:
    """The object changed between two reads that belong together."""
    return ObjectReplacedError(
        "the object was replaced while it was being read",
        where,
        "open the table and read again; files of a Delta table must never change, so check who writes there",
    )
