"""One table of verdicts: what each action of a commit means for a lazy scan.

Unknown actions are ignored, as the protocol asks, and counted. A strict scan trips on everything but add,
remove and commitInfo (which stands in nearly every commit), on deletion vectors too, and continues in the
canonical order. What a reader cannot honour (an unknown reader feature,
an unknown kind of deletion vector) is an error and is raised where it is met, not here.
Spec: PROTOCOL.md, "Actions".
"""

from __future__ import annotations

from collections import Counter
from enum import Enum


class Verdict(Enum):
    """What an action does to the list of live files."""

    FILES = "decides which files are live"
    TABLE_STATE = "decides how files are read; known before any file comes out"
    NO_EFFECT = "does not concern readers of the newest rows"
    UNKNOWN = "not known to this reader; ignored, as the protocol asks"


VERDICTS = {
    "add": Verdict.FILES,
    "remove": Verdict.FILES,
    "metaData": Verdict.TABLE_STATE,
    "protocol": Verdict.TABLE_STATE,
    "txn": Verdict.NO_EFFECT,
    "cdc": Verdict.NO_EFFECT,
    "commitInfo": Verdict.NO_EFFECT,
    "domainMetadata": Verdict.NO_EFFECT,
    "checkpointMetadata": Verdict.NO_EFFECT,
    "sidecar": Verdict.NO_EFFECT,
    "deletionVector": Verdict.FILES,  # inside an add or remove: part of the file's key
}


_NEVER_TRIP = frozenset({"add", "remove", "commitInfo"})


class FeatureTripwire:
    """Watches the actions that go by. `tripped` says why a strict scan must fall back, if it must."""

    def __init__(self, *, strict: bool = False) -> None:
        self.unknown: Counter[str] = Counter()
        self.tripped: str | None = None
        self._strict = strict

    def watch(self, actions: Counter[str], version: int) -> bool:
        """Note the other actions of a slice; whether they trip the scan."""
        for name, count in actions.items():
            verdict = VERDICTS.get(name, Verdict.UNKNOWN)
            if verdict is Verdict.UNKNOWN:
                self.unknown[name] += count
            if self._strict and name not in _NEVER_TRIP and self.tripped is None:
                self.tripped = f"strict: commit {version} has the action {name}"
        return self.tripped is not None
