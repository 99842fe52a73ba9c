"""What a verification found: every difference counted, the first ones named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

NAMED_MAX = 20
KINDS = ("manifest", "part", "row group", "delta", "missing", "extra", "twice", "differs")


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it should be."""

    kind: str  # one of KINDS
    path: str  # of the data file as the log spells it, or of the sidecar's own file
    what: str


class Findings:
    """Differences as they are met; of each kind the first `named_max` are kept, the rest counted."""

    def __init__(self, named_max: int = NAMED_MAX) -> None:
        self.counts: Counter[str] = Counter()
        self._named_max = named_max
        self._named: list[Difference] = []

    @property
    def total(self) -> int:
        """How many differences there are."""
        return self.counts.total()

    def note(self, kind: str, path: str, what: str) -> None:
        """One difference."""
        self.note_many(kind, 1, [(path, what)])

    def note_many(self, kind: str, count: int, samples: Iterable[tuple[str, str]]) -> None:
        """`count` differences of one kind; as many `samples` (path, what) are pulled as are still kept."""
        if count == 0:
            return
        room = self._named_max - self.counts[kind]
        self.counts[kind] += count
        for (path, what), _ in zip(samples, range(room), strict=False):
            self._named.append(Difference(kind=kind, path=path, what=what))

    def named(self) -> Iterator[Difference]:
        """The first differences, some of every kind; those of the sidecar's own files come first."""
        in_turn: list[tuple[int, Difference]] = []
        met: Counter[str] = Counter()
        for found in self._named:
            in_turn.append((met[found.kind], found))
            met[found.kind] += 1
        chosen = sorted(in_turn, key=lambda item: item[0])[: self._named_max]
        yield from sorted((found for _, found in chosen), key=lambda found: KINDS.index(found.kind))
