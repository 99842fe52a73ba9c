"""What the ladder's page says of its figures beyond the figures: why a level gains less than the seeds hoped.

Contract: text only. Each note holds for every run; what a single run shows stands among its promises.
"""

from __future__ import annotations

NOTES = (
    "L1 and L2 read the checkpoint first for these windows (`strategy=auto`: most files are in it); from L3 "
    "on the tail's files come first, once it is known whether a sidecar serves.",
    "L2 saves round trips, so it shows behind latency; on a disk there is nothing to overlap.",
    "L3 finds the sidecar by its footers and reads it whole, statistics included, while L1 and L2 already "
    "read only path, size and partition values of the checkpoint: it moves more bytes than they do.",
    "L5 saves memory and bytes, and takes more requests for it: the columns that are wanted are ranges of "
    "their own unless they lie closer than 64 KiB.",
    "From L6 on much of the memory is Arrow's Parquet reader itself: pyarrow alone, in a process that had "
    "read nothing before, grew by 18 MB over path, size and hour of one row group (tried once, on 100,000 "
    "files).",
    "Each run is the first query of its process. About ten milliseconds of it are spent once for a process "
    "(pages of Arrow's library that are touched for the first time, memory that is asked of the system): the "
    "row `again` among the probes is a second query without a cache. The promise of 500 times is judged by "
    "the first query, the promise of the cache by the same first query: the quicker it is, the less the "
    "cache can gain.",
    "`explain` counts a round trip less than the server at L3, now and then: of reads that overlap, which "
    "one ended before the next began is a matter of microseconds. A `take` that stops early leaves reads "
    "under way, and the server may be asked before it has counted them.",
    "L7 changes nothing for windows: they have no limit. Its `take 100` ends within the newest commit.",
    "The seeds count with about 30 ms for a request: the figures behind latency are the ones to hold beside "
    "theirs.",
)
