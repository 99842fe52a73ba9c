/* The parts of the library that know nothing of Python, by themselves, under the sanitizers: every byte that they
 * take must be given back. Prints what the callbacks saw. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow_abi.h"
#include "deliver.h"
#include "last_error.h"
#include "start.h"
#include "streams.h"

/* --- what start.c would say ------------------------------------------------------------------------------- */

static bool is_forked = false;

bool ld_is_forked(void) { return is_forked; }

int ld_start(void) { return is_forked ? ld_fail(DELTA_NO_RUNTIME, "forked") : DELTA_OK; }

/* --- arrays by hand: two files, the first row of every column is cut off by an offset --------------------- */

static int released = 0;

static void free_schema(struct ArrowSchema *schema) {
    for (int64_t i = 0; i < schema->n_children; i++) schema->children[i]->release(schema->children[i]);
    for (int64_t i = 0; i < schema->n_children; i++) free(schema->children[i]);
    free(schema->children);
    schema->release = NULL;
    released++;
}

static void free_array(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_children; i++) array->children[i]->release(array->children[i]);
    for (int64_t i = 0; i < array->n_children; i++) free(array->children[i]);
    for (int64_t i = 0; i < array->n_buffers; i++) free((void *)array->buffers[i]);
    free(array->children);
    free(array->buffers);
    array->release = NULL;
    released++;
}

static struct ArrowSchema *schema(const char *format, int64_t children) {
    struct ArrowSchema *made = calloc(1, sizeof *made);
    *made = (struct ArrowSchema){.format = format, .n_children = children, .release = free_schema};
    made->children = calloc((size_t)children + 1, sizeof *made->children);
    return made;
}

static struct ArrowArray *array(int64_t length, int64_t offset, int64_t buffers, int64_t children) {
    struct ArrowArray *made = calloc(1, sizeof *made);
    *made = (struct ArrowArray){.length = length, .offset = offset, .n_buffers = buffers, .n_children = children};
    made->release = free_array;
    made->null_count = -1;
    made->buffers = calloc((size_t)buffers, sizeof *made->buffers);
    made->children = calloc((size_t)children + 1, sizeof *made->children);
    return made;
}

/* Copies of exactly the size that is needed: one byte further is an error of the sanitizer. */
static const void *bytes(const void *from, size_t size) {
    void *copy = malloc(size);
    memcpy(copy, from, size);
    return copy;
}

static struct ArrowArray *numbers(const void *values, size_t size, const char *valid) {
    struct ArrowArray *made = array(2, 1, 2, 0);
    made->buffers[0] = valid == NULL ? NULL : bytes(valid, 1);
    made->buffers[1] = bytes(values, 3 * size);
    return made;
}

static struct ArrowArray *texts(const int32_t *starts, size_t count, const char *text, const char *valid, int64_t offset) {
    struct ArrowArray *made = array((int64_t)count - offset, offset, 3, 0);
    made->buffers[0] = valid == NULL ? NULL : bytes(valid, 1);
    made->buffers[1] = bytes(starts, (count + 1) * sizeof *starts);
    made->buffers[2] = starts[count] == 0 ? NULL : bytes(text, (size_t)starts[count]);
    return made;
}

static struct ArrowSchema *files_schema(int64_t columns) {
    static const char *const formats[] = {"u", "l", "l", "+m", "+s", "u"};
    static const char *const vector[] = {"u", "u", "i", "i", "l"};
    struct ArrowSchema *made = schema("+s", columns);
    for (int64_t i = 0; i < columns; i++) made->children[i] = schema(formats[i], i == 3 ? 1 : i == 4 ? 5 : 0);
    if (columns < 5) return made;
    made->children[3]->children[0] = schema("+s", 2);
    for (int i = 0; i < 2; i++) made->children[3]->children[0]->children[i] = schema("u", 0);
    for (int i = 0; i < 5; i++) made->children[4]->children[i] = schema(vector[i], 0);
    return made;
}

static struct ArrowArray *files_array(int64_t columns, const char *paths) {
    static const int64_t wide[] = {-1, 11, 22};
    static const int32_t narrow[] = {-1, 5, 6}, thirds[] = {0, 2, 4, 6}, map_starts[] = {0, 1, 3, 3};
    static const int32_t names[] = {0, 1, 2, 3, 4}, values[] = {0, 0, 0, 3, 3};
    struct ArrowArray *made = array(2, 0, 1, columns);
    made->children[0] = texts(thirds, 3, paths, NULL, 1);
    made->children[1] = numbers(wide, sizeof *wide, NULL);
    if (columns < 5) return made;
    made->children[2] = numbers(wide, sizeof *wide, "\x02"); /* the second file has none */
    struct ArrowArray *maps = made->children[3] = array(2, 1, 2, 1);
    maps->buffers[1] = bytes(map_starts, sizeof map_starts);
    struct ArrowArray *entries = maps->children[0] = array(3, 1, 1, 2); /* entries begin with one that is cut off */
    entries->children[0] = texts(names, 4, "zabc", NULL, 0);
    entries->children[1] = texts(values, 4, "x\0y", "\x05", 0); /* a text with a zero byte, then null */
    struct ArrowArray *vectors = made->children[4] = array(2, 1, 1, 5);
    vectors->buffers[0] = bytes("\x02", 1); /* the first file has one */
    vectors->children[0] = texts(thirds, 3, "--uu--", NULL, 0);
    vectors->children[1] = texts(thirds, 3, "--ab--", NULL, 0);
    for (int i = 2; i < 5; i++) vectors->children[i] = i < 4 ? numbers(narrow, sizeof *narrow, NULL) : numbers(wide, sizeof *wide, NULL);
    for (int i = 2; i < 5; i++) vectors->children[i]->offset = 0;
    vectors->children[2]->null_count = 0;
    if (columns > 5) made->children[5] = texts(thirds, 3, "--{}--", "\x02", 1);
    return made;
}

