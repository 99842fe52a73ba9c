"""Every target by name."""

from __future__ import annotations

from fuzz import log_targets, row_targets, sidecar_targets, text_targets
from fuzz.planted import Planted
from fuzz.target import Target

_MAKERS = (*log_targets.TARGETS, *sidecar_targets.TARGETS, *row_targets.TARGETS, *text_targets.TARGETS)


def all_targets() -> dict[str, Target]:
    """New ones, not yet prepared."""
    return {target.name: target for target in (make() for make in _MAKERS)}


def target_named(name: str) -> Target:
    """One of them, or the one that a test plants."""
    return Planted() if name == Planted.name else all_targets()[name]
