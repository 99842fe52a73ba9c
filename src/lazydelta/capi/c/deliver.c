/* The loop over files: one copy of the text of a file, which gives every string its zero byte. */
#include "deliver.h"

#include <stdlib.h>
#include <string.h>

#include "presence.h"

enum { PATH, SIZE, MODIFIED, PARTITIONS, VECTOR, STATS, COLUMNS_MAX };
enum { VECTOR_KIND, VECTOR_PATH, VECTOR_OFFSET, VECTOR_BYTES, VECTOR_ROWS, VECTOR_FIELDS };

static const char *const COLUMN_FORMATS[COLUMNS_MAX] = {"u", "l", "l", "+m", "+s", "u"};
static const char *const VECTOR_FORMATS[VECTOR_FIELDS] = {"u", "u", "i", "i", "l"};

struct text {
    const char *at;
    size_t length;
};

/* --- reading a column; `row` counts from the parent's first row ------------------------------------------ */

static bool is_null(const struct ArrowArray *column, int64_t row) {
    const uint8_t *valid = column->n_buffers > 0 ? column->buffers[0] : NULL;
    if (column->null_count == 0 || valid == NULL) return false;
    row += column->offset;
    return ((valid[row / 8] >> (row % 8)) & 1) == 0;
}

static int64_t wide(const struct ArrowArray *column, int64_t row, int64_t without) {
    return is_null(column, row) ? without : ((const int64_t *)column->buffers[1])[row + column->offset];
}

static int64_t narrow(const struct ArrowArray *column, int64_t row, int64_t without) {
    return is_null(column, row) ? without : ((const int32_t *)column->buffers[1])[row + column->offset];
}

static struct text text_of(const struct ArrowArray *column, int64_t row) {
    struct text found = {NULL, 0};
    if (is_null(column, row)) return found;
    const int32_t *starts = (const int32_t *)column->buffers[1] + column->offset + row;
    found.length = (size_t)(starts[1] - starts[0]);
    /* A column of empty strings may come without bytes. */
    found.at = found.length == 0 ? "" : (const char *)column->buffers[2] + starts[0];
    return found;
}

static void map_range(const struct ArrowArray *maps, int64_t row, int64_t *first, int64_t *end) {
    *first = *end = 0;
    if (is_null(maps, row)) return;
    const int32_t *starts = (const int32_t *)maps->buffers[1] + maps->offset + row;
    *first = starts[0];
    *end = starts[1];
}

/* --- checking the layout --------------------------------------------------------------------------------- */

static bool has_formats(const struct ArrowSchema *schema, const char *const *formats, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (strcmp(schema->children[i]->format, formats[i]) != 0) return false;
    return true;
}

static bool is_map_of_text(const struct ArrowSchema *schema) {
    if (schema->n_children != 1 || schema->children[0]->n_children != 2) return false;
    const char *const formats[] = {"u", "u"};
    return has_formats(schema->children[0], formats, 2);
}

static bool is_batch_of_files(const struct ArrowSchema *schema, int64_t wanted) {
    if (strcmp(schema->format, "+s") != 0 || schema->n_children < wanted) return false;
    if (schema->n_children > COLUMNS_MAX) return false;
    if (!has_formats(schema, COLUMN_FORMATS, schema->n_children)) return false;
    if (wanted <= PARTITIONS) return true;
    const struct ArrowSchema *vector = schema->children[VECTOR];
    return is_map_of_text(schema->children[PARTITIONS]) && vector->n_children == VECTOR_FIELDS &&
           has_formats(vector, VECTOR_FORMATS, VECTOR_FIELDS);
}

/* --- the memory of a sink -------------------------------------------------------------------------------- */

static bool make_room(struct ld_sink *sink, size_t bytes, size_t values) {
    if (bytes > sink->text_size) {
        size_t size = bytes * 2;
        char *grown = realloc(sink->text, size);
        if (grown == NULL) return false;
        sink->text = grown;
        sink->text_size = size;
    }
    if (values > sink->values_size) {
        size_t size = values * 2;
        struct delta_partition_value *grown = realloc(sink->values, size * sizeof *grown);
        if (grown == NULL) return false;
        sink->values = grown;
        sink->values_size = size;
    }
    return true;
}

static const char *put(char **end, struct text text) {
    if (text.at == NULL) return NULL;
    char *start = *end;
    memcpy(start, text.at, text.length);
    start[text.length] = '\0';
    *end += text.length + 1;
    return start;
}

