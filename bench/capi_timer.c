/* Times the callbacks of a scan: capi_timer TABLE. Prints, for each function, nanoseconds, files and bytes. */
#include <delta_lazy.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static int64_t files, bytes, first_ns, begun_ns;

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool on_path(const char *path, int64_t size) {
    if (files++ == 0) first_ns = now_ns() - begun_ns;
    bytes += size + (path[0] == '\0');
    return true;
}

static bool on_file(const struct delta_file *file, void *user_data) {
    (void)user_data;
    return on_path(file->path, file->size);
}

static int timed(const char *name, const char *table, bool is_full) {
    files = bytes = 0;
    begun_ns = now_ns();
    int code = is_full ? delta_scan_files(table, NULL, on_file, NULL) : delta_scan_lazy(table, NULL, 0, on_path);
    int64_t took = now_ns() - begun_ns;
    printf("%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", name, took, first_ns, files, bytes);
    if (code != DELTA_OK) fprintf(stderr, "%s\n", delta_last_error());
    return code;
}

int main(int count, char **words) {
    if (count != 2) return DELTA_INVALID_REQUEST;
    int64_t before = now_ns();
    int code = delta_scan_lazy(words[1], NULL, 1, on_path); /* starts Python */
    printf("start %" PRId64 " 0 0 0\n", now_ns() - before);
    if (code == DELTA_OK) code = timed("delta_scan_lazy", words[1], false);
    if (code == DELTA_OK) code = timed("delta_scan_files", words[1], true);
    return code;
}
