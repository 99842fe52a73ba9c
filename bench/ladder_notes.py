"""What the ladder's page says of its figures beyond the figures: why a level gains less than the seeds hoped.

Contract: text only. Each note holds for every run; what a single run shows stands among its promises.
"""

from __future__ import annotations

NOTES = (
    "L1 and L2 read the checkpoint first for these windows (`strategy=auto`: most files are in it); from L3 "
    "on the tail's files come first, once it is known whether a sidecar serves.",
    "L2 saves round trips, so it shows best behind latency.",
    "L5 saves memory, and hardly a byte on a table of six stat columns: ranges that lie closer than 64 KiB "
    "are fetched as one, and the columns of a row group lie closer.",
    "From L6 on much of the memory is Arrow's Parquet reader itself: pyarrow alone, in a process that had "
    "read nothing before, grew by 18 MB over path, size and hour of one row group (tried once, on 100,000 "
    "files).",
    "L7 changes nothing for windows: they have no limit. Its `take 100` ends within the newest commit.",
    "The seeds count with about 30 ms for a request: the figures behind latency are the ones to hold beside "
    "theirs.",
)
