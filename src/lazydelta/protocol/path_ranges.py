"""Which ranges of paths, as the log spells them, may hold a file that is known by its canonical path.

Why: Parquet tells the least and the greatest path of a row group, and the log spells paths as its writer did:
any byte may be escaped, a path below the table's root may be absolute.
Contract: `may_hold` is one-sided, it rules a range out only where no spelling of any of the paths lies in it.
`likely_hold` goes by the usual spellings alone. Ranges without both ends may hold anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from urllib.parse import quote, unquote_to_bytes

import msgspec
import numpy as np
import numpy.typing as npt

from lazydelta.protocol.paths import root_schemes

_Mask = npt.NDArray[np.bool_]
_ABSOLUTE = re.compile(rb"^(?:[A-Za-z][A-Za-z0-9+.-]*:/|/)")
_MAYBE_SCHEME = re.compile(rb"^[A-Za-z][A-Za-z0-9+.-]*(?::.*)?$", re.DOTALL)
_ESCAPE = ord("%")
_UNESCAPED = "/=:@!$&'()*+,;"  # what writers leave as it is, besides letters, digits and _.-~


class PathRange(msgspec.Struct, frozen=True):
    """From the least to the greatest path of a row group."""

    low: str | None
    high: str | None


class SortedPaths:
    """Canonical paths that are looked for, in an order that makes asking cheap."""

    def __init__(self, paths: Sequence[str], root: str) -> None:
        self._texts = sorted(path.encode() for path in paths)
        self._has_absolute = any(map(_ABSOLUTE.match, self._texts))
        self._usual = sorted({*self._texts, *(quote(path, safe=_UNESCAPED).encode() for path in paths)})
        self._schemes = [f"{scheme}:/".encode() for scheme in root_schemes(root)]

    def may_hold(self, ranges: Sequence[PathRange]) -> _Mask:
        """Which of the ranges may hold one of the paths, however it is spelled."""
        return np.array([self._may_lie_in(one) for one in ranges], np.bool_)

    def likely_hold(self, ranges: Sequence[PathRange]) -> _Mask:
        """Which of the ranges hold a usual spelling of one of the paths."""
        return np.array([self._lies_in(one) for one in ranges], np.bool_)

    def _lies_in(self, one: PathRange) -> bool:
        if one.low is None or one.high is None:
            return True
        at = bisect_left(self._usual, one.low.encode())
        return at < len(self._usual) and self._usual[at] <= one.high.encode()

    def _may_lie_in(self, one: PathRange) -> bool:
        if one.low is None or one.high is None:
            return True
        low, high = one.low.encode(), one.high.encode()
        start = _common_start(low, high)
        if self._has_absolute and (start[:1] in (b"", b"/") or _MAYBE_SCHEME.match(start)):
            return True
        if self._may_be_absolute(start):
            return True
        first, last = _canonical_starts(start, low, high)
        at = bisect_left(self._texts, first)
        return at < len(self._texts) and self._texts[at][: len(last)] <= last

    def _may_be_absolute(self, start: bytes) -> bool:
        """Whether a path that begins so may be an absolute spelling of one below the root."""
        folded = start.lower()
        return start[:1] in (b"", b"/") or any(
            folded.startswith(scheme) or scheme.startswith(folded) for scheme in self._schemes
        )


def _common_start(low: bytes, high: bytes) -> bytes:
    """What every path between the two begins with."""
    pairs = enumerate(zip(low, high, strict=False))
    return low[: next((at for at, (one, other) in pairs if one != other), min(len(low), len(high)))]


def _canonical_starts(start: bytes, low: bytes, high: bytes) -> tuple[bytes, bytes]:
    """How the canonical forms of relative paths between two spellings begin: from the first to the last.

    Past the common start the next byte is as it stands, or escaped. Where no escape can stand there, its
    range is known.
    """
    cut = start.rfind(b"%", -2)
    if cut >= 0:  # half of an escape
        decoded = unquote_to_bytes(start[:cut])
        return decoded, decoded
    decoded = unquote_to_bytes(start)
    following = low[len(start) : len(start) + 1], high[len(start) : len(start) + 1]
    if following[0] == b"" or following[0][0] <= _ESCAPE <= following[1][0]:
        return decoded, decoded
    return decoded + following[0], decoded + following[1]
