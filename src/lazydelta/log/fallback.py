"""A fallback: what was met, told to people as text and counted for machines by its kind."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from lazydelta.errors import LazyDeltaError, StorageError
from lazydelta.storage import ObjectReplacedError
from lazydelta.telemetry import log_event


class FallbackKind(StrEnum):
    """Why a scan took another way."""

    CHECKPOINT_DAMAGED = "checkpoint_damaged"
    LOG_CLEANED_UP = "log_cleaned_up"  # while it was read; a newer checkpoint tells the same
    SIDECAR_DAMAGED = "sidecar_damaged"
    SIDECAR_OUT_OF_REACH = "sidecar_out_of_reach"  # the store did not give it
    SIDECAR_FOREIGN = "sidecar_foreign"  # of another log or table
    SIDECAR_OLDER = "sidecar_older"  # than the checkpoint, and not cheaper
    SIDECAR_INCOMPLETE = "sidecar_incomplete"  # it lacks what the scan asks for
    DELTA_FILE_UNUSABLE = "delta_file_unusable"
    TRIPPED = "tripped"  # an action that a strict scan does not walk past


class Fallback(msgspec.Struct, frozen=True):
    """One of them."""

    kind: FallbackKind
    text: str


def fell_back(root: str, kind: FallbackKind, text: str) -> Fallback:
    """A fallback, logged."""
    log_event("fallback", table=root, kind=kind.value, reason=text)
    return Fallback(kind, text)


def kind_of_loss(trouble: LazyDeltaError) -> FallbackKind:
    """The kind of what went wrong with a sidecar; files of it that were replaced are damaged for good."""
    is_of_store = isinstance(trouble, StorageError) and not isinstance(trouble, ObjectReplacedError)
    return FallbackKind.SIDECAR_OUT_OF_REACH if is_of_store else FallbackKind.SIDECAR_DAMAGED
