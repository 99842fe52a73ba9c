"""One frozen `Settings`, built at the edges (argument, environment, file, default) and passed down.

Nothing below `table.py`, `cli` and the servers reads the environment: they get this struct.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a table is opened with."""

    storage_options: dict[str, str] = msgspec.field(default_factory=dict)
    request_timeout_seconds: float = limits.REQUEST_TIMEOUT_SECONDS
    request_attempts_max: int = limits.REQUEST_ATTEMPTS_MAX
    scan_timeout_seconds: float = limits.SCAN_TIMEOUT_SECONDS
    backoff_first_seconds: float = limits.BACKOFF_FIRST_SECONDS
    commit_parallelism: int = limits.COMMIT_PARALLELISM
    batch_size: int = limits.BATCH_ROWS
    checkpoint_row_groups_per_batch: int = limits.CHECKPOINT_ROW_GROUPS_PER_BATCH
    remove_set_memory_limit: int = limits.REMOVE_SET_BYTES
