"""How the rows of a batch are spread over tasks, so that files hold one period and come near the target size.

Why not left to Spark: a hash of the period puts a large period into one task and splits nothing; a range
cuts small periods in two. Contract: pure. Small periods share a task (each still gets its own file); a
large one is dealt evenly to as many tasks as it needs files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

# Rows are dealt by a hash, so that some tasks get a little more; without room for it each leaves a crumb.
SLACK = 1.25


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one period: `pieces` of them, from `first_task` on."""

    period: str
    first_task: int
    pieces: int


class FilePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where the rows of each period go."""

    shares: list[Share]
    tasks: int
    files: int
    rows_per_file: int
    rows_per_file_max: int


def plan_files(
    rows_by_period: Mapping[str, int], *, bytes_per_row: float, file_bytes: int, parallelism: int
) -> FilePlan:
    """Tasks for these periods; with more than one core, work is spread even where files are few."""
    rows_per_file = max(1, math.ceil(file_bytes / max(bytes_per_row, 1e-9)))
    total = sum(rows_by_period.values())
    room = max(1, min(rows_per_file, math.ceil(total / max(1, parallelism))))
    shares, task, used, files = [], 0, 0, 0
    for period in sorted(rows_by_period):
        rows = rows_by_period[period]
        pieces = math.ceil(rows / rows_per_file)
        files += pieces
        if used and (pieces > 1 or used + rows > room):
            task, used = task + 1, 0
        shares.append(Share(period=period, first_task=task, pieces=pieces))
        if pieces > 1:
            task += pieces
        else:
            used += rows
    return FilePlan(
        shares=shares,
        tasks=task + (1 if used else 0),
        files=files,
        rows_per_file=rows_per_file,
        rows_per_file_max=math.ceil(rows_per_file * SLACK),
    )