/* --- who is called ---------------------------------------------------------------------------------------- */

static int wanted = 100;

static bool on_path(const char *path, int64_t size) {
    printf("%s %d\n", path, (int)size);
    return --wanted > 0;
}

static bool on_file(const struct delta_file *file, void *user_data) {
    printf("%s %d %d %s", file->path, (int)file->size, (int)file->modification_time, file->stats == NULL ? "-" : file->stats);
    for (size_t i = 0; i < file->partition_count; i++)
        printf(" %s=%s/%d", file->partition_values[i].name,
               file->partition_values[i].value == NULL ? "null" : file->partition_values[i].value,
               (int)file->partition_values[i].value_length);
    if (file->deletion_vector != NULL)
        printf(" %s:%s:%d:%d:%d", file->deletion_vector->storage_type, file->deletion_vector->path_or_inline_dv,
               (int)file->deletion_vector->offset, (int)file->deletion_vector->size_in_bytes,
               (int)file->deletion_vector->cardinality);
    printf(" %s\n", (const char *)user_data);
    return true;
}

static int delivered(struct ld_sink *sink, int64_t columns, const char *paths) {
    struct ArrowSchema *of = files_schema(columns);
    struct ArrowArray *batch = files_array(columns, paths);
    int end = ld_deliver(batch, of, sink);
    if (batch->release != NULL || of->release != NULL) printf("not released\n");
    free(batch);
    free(of);
    ld_sink_clear(sink);
    return end;
}

static void deliver_all(void) {
    struct ld_sink paths = {.on_path = on_path}, files = {.on_file = on_file, .user_data = "mine"};
    printf("= %d\n", delivered(&paths, 2, "--p1p2"));
    printf("= %d\n", delivered(&files, 5, "--p1p2"));
    printf("= %d\n", delivered(&files, 6, "--p1p2"));
    wanted = 1;
    printf("= %d\n", delivered(&paths, 2, "--p1p2"));
    printf("= %d\n", delivered(&paths, 2, "--\0xp2"));
    printf("= %d\n", delivered(&files, 2, "--p1p2"));
}

/* --- a stream that fails, in its coat --------------------------------------------------------------------- */

static int fail(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    (void)out;
    return *(int *)stream->private_data == 0 ? ENOMEM : (ld_fail(DELTA_ACCESS_DENIED, "ours"), EIO);
}

static int fail_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    (void)out;
    return fail(stream, NULL);
}

static const char *theirs(struct ArrowArrayStream *stream) { return *(int *)stream->private_data == 0 ? NULL : "theirs"; }

static void free_stream(struct ArrowArrayStream *stream) {
    free(stream->private_data);
    stream->release = NULL;
}

static void stream_all(void) {
    for (int knows_why = 0; knows_why < 2; knows_why++) {
        int *own = malloc(sizeof *own);
        *own = knows_why;
        struct ArrowArrayStream inner = {fail_schema, fail, theirs, free_stream, own}, out;
        struct ArrowArray batch;
        struct ArrowSchema of;
        if (ld_wrap_stream(&inner, &out) != 0 || inner.release != NULL) printf("not wrapped\n");
        int code = out.get_schema(&out, &of);
        printf("%d %s\n", code, out.get_last_error(&out));
        code = out.get_next(&out, &batch);
        printf("%d %s %d\n", code, out.get_last_error(&out), strcmp(out.get_last_error(&out), delta_last_error()));
        is_forked = true;
        code = out.get_next(&out, &batch);
        printf("%d %s\n", code, out.get_last_error(&out));
        is_forked = false;
        out.release(&out);
        printf("%d\n", out.release == NULL);
    }
}

/* --- an error that is too long ---------------------------------------------------------------------------- */

static void cut_errors(void) {
    char text[6000];
    memset(text, 'a', sizeof text);
    for (size_t i = 4091; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 3); /* a euro across the cut */
    text[sizeof text - 1] = '\0';
    ld_fail(DELTA_ERROR, text);
    printf("%d\n", (int)strlen(delta_last_error()));
    ld_fail(DELTA_ERROR, delta_last_error());
    printf("%d\n", (int)strlen(delta_last_error()));
    ld_succeed();
    printf("%d\n", (int)strlen(delta_last_error()));
}

int main(void) {
    deliver_all();
    stream_all();
    cut_errors();
    return 0;
}
