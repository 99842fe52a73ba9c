"""Every bound in one place. Relations between them are asserted where they are declared."""

from __future__ import annotations

NUMBER_MAX = 1 << 62  # of limits and sizes that a caller gives
SECONDS_MAX = 1_000_000_000.0  # of timeouts and pauses that a caller gives; some 30 years
KIB = 1 << 10
MIB = 1 << 20

# --- memory ------------------------------------------------------------------
MEMORY_BYTES = 1024 * MIB  # held by a process over all scans and the cache
MEMORY_SCAN_BYTES = 1 * MIB  # that a run of a scan takes at the least, about
MEMORY_WAIT_SECONDS = 5.0  # without anything given back, before the first in line goes on all the same

# --- storage -----------------------------------------------------------------
REQUEST_ATTEMPTS_MAX = 4
REQUEST_TIMEOUT_SECONDS = 30.0
SCAN_TIMEOUT_SECONDS = 0.0  # 0: no deadline for the scan as a whole
BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 5.0
THROTTLE_BACKOFF_FACTOR = 4  # pauses after a store that throttles are so many times longer
RETRY_AFTER_ASK_SECONDS = 2.0  # for the question how long a store that throttles wants to be left alone
RETRY_AFTER_SILENT_SECONDS = 60.0  # a host that does not say it is not asked for so long
RETRY_AFTER_SECONDS_MAX = 300.0  # that a throttling store is left alone, whatever it asks for
CREDENTIAL_LEASE_SECONDS = 0.25  # that obstore holds what a provider gave, before it asks here again
CREDENTIAL_RENEWAL_SECONDS_MIN = 1.0  # between two refusals that make a provider be asked anew
CREDENTIAL_MARGIN_SECONDS_MAX = 60.0  # before their end; half of the lifetime where that is less
CREDENTIAL_SESSION_SECONDS = 300.0  # that keys of a session are used: it renews them before their end
IDENTITY_CONNECT_SECONDS = 1.0  # to the machine's identity endpoint: it answers at once, or there is none
IDENTITY_CLI_SECONDS = 30.0  # for the Azure command line to give a token
CONNECT_SECONDS_MAX = 5.0  # for a connection; less where a request has less
CLIENTS_KEPT_MAX = 16  # of stores, used longest ago dropped first
HOSTS_BUSY_MAX = 4  # that may keep threads waiting at once, each as many as it has connections
QUICK_READ_SECONDS = 0.0005  # a folder whose small files take less is read without threads
CONNECTIONS_MAX = 32  # requests under way at one host, over all scans of the process
OBJECT_VERSIONS_MAX = 1024  # objects of a scan whose e-tag is remembered
RANGE_COALESCE_BYTES = 64 * KIB  # two ranges closer than this become one request
READ_BLOCK_BYTES = 1 * MIB  # one request of a column that is streamed
READ_AHEAD_BLOCKS_MAX = 8  # of a file of a checkpoint on their way at once, beside one of each column
PARQUET_FOOTER_GUESS_BYTES = 64 * KIB  # read first; most footers fit
PARQUET_FOOTER_BYTES_MAX = 64 * MIB  # a longer one is taken for damage
PARQUET_COLUMNS_MAX = 100_000  # leaves and groups of a Parquet file's schema
PARQUET_NESTING_MAX = 100  # levels of it
PARQUET_PAGE_BYTES_MAX = 128 * MIB  # of one page, decompressed
PRELOAD_BYTES_MAX = 8 * MIB  # column chunks of one row group up to this are fetched at once

