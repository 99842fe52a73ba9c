"""What the stats sidecar does for queries, or would: missing, stale, not usable, not sorted by time."""

from __future__ import annotations

from collections.abc import Iterator

from lazydelta.log.fallback import Fallback, FallbackKind
from lazydelta.upkeep.doctor_facts import LogFacts, SidecarFacts, TableFacts
from lazydelta.upkeep.doctor_findings import Finding, Severity, byte_text, counted, shell

FILES_WORTH_A_SIDECAR = 10_000
_CHECKPOINT_BYTES_WORTH = 4_000_000
MANIFESTS_MAX = 50
_ORDERS = "an hour, a day or a time"


def sidecar_findings(
    url: str, log: LogFacts, sidecar: SidecarFacts | None, table: TableFacts, *, time_column: str | None
) -> Iterator[Finding]:
    """What is to be said of the sidecar."""
    if sidecar is None or log.checkpoint_version is None:
        return
    if not sidecar.is_enabled:
        yield _switched_off()
        return
    source, found = sidecar.source, sidecar.found
    for fallback in found.fallbacks:
        yield _passed_over(url, log, fallback)
    if found.source is None:
        if sidecar.newest_version is None and source is None:
            if not found.fallbacks:
                yield _none(url, log, table)
        elif found.older is not None or not found.fallbacks:
            yield _stale(url, log, sidecar)
    if source is not None and source.manifest.order_column is None:
        yield _unsorted(url, time_column)
    if sidecar.manifests > MANIFESTS_MAX:
        yield _left_over(url, sidecar)


def _passed_over(url: str, log: LogFacts, fallback: Fallback) -> Finding:
    """A sidecar that is there and did not serve."""
    is_far = fallback.kind is FallbackKind.SIDECAR_OUT_OF_REACH
    return Finding(
        code=fallback.kind.value,
        severity=Severity.WARNING,
        what=fallback.text,
        why="a sidecar that cannot be read, or does not prove that it belongs to this log, is passed over: "
        f"the checkpoint ({byte_text(log.checkpoint_bytes)}) is read instead",
        fix="look at the store and at what this client may read there" if is_far else "write it anew",
        remedy=None if is_far else shell("lazydelta", "sidecar", "build", url, "--full"),
    )


def _switched_off() -> Finding:
    return Finding(
        code="sidecar_disabled",
        severity=Severity.NOTE,
        what="delta.sidecar.enabled is false here",
        why="sidecars are passed over, whether there is one or not",
        fix="take the option, or the variable DELTA_SIDECAR_ENABLED, away",
    )


def _none(url: str, log: LogFacts, table: TableFacts) -> Finding:
    is_large = (table.files or 0) >= FILES_WORTH_A_SIDECAR or log.checkpoint_bytes >= _CHECKPOINT_BYTES_WORTH
    files = "" if table.files is None else f" of a table of {counted(table.files, 'file')}"
    why = (
        "a query for one hour reads the files of all hours out of the checkpoint; with a sidecar it reads "
        "the row groups of that hour"
    )
    if not is_large:
        why = (
            "the checkpoint is small enough to be read by every query; a sidecar pays off as the table grows"
        )
    return Finding(
        code="no_sidecar",
        severity=Severity.WARNING if is_large else Severity.NOTE,
        what=f"checkpoint {log.checkpoint_version:,} ({byte_text(log.checkpoint_bytes)}){files} "
        "has no stats sidecar",
        why=why,
        fix="write one, and again after each checkpoint (the pipeline does that by itself)",
        remedy=shell("lazydelta", "sidecar", "build", url),
        facts={"checkpoint_bytes": log.checkpoint_bytes, "files": table.files},
    )


def _stale(url: str, log: LogFacts, sidecar: SidecarFacts) -> Finding:
    version = sidecar.newest_version if sidecar.source is None else sidecar.source.version
    assert version is not None and log.checkpoint_version is not None
    behind, to_checkpoint = log.version - version, log.checkpoint_version - version
    serves = "it serves with the commits since" if sidecar.found.older is not None else "it does not serve"
    return Finding(
        code="stale_sidecar",
        severity=Severity.WARNING,
        what=f"the newest sidecar is of version {version:,}: {counted(behind, 'commit')} behind the table, "
        f"{to_checkpoint:,} behind checkpoint {log.checkpoint_version:,}; {serves}",
        why="a query reads those commits besides, or the checkpoint instead of the sidecar",
        fix="build the sidecar after each checkpoint: what is unchanged is used again, so it is cheap",
        remedy=shell("lazydelta", "sidecar", "build", url),
        facts={"sidecar_version": version, "commits_behind": behind, "behind_checkpoint": to_checkpoint},
    )


def _unsorted(url: str, time_column: str | None) -> Finding:
    why = "row groups are in the order of paths, so that a filter on time rules out none of them"
    if time_column is None:
        return Finding(
            code="sidecar_unsorted",
            severity=Severity.NOTE,
            what="the sidecar is sorted by path alone: the table has no partition column and no time column",
            why=why,
            fix=f"nothing, unless queries ask for {_ORDERS}",
        )
    return Finding(
        code="sidecar_unsorted",
        severity=Severity.WARNING,
        what=f"the sidecar is sorted by path alone, though the table has times in {time_column}",
        why=why,
        fix=f"sort it by {time_column}; the table's property lazydelta.time.column makes that the default",
        remedy=shell("lazydelta", "sidecar", "build", url, "--full", "--time-column", time_column),
        facts={"time_column": time_column},
    )


def _left_over(url: str, sidecar: SidecarFacts) -> Finding:
    return Finding(
        code="sidecar_leftovers",
        severity=Severity.NOTE,
        what=f"{counted(sidecar.manifests, 'sidecar')} in {sidecar.folder}, "
        f"{counted(sidecar.folder_files, 'file')} of {byte_text(sidecar.folder_bytes)}",
        why="the newest serves; older ones are for time travel, and take room and longer listings",
        fix="delete those that newer ones replaced a week ago",
        remedy=shell("lazydelta", "sidecar", "clean", url),
        facts={"manifests": sidecar.manifests, "bytes": sidecar.folder_bytes},
    )
