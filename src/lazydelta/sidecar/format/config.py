"""How sidecars are written.

Contract: `checked` is called before anything is read, so that a value that cannot be is an error that names
it, not an endless loop or a division by zero in the middle of a build.
"""

from __future__ import annotations

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.sidecar.format.names import LAZY_FOLDER


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


# The least that works.
_LEAST = {
    "row_group_rows": 1,
    "row_groups_max": 1,
    "footer_bytes_max": 1,
    "level_ratio": 2,
    "sort_memory_bytes": 1,
    "delta_commits_min": 1,
}


def checked(config: SidecarConfig) -> SidecarConfig:
    """The same config, or an `InvalidRequestError` that names the setting that cannot be."""
    for name, least in _LEAST.items():
        value = getattr(config, name)
        if value < least:
            raise InvalidRequestError(
                f"sidecar.{name} is {value}", "the sidecar settings", f"give {least:,} or more"
            )
    if not is_below_table(config.folder):
        raise InvalidRequestError(
            f"sidecar.folder {config.folder!r} is not one below the table",
            "the sidecar settings",
            f"give a path relative to the table, such as {LAZY_FOLDER}",
        )
    return config


def is_below_table(folder: str) -> bool:
    """Whether it is a plain path relative to the table."""
    return "://" not in folder and not {"", ".", ".."} & set(folder.split("/"))