# --- log ---------------------------------------------------------------------
LISTINGS_MAX = 4  # of a log whose commits have a gap, before the gap is believed
CRC_TRIES_MAX = 3  # `.crc` files tried, newest first, before the commits are read instead
CRC_BYTES_MAX = 64 * MIB  # of one of them; a larger one is not read
HINT_BYTES_MAX = 16 * MIB  # of `_last_checkpoint`, which may hold the checkpoint's schema; likewise
COMMIT_PARALLELISM = 10
COMMIT_WHOLE_BYTES_MAX = 4 * MIB  # larger commits are streamed and decoded in slices
COMMIT_CHUNK_BYTES = 1 * MIB  # decoded at once
COMMIT_HEAD_BYTES = 16 * KIB  # enough for the commitInfo at the head of most commits
COMMIT_AHEAD_BYTES_MAX = 8 * MIB  # commits fetched but not yet consumed
TAIL_BYTES_KEPT_MAX = 16 * MIB  # commit bytes kept between finding the metadata and emitting files
LOG_LINE_BYTES_MAX = 64 * MIB  # a longer line is taken for damage
SCHEMA_NESTING_MAX = 100  # levels of structs, arrays and maps in a table's schema

# --- scan --------------------------------------------------------------------
BATCH_ROWS = 8192
CHECKPOINT_FOOTERS_MAX = 16  # files of a checkpoint that are looked into one by one to plan a sidecar
CHECKPOINT_ROW_GROUPS_PER_BATCH = 10
REMOVE_SET_BYTES = 32 * MIB
CHECKPOINT_KEYS_KEPT_BYTES = 8 * MIB  # of files that went out, in case their checkpoint is written anew
AUTO_COMMITS_MAX = 100  # a tail longer than this is cheaper to read forward (seeds, section 13)
COMMIT_BYTES_PER_ADD = 600  # of JSON, for estimates from a listing
CHECKPOINT_BYTES_PER_ADD = 150  # of Parquet, likewise

# --- sidecar -----------------------------------------------------------------
SIDECAR_ROW_GROUPS_PER_BATCH = 5  # read at once
SIDECAR_SLICE_ROWS = 16_384  # of a row group, decoded at once
SIDECAR_FOOTERS_AHEAD_BYTES = 256 * KIB  # of the newest parts, read while a table is opened
SIDECAR_ROW_GROUP_ROWS = 10_000
SIDECAR_ROW_GROUPS_MAX = 64  # of one part
SIDECAR_ROW_GROUPS_MIN = 8  # where the footer would leave fewer, a part is split into index and statistics
SIDECAR_FOOTER_BYTES_MAX = 128 * KIB
SIDECAR_ZONE_COLUMNS_MAX = 32  # columns whose bounds the manifest tells per part
SIDECAR_ZONE_ENTRIES_MAX = 4096  # such columns times parts: keeps the manifest small
SIDECAR_LEVEL_RATIO = 16  # a level of parts holds this many times the rows of the level below
SIDECAR_REMOVED_RANGES_MAX = 512  # of one part; with more it is written anew without the removed rows
SIDECAR_REMOVED_SHARE_MAX = 0.25  # of a part's rows; with more it is written anew, too
SIDECAR_DELTA_COMMITS = 50  # commits since the checkpoint or the last delta file that make one worth writing
MANIFEST_ROW_GROUPS_MAX = 2048  # with more, the manifest lists only parts
MANIFEST_PLAIN_BYTES_MAX = 256 * KIB  # a longer text is packed by gzip
MANIFEST_BYTES_MAX = 64 * MIB  # a larger manifest, unpacked, is taken for damage
BINDING_HEAD_BYTES = 64 * KIB  # of a commit, hashed to recognise it
BINDING_HEADS_MAX = 16  # files of a checkpoint whose heads are hashed, too

# --- rows --------------------------------------------------------------------
DELETION_VECTOR_BYTES_MAX = 256 * MIB  # a larger one is taken for damage
DELETION_VECTORS_KEPT_BYTES = 16 * MIB  # of a scan's deletion vectors, packed, between segments
DATA_BATCH_ROWS = 65_536  # of a row group, decoded at once
DATA_BATCH_BYTES = 16 * MIB  # likewise, by what the footer says of their size
DATA_PRELOAD_BYTES_MAX = 16 * MIB  # column chunks of a row group up to this are fetched at once
DATA_WHOLE_BYTES_MAX = 1 * MIB  # a file up to this is read at once where all columns are wanted
PREFETCH_SEGMENTS = 2  # row groups read ahead of the consumer, unless it says how many
PREFETCH_ADAPTIVE_MAX = 8  # as many where the consumer has to wait
PREFETCH_SEGMENTS_MAX = 64  # as many as a caller may ask for
PREFETCH_BYTES_MAX = 64 * MIB  # of rows decoded and not yet consumed
ROW_THREADS_MAX = 64  # of all scans of rows in a process; each has one at least
MATERIALIZE_BYTES = 16 * MIB  # rows of a segment held to be turned round, before they go to disk
FILES_REMEMBERED_MAX = 4096  # of a scan of rows, to notice a file that comes twice
PAGE_COUNT_MAX = 1_000_000  # rows or files of one page, which is held in memory
PAGE_TOKEN_CHARS_MAX = 65_536  # a longer one is not looked at
PAGE_FILES_AT_ONCE = 8192  # sorted for a page of rows without a sidecar, before more are looked for

