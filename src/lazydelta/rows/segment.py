"""A segment: one row group of one live file, the unit that is read, decoded and handed out."""

from __future__ import annotations

import msgspec

from lazydelta.rows.data_file import DataFile
from lazydelta.rows.parquet_file import OpenedFile


class Segment(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Which rows: `num_rows` of the file from `first_row` on, deleted ones among them."""

    file: DataFile
    row_group: int
    first_row: int  # of the file
    num_rows: int
    size_bytes: int  # of the columns that will be read, decoded, about
    opened: OpenedFile  # shared by the segments of the file, and gone with the last of them
