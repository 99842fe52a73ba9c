"""The steps of a stream's batch at which a kill is aimed: how each is seen on disk, and what a hit leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from tests.support.stream_world import Sight


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a kill left behind."""

    now: Sight
    in_rejects: Counter[int]
    in_target: Counter[int]
    unfinished_sidecars: set[int]


class Step(msgspec.Struct, frozen=True):
    """Where to kill: once it `is_reached` (before, now); what is left must show that it was hit."""

    name: str
    is_reached: Callable[[Sight, Sight], bool]
    is_hit: Callable[[Left], bool]


STEPS = (
    Step(
        "the batch is noted, nothing is written",
        lambda before, now: now.begun > max(before.begun, 0),
        lambda left: left.now.begun not in left.in_rejects + left.in_target,
    ),
    Step(
        "the rejects are committed, the rows are not",
        lambda before, now: now.rejects_version > before.rejects_version,
        lambda left: left.now.begun in left.in_rejects and left.now.begun not in left.in_target,
    ),
    Step(
        "the rows are committed, the batch is not noted as done",
        lambda before, now: now.target_version > max(before.target_version, 0),
        lambda left: left.now.begun in left.in_target and left.now.begun > left.now.done,
    ),
    Step(
        "a checkpoint is being written",
        lambda before, now: now.checkpoint_files > before.checkpoint_files,
        lambda left: left.now.begun > left.now.done,
    ),
    Step(
        "a part of the sidecar is written, its manifest is not",
        lambda before, now: now.sidecar_parts > before.sidecar_parts,
        lambda left: bool(left.unfinished_sidecars),
    ),
    Step(
        "the sidecar is written, the batch is not noted as done",
        lambda before, now: now.manifests > before.manifests,
        lambda left: left.now.begun > left.now.done,
    ),
)