# --- engines -----------------------------------------------------------------
SQL_MEMORY_BYTES = 1024 * MIB  # held by one SQL query or connection, before it spills
HANDOVER_FILES_MAX = 10_000  # plain files that a query hands to DuckDB's own reader
HANDOVER_BYTES_MIN = 8 * MIB  # of files; with less the usual path is as fast
KQL_CHARACTERS_MAX = 256 * KIB  # of a query in KQL
KQL_WORDS_MAX = 10_000  # of it, signs included: the parser takes some 0.2 ms for each
KQL_NESTING_MAX = 40  # brackets inside each other
KQL_SQL_CHARACTERS_MAX = 4_000_000  # of the SQL that it becomes, by an estimate
KQL_RANGE_ROWS_MAX = 100_000_000  # that `range` gives
KQL_ARRAY_MAX = 1_048_576  # members of an array out of nothing, and bins of a series; Kusto's own limit
KQL_GROWTH_MAX = 16_000_000  # times that functions inside each other repeat a value of one row alone
KQL_ROW_TEXT_MAX = 16 * KIB  # characters that functions make of a literal in each row of a batch
KQL_ROW_ARRAY_MAX = 4096  # members of an array out of nothing in each row, likewise

# --- cache -------------------------------------------------------------------
CACHE_BYTES = 64 * MIB  # kept by a process over all tables

# --- upkeep ------------------------------------------------------------------
SORT_MEMORY_BYTES = 64 * MIB  # rows held before a sorted run goes to disk
DOCTOR_SAMPLE_FILES = 1_000  # the newest, whose sizes and statistics the doctor looks at
DOCTOR_LOG_FILES_MAX = 20_000  # names of the log that it counts, from the oldest on

