/* A stream of pyarrow's in a coat: errors in our words, and no step into Python after fork(). */
#include "streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "delta_lazy.h"
#include "last_error.h"
#include "presence.h"
#include "start.h"

struct coat {
    struct ArrowArrayStream inner;
    char *error; /* of the latest call, or NULL */
};

static int errno_of(int code) {
    switch (code) {
        case DELTA_INVALID_REQUEST:
            return EINVAL;
        case DELTA_TABLE_NOT_FOUND:
        case DELTA_VERSION_NOT_FOUND:
            return ENOENT;
        case DELTA_UNSUPPORTED_TABLE:
            return ENOSYS;
        case DELTA_ACCESS_DENIED:
            return EACCES;
        default:
            return EIO;
    }
}

static void keep(struct coat *coat, const char *text) {
    free(coat->error);
    coat->error = text == NULL ? NULL : strdup(text);
}

/* What our own code said of the failure, or else what Arrow says. */
static int judged(struct coat *coat, int result) {
    if (result == 0) return 0;
    if (ld_last_code() != DELTA_OK) {
        keep(coat, delta_last_error());
        return errno_of(ld_last_code());
    }
    const char *told = coat->inner.get_last_error(&coat->inner);
    keep(coat, told == NULL ? "the stream failed" : told);
    ld_fail(DELTA_ERROR, coat->error == NULL ? "the stream failed" : coat->error);
    return result;
}

static int begun(struct coat *coat) {
    keep(coat, NULL);
    ld_succeed();
    if (!ld_enter()) return DELTA_NO_RUNTIME;
    int code = ld_start(); /* not after fork() */
    if (code != DELTA_OK) ld_leave();
    return code;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    struct coat *coat = stream->private_data;
    if (begun(coat) != DELTA_OK) return judged(coat, EIO);
    int result = coat->inner.get_schema(&coat->inner, out);
    ld_leave();
    return judged(coat, result);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    struct coat *coat = stream->private_data;
    if (begun(coat) != DELTA_OK) return judged(coat, EIO);
    int result = coat->inner.get_next(&coat->inner, out);
    ld_leave();
    return judged(coat, result);
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
    return ((struct coat *)stream->private_data)->error;
}

static void release(struct ArrowArrayStream *stream) {
    struct coat *coat = stream->private_data;
    /* After fork() it is the parent's to release; at the end of the process all of it goes. */
    if (!ld_is_forked() && begun(coat) == DELTA_OK) {
        coat->inner.release(&coat->inner);
        ld_leave();
    }
    free(coat->error);
    free(coat);
    stream->release = NULL;
    stream->private_data = NULL;
}

int ld_wrap_stream(struct ArrowArrayStream *inner, struct ArrowArrayStream *out) {
    struct coat *coat = calloc(1, sizeof *coat);
    if (coat == NULL) return 1;
    coat->inner = *inner;
    inner->release = NULL;
    out->get_schema = get_schema;
    out->get_next = get_next;
    out->get_last_error = get_last_error;
    out->release = release;
    out->private_data = coat;
    return 0;
}
