"""Names of the columns that ride along with the source's own until the rows are written."""

from __future__ import annotations

INTERNAL_PREFIX = "_lazydelta_"
RAW_TEXT = "_lazydelta_text"  # the record as the source has it
REASON = "_lazydelta_reason"  # why it cannot be placed
PATH = "_lazydelta_path"  # in a stream of files: the file, whose rows are read later
INTERNAL = (RAW_TEXT, REASON, PATH)
MALFORMED = "malformed record"
