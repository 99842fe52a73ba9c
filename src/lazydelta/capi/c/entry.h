/* What is written in Python (lazydelta/capi/calls.py). cffi makes the functions. */
#ifndef DELTA_LAZY_ENTRY_H
#define DELTA_LAZY_ENTRY_H

#include <stddef.h>

struct ArrowArrayStream;
struct ld_sink;

extern int ld_py_scan_lazy(const char *, const char *, size_t, struct ld_sink *);
extern int ld_py_scan_files(const char *, const char *, struct ld_sink *);
extern int ld_py_files_stream(const char *, const char *, struct ArrowArrayStream *);
extern int ld_py_rows_stream(const char *, const char *, struct ArrowArrayStream *);

#endif
