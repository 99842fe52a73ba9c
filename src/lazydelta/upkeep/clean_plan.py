"""Which files of a sidecar's folder may go, and why: pure, from an inventory and the time.

Only the newest valid sidecar is needed; an older one stays for `retention` after a newer one replaced it,
for readers that began before. Whatever a build under way may have just written stays for `grace`. Files
under names that are not ours never go.
Contract: manifests come before parts, so that a kill between two deletions leaves no manifest without its
parts. A part that a kept manifest names never goes; while a manifest of another format is there, whose
parts are unknown, no part goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from lazydelta.storage import ObjectInfo
from lazydelta.upkeep.inventory import Flaw, Inventory, ListedManifest

HOUR_MS = 3_600_000


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """One file that may go."""

    name: str  # below the table's root
    kind: str  # "manifest", "part", "delta" or "temporary"
    size_bytes: int
    reason: str


class CleanRules(msgspec.Struct, frozen=True, kw_only=True):
    """Ages, in milliseconds, as of `now_ms`."""

    retention_ms: int
    grace_ms: int
    now_ms: int

    def is_past_grace(self, info: ObjectInfo) -> bool:
        """Whether no build under way can have written it."""
        return self.now_ms - info.modified_ms > self.grace_ms


def removals(inventory: Inventory, rules: CleanRules, delta_problems: Mapping[str, str]) -> list[Removal]:
    """What may go, in the order in which it must go. `delta_problems` are of delta files, by base name."""
    doomed = dict(_doomed_manifests(inventory, rules))
    kept = [entry for entry in inventory.manifests if entry.version not in doomed]
    return [
        *(
            _removal(entry.info, "manifest", doomed[entry.version])
            for entry in inventory.manifests
            if entry.version in doomed
        ),
        *_parts(inventory, kept, rules),
        *_deltas(inventory, rules, delta_problems),
        *_temporary(inventory, rules),
    ]


def _doomed_manifests(inventory: Inventory, rules: CleanRules) -> Iterator[tuple[int, str]]:
    for entry in inventory.manifests:
        reason = (
            _flaw_reason(entry, rules) if entry.flaw is not None else _age_reason(entry, inventory, rules)
        )
        if reason is not None:
            yield entry.version, reason


def _flaw_reason(entry: ListedManifest, rules: CleanRules) -> str | None:
    # A listing may show a manifest before the parts that were put just before it: the grace covers that, too.
    if entry.flaw is Flaw.FOREIGN_FORMAT or not rules.is_past_grace(entry.info):
        return None
    return f"of no use: {entry.problem}"


def _age_reason(entry: ListedManifest, inventory: Inventory, rules: CleanRules) -> str | None:
    newer = [
        other.info.modified_ms
        for other in inventory.manifests
        if other.is_valid and other.version > entry.version
    ]
    if not newer or rules.now_ms - min(newer) <= rules.retention_ms:
        return None
    hours = (rules.now_ms - min(newer)) // HOUR_MS
    return f"replaced {hours:,} hours ago by the sidecar of a newer version"


def _parts(inventory: Inventory, kept: list[ListedManifest], rules: CleanRules) -> Iterator[Removal]:
    if any(entry.flaw is Flaw.FOREIGN_FORMAT for entry in kept):
        return
    referenced = {name for entry in kept for name in entry.references}
    known = {name for entry in inventory.manifests for name in entry.references}
    for name, file in inventory.parts.items():
        if name in referenced or not rules.is_past_grace(file.info):
            continue
        reason = "no kept manifest names it" if name in known else "no manifest names it"
        yield _removal(file.info, "part", reason)


def _deltas(inventory: Inventory, rules: CleanRules, delta_problems: Mapping[str, str]) -> Iterator[Removal]:
    newest = inventory.newest_valid
    for file in inventory.deltas:
        assert file.parsed.until is not None, "the name of a delta file has two versions"
        if not rules.is_past_grace(file.info):
            continue
        problem = delta_problems.get(file.parsed.name)
        if newest is not None and file.parsed.until <= newest.version:
            yield _removal(file.info, "delta", f"the sidecar of version {newest.version} holds what it holds")
        elif problem is not None:
            yield _removal(file.info, "delta", f"of no use: {problem}")


def _temporary(inventory: Inventory, rules: CleanRules) -> Iterator[Removal]:
    for info in inventory.temporary:
        if rules.is_past_grace(info):
            yield _removal(info, "temporary", "a writer was killed before it was done")


def _removal(info: ObjectInfo, kind: str, reason: str) -> Removal:
    return Removal(name=info.name, kind=kind, size_bytes=info.size_bytes, reason=reason)
