/* The functions of delta_lazy.h: what is missing is said here, everything else in Python. */
#include "delta_lazy.h"

#include "arrow_abi.h"
#include "deliver.h"
#include "entry.h"
#include "last_error.h"
#include "presence.h"
#include "start.h"

#ifndef DELTA_LAZY_VERSION
#error "DELTA_LAZY_VERSION is the version of the package"
#endif

/* Begin a call: the thread's error is forgotten, what must be there is, and Python runs. `ended` ends it. */
static int begun(const char *function, const char *table_path, const void *receiver) {
    ld_succeed();
    if (table_path == NULL)
        return ld_fail_because(DELTA_INVALID_REQUEST, "table_path is NULL", function, "give a path or a URL");
    if (receiver == NULL)
        return ld_fail_because(DELTA_INVALID_REQUEST, "there is nobody to give files to: a pointer is NULL", function,
                               "give a callback, or a stream to fill");
    if (!ld_enter()) return DELTA_NO_RUNTIME;
    int code = ld_start();
    if (code != DELTA_OK) ld_leave();
    return code;
}

static int ended(int code) {
    ld_leave();
    return code;
}

int delta_scan_lazy(const char *table_path, const char *predicate_json, size_t limit,
                    bool (*callback)(const char *path, int64_t size)) {
    int code = begun("delta_scan_lazy", table_path, (const void *)callback);
    if (code != DELTA_OK) return code;
    struct ld_sink sink = {.on_path = callback};
    code = ld_py_scan_lazy(table_path, predicate_json, limit, &sink);
    ld_sink_clear(&sink);
    return ended(code);
}

int delta_scan_files(const char *table_path, const char *options_json, delta_file_callback callback,
                     void *user_data) {
    int code = begun("delta_scan_files", table_path, (const void *)callback);
    if (code != DELTA_OK) return code;
    struct ld_sink sink = {.on_file = callback, .user_data = user_data};
    code = ld_py_scan_files(table_path, options_json, &sink);
    ld_sink_clear(&sink);
    return ended(code);
}

int delta_files_stream(const char *table_path, const char *options_json, struct ArrowArrayStream *out) {
    int code = begun("delta_files_stream", table_path, out);
    return code != DELTA_OK ? code : ended(ld_py_files_stream(table_path, options_json, out));
}

int delta_rows_stream(const char *table_path, const char *options_json, struct ArrowArrayStream *out) {
    int code = begun("delta_rows_stream", table_path, out);
    return code != DELTA_OK ? code : ended(ld_py_rows_stream(table_path, options_json, out));
}

const char *delta_version(void) { return DELTA_LAZY_VERSION; }
