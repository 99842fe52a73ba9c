"""What the log itself costs: its tail, its checkpoint, its hints, and what is left of old versions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from lazydelta import limits
from lazydelta.log.fallback import Fallback
from lazydelta.upkeep.doctor_facts import LogFacts, SidecarFacts
from lazydelta.upkeep.doctor_findings import (
    Finding,
    Remedy,
    Severity,
    byte_text,
    counted,
    set_properties,
    shell,
)

TAIL_COMMITS_MAX = 50  # as many are read side by side without anybody noticing
TAIL_BYTES_MAX = 16_000_000
UNCHECKPOINTED_MAX = 20  # commits of a table that never had a checkpoint
OLD_FILES_MAX = 2_000  # two pages of a store's listing
INTERVAL_MAX = 100
_NO_CRC_BYTES = 1_000_000
_DAY_MS = 86_400_000


def log_findings(
    url: str, log: LogFacts, fallbacks: Sequence[Fallback], sidecar: SidecarFacts | None
) -> Iterator[Finding]:
    """What is to be said of the log."""
    for fallback in fallbacks:
        yield _fallback(url, fallback)
    if log.checkpoint_version is None:
        if log.commits_since_checkpoint > UNCHECKPOINTED_MAX:
            yield _no_checkpoint(url, log)
    else:
        if not log.has_hint:
            yield _no_hint(log)
        if _is_long(log):
            yield _long_tail(url, log, sidecar)
        if log.checkpoint_interval > INTERVAL_MAX:
            yield _long_interval(url, log)
    if not log.has_checksum and log.commits_since_checkpoint:
        yield _no_checksum(log)
    if log.old_files > OLD_FILES_MAX:
        yield _old_files(url, log)


def _is_long(log: LogFacts) -> bool:
    is_many = log.commits_since_checkpoint > max(TAIL_COMMITS_MAX, 2 * min(log.checkpoint_interval, 50))
    return is_many or log.tail_bytes > TAIL_BYTES_MAX


def _fallback(url: str, fallback: Fallback) -> Finding:
    return Finding(
        code=fallback.kind.value,
        severity=Severity.PROBLEM,
        what=fallback.text,
        why="an older checkpoint with a longer tail is read instead, by every query",
        fix="let Delta write a new checkpoint, and find out what broke this one",
        remedy=_checkpoint(url),
    )


def _no_checkpoint(url: str, log: LogFacts) -> Finding:
    commits = counted(log.commits_since_checkpoint, "commit")
    return Finding(
        code="no_checkpoint",
        severity=Severity.PROBLEM,
        what=f"there is no checkpoint: the table is {commits} of {byte_text(log.tail_bytes)}",
        why="every reader walks all commits from version 0 on, and a stats sidecar needs a checkpoint",
        fix="let Delta write a checkpoint",
        remedy=_checkpoint(url),
        facts={"commits": log.commits_since_checkpoint, "tail_bytes": log.tail_bytes},
    )


def _no_hint(log: LogFacts) -> Finding:
    names = f"{log.files_listed:,}" if log.is_listed_whole else f"more than {log.files_listed:,}"
    severity = Severity.WARNING if log.files_listed > 1_000 else Severity.NOTE
    return Finding(
        code="no_hint",
        severity=severity,
        what=f"_last_checkpoint is missing or does not name the newest, {log.checkpoint_version:,}",
        why=f"whoever opens the table lists the whole log, {names} names, not its end alone",
        fix="the next checkpoint writes it anew; find out who deletes it",
        facts={"checkpoint_version": log.checkpoint_version, "log_files": log.files_listed},
    )


def _long_tail(url: str, log: LogFacts, sidecar: SidecarFacts | None) -> Finding:
    commits = counted(log.commits_since_checkpoint, "commit")
    told = 0
    if sidecar is not None and sidecar.delta_until is not None and log.checkpoint_version is not None:
        told = min(sidecar.delta_until, log.version) - log.checkpoint_version
    by_delta = f", {told:,} of them by delta files of the sidecar" if told else ""
    gathers = sidecar is not None and sidecar.found.source is not None and not told
    gathers = gathers and log.commits_since_checkpoint >= limits.SIDECAR_DELTA_COMMITS
    fix = "let Delta write checkpoints more often"
    if gathers:
        fix = "gather the commits in delta files of the sidecar, which needs no Spark; or " + fix
    return Finding(
        code="long_tail",
        severity=Severity.NOTE if told * 2 > log.commits_since_checkpoint else Severity.WARNING,
        what=f"{commits} of {byte_text(log.tail_bytes)} since checkpoint {log.checkpoint_version:,}{by_delta}"
        f"; the table asks for one every {log.checkpoint_interval:,}",
        why="the tail is read by every query that the newest files do not satisfy, one request a commit",
        fix=fix,
        remedy=shell("lazydelta", "sidecar", "build", url) if gathers else _checkpoint(url),
        facts={
            "commits_since_checkpoint": log.commits_since_checkpoint,
            "tail_bytes": log.tail_bytes,
            "commits_by_delta_files": told,
            "checkpoint_interval": log.checkpoint_interval,
        },
    )


def _long_interval(url: str, log: LogFacts) -> Finding:
    return Finding(
        code="checkpoint_interval",
        severity=Severity.NOTE,
        what=f"delta.checkpointInterval is {log.checkpoint_interval:,}: as many commits between checkpoints",
        why="the tail grows to that many requests before it is folded into a checkpoint and its sidecar",
        fix="a smaller interval, unless commits are rare",
        remedy=set_properties(url, {"delta.checkpointInterval": "50"}),
        facts={"checkpoint_interval": log.checkpoint_interval},
    )


def _no_checksum(log: LogFacts) -> Finding:
    tail = f"{counted(log.commits_since_checkpoint, 'commit')}, {byte_text(log.tail_bytes)}"
    return Finding(
        code="no_crc",
        severity=Severity.WARNING if log.tail_bytes > _NO_CRC_BYTES else Severity.NOTE,
        what=f"version {log.version:,} has no .crc file that counts",
        why=f"protocol and schema are then looked for in the whole tail ({tail}) before the first file "
        "comes, and nobody knows how many files there are",
        fix="write with a Delta that leaves them: on Spark they are on by default "
        "(spark.databricks.delta.writeChecksumFile.enabled)",
        facts={"tail_bytes": log.tail_bytes},
    )


def _old_files(url: str, log: LogFacts) -> Finding:
    at_least = "" if log.is_listed_whole else "at least "
    age = "" if log.oldest_ms is None else f", the oldest {_age_days(log.oldest_ms):,} days old"
    rule = f"delta.logRetentionDuration is {log.retention or 'not set (30 days)'}"
    if log.is_cleanup_off:
        rule += ", and delta.enableExpiredLogCleanup is false: nothing is ever deleted"
    return Finding(
        code="log_retention",
        severity=Severity.WARNING,
        what=f"{at_least}{counted(log.old_commits, 'commit')} and "
        f"{counted(log.old_checkpoints, 'file of checkpoints', 'files of checkpoints')} before the newest "
        f"checkpoint, {byte_text(log.old_bytes)}{age}; {rule}",
        why="history, time travel by time and readers without a hint list all of them, a thousand a request",
        fix="keep less of the log; the next checkpoint deletes what is past. Time travel reaches back as far",
        remedy=set_properties(
            url,
            {
                "delta.logRetentionDuration": "interval 7 days",
                "delta.enableExpiredLogCleanup": "true",
            },
        ),
        facts={
            "old_commits": log.old_commits,
            "old_checkpoint_files": log.old_checkpoints,
            "old_bytes": log.old_bytes,
            "retention": log.retention,
            "is_cleanup_off": log.is_cleanup_off,
        },
    )


def _age_days(oldest_ms: int) -> int:
    return max(0, int((time.time() * 1000 - oldest_ms) // _DAY_MS))


def _checkpoint(url: str) -> Remedy:
    return shell("lazydelta", "sidecar", "build", url, "--checkpoint")
