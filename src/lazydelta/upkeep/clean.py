"""Delete what is left of older sidecars, killed builds and logs that are no more.

Contract: `dry_run` deletes nothing and tells the same. Manifests go first; before parts go, manifests that
came meanwhile are looked at, so that what a build has just referenced stays. Killed in the middle, the next
run goes on; what is gone already is no error. Which files may go: upkeep/clean_plan.py.
"""

from __future__ import annotations

import math
import time

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.storage import Storage
from lazydelta.telemetry import log_event
from lazydelta.upkeep.clean_plan import HOUR_MS, CleanRules, Removal, removals
from lazydelta.upkeep.inventory import Inventory, delta_state, take_inventory

RETENTION_HOURS = 168.0
GRACE_HOURS = 24.0
_HOURS_MAX = 1_000_000_000.0


class CleanReport(msgspec.Struct, frozen=True, kw_only=True):
    """What went, or would go."""

    table: str
    folder: str
    is_dry_run: bool
    removed: tuple[Removal, ...]
    bytes_removed: int
    versions_kept: tuple[int, ...]  # whose manifests stay
    strangers: tuple[str, ...]  # files under names that are not ours; never touched
    elapsed_ms: float


def clean_sidecars(
    storage: Storage,
    *,
    config: SidecarConfig,
    retention_hours: float = RETENTION_HOURS,
    dry_run: bool = False,
    now_ms: int | None = None,
) -> CleanReport:
    """Delete what no reader needs any more, or only say what that is."""
    started = time.perf_counter()
    rules = CleanRules(
        retention_ms=int(checked_hours(retention_hours) * HOUR_MS),
        grace_ms=int(GRACE_HOURS * HOUR_MS),
        now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
    )
    inventory = take_inventory(storage, config)
    doomed = removals(inventory, rules, _delta_problems(storage, inventory))
    removed = doomed if dry_run else _delete(storage, config, doomed)
    gone = {removal.name for removal in removed}
    report = CleanReport(
        table=storage.root,
        folder=config.folder,
        is_dry_run=dry_run,
        removed=tuple(removed),
        bytes_removed=sum(removal.size_bytes for removal in removed),
        versions_kept=tuple(entry.version for entry in inventory.manifests if entry.info.name not in gone),
        strangers=tuple(info.name for info in inventory.strangers),
        elapsed_ms=(time.perf_counter() - started) * 1000,
    )
    log_event("sidecars cleaned", table=storage.root, files=len(removed), dry_run=dry_run)
    return report


def checked_hours(hours: float) -> float:
    """The same retention, or an `InvalidRequestError` where it is no time."""
    is_number = isinstance(hours, int | float) and not isinstance(hours, bool)
    if not is_number or not math.isfinite(hours) or not 0 <= hours <= _HOURS_MAX:
        raise InvalidRequestError(
            f"the retention is {hours!r} hours",
            "retention_hours",
            f"give a number of hours from 0 to {_HOURS_MAX:,.0f}",
        )
    return hours


def _delta_problems(storage: Storage, inventory: Inventory) -> dict[str, str]:
    states = ((file.parsed.name, delta_state(storage, file, inventory.log)) for file in inventory.deltas)
    return {name: state.problem for name, state in states if state.problem is not None}


def _delete(storage: Storage, config: SidecarConfig, doomed: list[Removal]) -> list[Removal]:
    removed = [removal for removal in doomed if removal.kind == "manifest" and storage.delete(removal.name)]
    rest = [removal for removal in doomed if removal.kind != "manifest"]
    if rest:
        inventory = take_inventory(storage, config)  # a build may have ended since the first look
        referenced = {name for entry in inventory.manifests for name in entry.references}
        for removal in rest:
            is_needed = removal.kind == "part" and removal.name.rpartition("/")[2] in referenced
            if not is_needed and storage.delete(removal.name):
                removed.append(removal)
    return removed
