"""How sidecars are written."""

from __future__ import annotations

import msgspec

from lazydelta import limits
from lazydelta.sidecar.names import LAZY_FOLDER


class SidecarConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a builder may be told; the defaults suit tables of millions of files."""

    folder: str = LAZY_FOLDER
    # The partition or clustering column to sort by, by its logical name. None: the table's property
    # lazydelta.time.column, else a partition column _event_hour, else the first partition column, else path.
    time_column: str | None = None
    row_group_rows: int = limits.SIDECAR_ROW_GROUP_ROWS
    row_groups_max: int = limits.SIDECAR_ROW_GROUPS_MAX
    footer_bytes_max: int = limits.SIDECAR_FOOTER_BYTES_MAX
    level_ratio: int = limits.SIDECAR_LEVEL_RATIO
    sort_memory_bytes: int = limits.SORT_MEMORY_BYTES
    delta_commits_min: int = limits.SIDECAR_DELTA_COMMITS