# --- serve -------------------------------------------------------------------
SERVE_SCANS_MAX = 64  # that run at once, over all clients
SERVE_CLIENT_SCANS_MAX = 16  # of one client
SERVE_WAITING_SECONDS = 10.0  # that one too many waits for a place before it is refused
SERVE_DRAIN_SECONDS = 30.0  # that scans may go on once the server is told to end
SERVE_TICKET_SECONDS = 600.0  # that a ticket is valid
SERVE_LINK_SECONDS = 3600.0  # that a link to a file is valid
SERVE_LINK_SECONDS_MAX = 7 * 24 * 3600.0  # that it can be: the longest that S3 signs
SERVE_STALLED_SECONDS = 300.0  # that a client of HTTP may take nothing before it is cut off
SERVE_LINES_ROWS = 512  # files that go out at once as lines of JSON
SERVE_FILE_CHUNK_BYTES = 1 * MIB  # of a file that is served
SERVE_REQUEST_BYTES_MAX = 1 * MIB  # of what a client sends; more is not read
SERVE_SQL_MEMORY_BYTES_MIN = 16 * MIB  # that a statement must have; DuckDB runs none with less
SERVE_PREDICATE_WORDS_MAX = 20_000  # and signs of a filter or statement, or values and keys of JSON
SERVE_MESSAGE_BYTES = 4 * MIB - 64 * KIB  # of a batch that Flight sends; a single row may have more
SERVE_LARGE_MESSAGE_BYTES = 16 * MIB  # for clients that take any: those of Arrow in C++, and pyarrow
SERVE_ROW_BATCH_ROWS = 524_288  # of a batch of rows that Flight sends, unless a limit may end the scan
SERVE_FILE_BATCH_ROWS = 16_384  # likewise, of a list of files
SERVE_HINTS_MAX = 256  # of one question of Delta Sharing; more are passed over
SERVE_HINT_CHARACTERS_MAX = 65_536  # of all of them
SERVE_HINT_LEAVES_MAX = 1024  # conditions of all of them
SERVE_SIGNING_KEY_BYTES_MIN = 32  # of the key of tickets and links
PAGE_NEWEST_FILES = 100  # that the web page lists
PAGE_VERSIONS = 50  # of the timeline that it asks for at once
PAGE_VERSIONS_MAX = 200  # that one may ask for
PAGE_COMMIT_BYTES_MAX = (
    16 * MIB
)  # of one whose adds and removes it counts; larger ones are told by their head
PAGE_RECORDS_MAX = 100_000  # rows of a result that it shows
PAGE_RESULT_BYTES_MAX = 32 * MIB  # of such a result
PAGE_NEWS_SECONDS = 2.0  # that a look for a newer version serves all pages which are open
PAGE_LOOK_SECONDS = 10.0  # that it may take to tell what a query would read
PAGE_NEW_FILES = 200  # of newer versions that it is told of
KUSTO_RECORDS_MAX = 500_000  # of a result, unless its client says otherwise: as Kusto's own
KUSTO_RESULT_BYTES_MAX = 64 * MIB  # likewise, of the text of its rows
KUSTO_SECONDS = 240.0  # that a query may take, unless its client says otherwise: likewise
KUSTO_SECONDS_MAX = 3600.0  # as long as a client may ask for: likewise
KUSTO_QUERIES_SHOWN_MAX = 1000  # latest ones that `.show queries` remembers
KUSTO_QUERY_SHOWN_CHARS = 4096  # of the text of each

# --- spark -------------------------------------------------------------------
INGEST_FILE_BYTES = 128_000_000  # a data file of the pipeline, about
INGEST_SAMPLE_ROWS = 20_000  # written to memory to learn how many bytes a row takes
INGEST_ROW_BYTES = 256  # of Parquet, where no sample can be taken
STREAM_FILES_PER_BATCH = 1000  # read by one batch of a stream, unless an option says how many
SPARK_BUILD_FILES_MIN = 2_000_000  # of a checkpoint whose sidecar a Spark job builds; fewer are built locally
SPARK_PART_FILL = 0.8  # of a part's rows that are planned: ranges come out uneven
SPARK_SAMPLE_ROWS_PER_PART = 2000  # of a checkpoint, to divide it evenly among parts
SPARK_SAMPLE_ROWS_MAX = 200_000  # of all parts together: they are sorted on the driver's account
SPARK_PARTITION_BYTES = 128 * MIB  # of files that a task reads, where the session does not say
SPARK_OPEN_COST_BYTES = 4 * MIB  # that opening a file counts for, likewise
SPARK_PLAN_INLINE_BYTES = 64 * MIB  # of packed file lists in a plan; more goes to the spill folder
SPARK_NATIVE_FILES_MAX = 50_000  # planned files that are left to Spark's own reader, whose list is in memory
SPARK_SPILL_FILE_BYTES = 8 * MIB  # of a file there
STREAM_STOP_SECONDS = 120.0  # that a stream asked to stop waits for the batch under way

assert SIDECAR_ROW_GROUPS_MIN <= SIDECAR_ROW_GROUPS_MAX <= MANIFEST_ROW_GROUPS_MAX
assert COMMIT_CHUNK_BYTES <= COMMIT_WHOLE_BYTES_MAX <= TAIL_BYTES_KEPT_MAX
assert PARQUET_FOOTER_GUESS_BYTES <= READ_BLOCK_BYTES <= PRELOAD_BYTES_MAX
assert READ_BLOCK_BYTES <= DATA_PRELOAD_BYTES_MAX
assert READ_AHEAD_BLOCKS_MAX < CONNECTIONS_MAX
assert PREFETCH_SEGMENTS <= PREFETCH_ADAPTIVE_MAX <= PREFETCH_SEGMENTS_MAX
