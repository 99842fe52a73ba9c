/* List the newest files of a Delta table: list_files TABLE [LIMIT] */
#include <delta_lazy.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool show(const struct delta_file *file, void *user_data) {
    int64_t *total = user_data;
    *total += file->size;
    printf("%s\t%" PRId64 "\t%" PRId64, file->path, file->size, file->modification_time);
    for (size_t i = 0; i < file->partition_count; i++) {
        const struct delta_partition_value *value = &file->partition_values[i];
        printf("\t%s=%s", value->name, value->value == NULL ? "NULL" : value->value);
    }
    putchar('\n');
    return true; /* false: enough */
}

int main(int count, char **words) {
    if (count < 2) {
        fprintf(stderr, "usage: %s TABLE [LIMIT]\n", words[0]);
        return DELTA_INVALID_REQUEST;
    }
    char options[64];
    snprintf(options, sizeof options, "{\"limit\": %s}", count > 2 ? words[2] : "10");
    int64_t total = 0;
    int code = delta_scan_files(words[1], options, show, &total);
    if (code != DELTA_OK) fprintf(stderr, "error: %s\n", delta_last_error());
    else fprintf(stderr, "%" PRId64 " bytes, lazydelta %s\n", total, delta_version());
    return code;
}
