/* The live files and rows of Delta tables, for C: libdelta_lazy.so.
 *
 * What: a scan of one version of a table, pinned when it begins. Files come newest first, as they are found,
 * in memory that does not grow with the table. Behind it is lazydelta in a Python interpreter that lives in
 * this process; the first call starts it.
 *
 * Contract:
 *  - Text is UTF-8 and ends with a zero byte.
 *  - Every function may be called from any thread, also from threads that Python does not know, and from
 *    within a callback. Scans of several threads run side by side.
 *  - A call returns 0 or one of the codes below; what, where and how to mend it is in delta_last_error().
 *    Nothing is thrown, and a callback must not throw nor jump out either.
 *  - What a callback is given is valid until it returns.
 *  - A child made by fork() gets DELTA_NO_RUNTIME, unless its parent had not called anything yet.
 *
 * Pages: docs/c-api.md (how the library finds Python, options, examples), docs/exit-codes.md.
 */
#ifndef DELTA_LAZY_H
#define DELTA_LAZY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The exit codes of the command `lazydelta`, and one of this library. */
enum delta_code {
    DELTA_OK = 0,                /* the scan is complete, or a callback had enough */
    DELTA_ERROR = 1,             /* something else that lazydelta can explain; also a bug, with its traceback */
    DELTA_INVALID_REQUEST = 2,   /* the call is wrong: a NULL, a column, a predicate, an option */
    DELTA_TABLE_NOT_FOUND = 3,   /* there is no Delta table at the address */
    DELTA_VERSION_NOT_FOUND = 4, /* the version or time asked for cannot be read, any more or yet */
    DELTA_CORRUPT_LOG = 5,       /* the log is damaged */
    DELTA_UNSUPPORTED_TABLE = 6, /* the table needs something that this reader does not have */
    DELTA_STORAGE = 7,           /* the store refused, timed out or broke off */
    DELTA_ACCESS_DENIED = 8,     /* the store refused the credentials */
    DELTA_CORRUPT_DATA = 9,      /* a data file or its deletion vector is missing or damaged */
    DELTA_NO_RUNTIME = 20        /* Python or lazydelta could not be started in this process */
};

/* A partition value as the log has it: text, whatever the column's type. */
struct delta_partition_value {
    const char *name;    /* the column's name */
    const char *value;   /* NULL: the value is null */
    size_t value_length; /* in bytes: a value may hold a zero byte */
};

/* A deletion vector: rows of the file that are no longer there. Whoever reads the file must apply it. */
struct delta_deletion_vector {
    const char *storage_type; /* "u", "i" or "p", as in Delta's protocol */
    const char *path_or_inline_dv;
    int64_t offset; /* -1: none */
    int64_t size_in_bytes;
    int64_t cardinality; /* how many rows are gone */
};

/* A live file. Fields are only ever added at the end. */
struct delta_file {
    const char *path;          /* decoded; relative to the table's root, or a URI outside of it */
    int64_t size;              /* in bytes */
    int64_t modification_time; /* milliseconds since 1970 */
    size_t partition_count;
    const struct delta_partition_value *partition_values;
    const struct delta_deletion_vector *deletion_vector; /* NULL: all rows are there */
    const char *stats;                                   /* JSON as in the log; NULL unless asked for */
};

/* Return false to stop the scan; the call then returns DELTA_OK. */
typedef bool (*delta_path_callback)(const char *path, int64_t size);
typedef bool (*delta_file_callback)(const struct delta_file *file, void *user_data);

/* The live files of the newest version that might match.
 * predicate_json: {"date": "2026-02-08"}, SQL text, or NULL (also "" and "null"); limit: at most so many files,
 * 0 for all. */
int delta_scan_lazy(const char *table_path, const char *predicate_json, size_t limit,
                    bool (*callback)(const char *path, int64_t size));

/* The same with everything that is known of a file.
 * options_json, or NULL: an object with any of "predicate" (an object, a list or SQL text), "limit",
 * "strategy" ("auto", "reverse", "forward"), "order" ("asc", "desc"), "version", "timestamp",
 * "storage_options" (an object), "batch_size", "timeout_seconds", "with_stats" (for files alone) and
 * "columns" (for rows: which; for files as a stream: attributes of the file). "limit" 0 is none. */
int delta_scan_files(const char *table_path, const char *options_json, delta_file_callback callback,
                     void *user_data);

/* The same files, and the rows that match, as an Arrow C stream (the Arrow C stream interface).
 * `out` is written only where DELTA_OK is returned, and must then be released by its `release`. "limit" counts
 * rows where rows are asked for. get_next() reads as it is called; where it fails, delta_last_error() of
 * that thread says why, as get_last_error() does. release() stops the reads. */
struct ArrowArrayStream;
int delta_files_stream(const char *table_path, const char *options_json, struct ArrowArrayStream *out);
int delta_rows_stream(const char *table_path, const char *options_json, struct ArrowArrayStream *out);

/* What went wrong in the latest call of this thread: what, where, how to mend it, a line each. Empty if it
 * went well. Valid until the next call of this thread. */
const char *delta_last_error(void);

/* The version of the library, as in "0.1.0". Starts nothing. */
const char *delta_version(void);

#ifdef __cplusplus
}
#endif

#endif