void ld_sink_clear(struct ld_sink *sink) {
    free(sink->text);
    free(sink->values);
    sink->text = NULL;
    sink->values = NULL;
    sink->text_size = sink->values_size = 0;
}

/* --- one file -------------------------------------------------------------------------------------------- */

static int give_path(struct ld_sink *sink, struct text path, int64_t size) {
    if (!make_room(sink, path.length + 1, 0)) return LD_NO_MEMORY;
    char *end = sink->text;
    const char *spelled = put(&end, path);
    ld_step_out();
    bool goes_on = sink->on_path(spelled, size);
    ld_step_in();
    return goes_on ? LD_GO_ON : LD_STOP;
}

static int give_file(struct ld_sink *sink, const struct ArrowArray *batch, int64_t row, struct text path,
                     int64_t size) {
    const struct ArrowArray *maps = batch->children[PARTITIONS], *entries = maps->children[0];
    const struct ArrowArray *names = entries->children[0], *values = entries->children[1];
    const struct ArrowArray *vectors = batch->children[VECTOR];
    bool has_vector = !is_null(vectors, row);
    int64_t in_vectors = row + vectors->offset; /* a struct's offset is not in its children */
    struct text stats = {NULL, 0}, kind = {NULL, 0}, place = {NULL, 0};
    if (batch->n_children > STATS) stats = text_of(batch->children[STATS], row);
    if (has_vector) {
        kind = text_of(vectors->children[VECTOR_KIND], in_vectors);
        place = text_of(vectors->children[VECTOR_PATH], in_vectors);
    }
    int64_t first, end_of_map;
    map_range(maps, row, &first, &end_of_map);
    size_t count = (size_t)(end_of_map - first), bytes = path.length + stats.length + kind.length + place.length + 4;
    for (size_t i = 0; i < count; i++) {
        int64_t at = first + (int64_t)i + entries->offset;
        bytes += text_of(names, at).length + text_of(values, at).length + 2;
    }
    if (!make_room(sink, bytes, count)) return LD_NO_MEMORY;
    char *end = sink->text;
    struct delta_file file = {.path = put(&end, path), .size = size, .partition_count = count};
    file.modification_time = wide(batch->children[MODIFIED], row, 0);
    for (size_t i = 0; i < count; i++) {
        int64_t at = first + (int64_t)i + entries->offset;
        struct text value = text_of(values, at);
        sink->values[i].name = put(&end, text_of(names, at));
        sink->values[i].value = put(&end, value);
        sink->values[i].value_length = value.length;
    }
    file.partition_values = count == 0 ? NULL : sink->values;
    struct delta_deletion_vector vector;
    if (has_vector) {
        vector.storage_type = put(&end, kind);
        vector.path_or_inline_dv = put(&end, place);
        vector.offset = narrow(vectors->children[VECTOR_OFFSET], in_vectors, -1);
        vector.size_in_bytes = narrow(vectors->children[VECTOR_BYTES], in_vectors, 0);
        vector.cardinality = wide(vectors->children[VECTOR_ROWS], in_vectors, 0);
        file.deletion_vector = &vector;
    }
    file.stats = put(&end, stats);
    ld_step_out();
    bool goes_on = sink->on_file(&file, sink->user_data);
    ld_step_in();
    return goes_on ? LD_GO_ON : LD_STOP;
}

static int give_all(struct ld_sink *sink, const struct ArrowArray *batch) {
    const struct ArrowArray *paths = batch->children[PATH], *sizes = batch->children[SIZE];
    for (int64_t i = 0; i < batch->length; i++) {
        int64_t row = i + batch->offset;
        struct text path = text_of(paths, row);
        int64_t size = wide(sizes, row, 0);
        if (path.at == NULL) return LD_NOT_FILES;
        if (memchr(path.at, 0, path.length) != NULL) return LD_ZERO_BYTE;
        int end = sink->on_path != NULL ? give_path(sink, path, size) : give_file(sink, batch, row, path, size);
        if (end != LD_GO_ON) return end;
    }
    return LD_GO_ON;
}

int ld_deliver(struct ArrowArray *batch, struct ArrowSchema *schema, struct ld_sink *sink) {
    int64_t wanted = sink->on_path != NULL ? SIZE + 1 : VECTOR + 1;
    int end = is_batch_of_files(schema, wanted) ? give_all(sink, batch) : LD_NOT_FILES;
    schema->release(schema);
    batch->release(batch);
    ld_stay_first_at_exit();
    return end;
}
