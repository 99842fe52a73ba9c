/* What the tests do in C: probe ACTION TABLE [ARGUMENT …]. Each action prints what the test compares. */
#include <delta_lazy.h>
#include <arrow_abi.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int said(int code) {
    if (code != DELTA_OK) fprintf(stderr, "%s\n", delta_last_error());
    else if (delta_last_error()[0] != '\0') fprintf(stderr, "an error is left: %s\n", delta_last_error());
    return code;
}

/* --- lazy TABLE PREDICATE LIMIT STOP_AFTER: path and size, a line each ------------------------------------ */

static long stop_after = -1, seen = 0;

static bool print_path(const char *path, int64_t size) {
    printf("%s\t%" PRId64 "\n", path, size);
    return ++seen != stop_after;
}

static int lazy(char **words) {
    stop_after = atol(words[3]);
    const char *predicate = strcmp(words[1], "-") == 0 ? NULL : words[1];
    return said(delta_scan_lazy(words[0], predicate, (size_t)atoll(words[2]), print_path));
}

/* --- files TABLE OPTIONS: everything of a file, a line each, fields in hexadecimal ------------------------ */

static void hex(const char *text, size_t length) {
    if (text == NULL) {
        printf("\t-");
        return;
    }
    printf("\t.");
    for (size_t i = 0; i < length; i++) printf("%02x", (unsigned char)text[i]);
}

static bool print_file(const struct delta_file *file, void *user_data) {
    long *left = user_data;
    const struct delta_deletion_vector *vector = file->deletion_vector;
    printf("%" PRId64 "\t%" PRId64, file->size, file->modification_time);
    hex(file->path, strlen(file->path));
    hex(file->stats, file->stats == NULL ? 0 : strlen(file->stats));
    if (vector != NULL) {
        printf("\t%s:%s:%" PRId64 ":%" PRId64 ":%" PRId64, vector->storage_type, vector->path_or_inline_dv,
               vector->offset, vector->size_in_bytes, vector->cardinality);
    } else {
        printf("\t-");
    }
    for (size_t i = 0; i < file->partition_count; i++) {
        hex(file->partition_values[i].name, strlen(file->partition_values[i].name));
        hex(file->partition_values[i].value, file->partition_values[i].value_length);
    }
    putchar('\n');
    return --*left != 0;
}

static int files(char **words) {
    long left = words[2] == NULL ? -1 : atol(words[2]);
    return said(delta_scan_files(words[0], strcmp(words[1], "-") == 0 ? NULL : words[1], print_file, &left));
}

/* --- threads TABLE COUNT ROUNDS: scans side by side, in threads that Python does not know ----------------- */

struct job {
    const char *table;
    int rounds, index, code;
    int64_t files, bytes;
    char error[256];
};

static bool add_up(const struct delta_file *file, void *user_data) {
    struct job *job = user_data;
    job->files++;
    job->bytes += file->size;
    return true;
}

static void *work(void *argument) {
    struct job *job = argument;
    for (int i = 0; i < job->rounds && job->code == DELTA_OK; i++) {
        job->code = delta_scan_files(job->table, NULL, add_up, job);
        /* Every thread has its own error, which the others' scans do not touch. */
        char missing[64];
        snprintf(missing, sizeof missing, "/no/table/%d", job->index);
        if (delta_scan_files(missing, NULL, add_up, job) != DELTA_TABLE_NOT_FOUND) job->code = 99;
        usleep(1000);
        snprintf(job->error, sizeof job->error, "%s", delta_last_error());
        if (strstr(job->error, missing) == NULL) job->code = 98;
    }
    return NULL;
}

static int threads(char **words) {
    int count = atoi(words[1]);
    pthread_t all[64];
    struct job jobs[64];
    memset(jobs, 0, sizeof jobs);
    for (int i = 0; i < count; i++) {
        jobs[i].table = words[0];
        jobs[i].rounds = atoi(words[2]);
        jobs[i].index = i;
        pthread_create(&all[i], NULL, work, &jobs[i]);
    }
    int worst = DELTA_OK;
    for (int i = 0; i < count; i++) {
        pthread_join(all[i], NULL);
        printf("%" PRId64 "\t%" PRId64 "\n", jobs[i].files, jobs[i].bytes);
        if (jobs[i].code > worst) worst = jobs[i].code;
    }
    return worst;
}

/* --- nested TABLE: a scan within a callback of a scan ----------------------------------------------------- */

static bool scan_again(const struct delta_file *file, void *user_data) {
    struct job inner = {0};
    int code = delta_scan_files(user_data, NULL, add_up, &inner);
    printf("%s\t%d\t%" PRId64 "\n", file->path, code, inner.files);
    return true;
}

static int nested(char **words) { return said(delta_scan_files(words[0], NULL, scan_again, words[0])); }

/* --- fork TABLE: what a child gets, before and after its parent began ------------------------------------- */

static int in_child(const char *table) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct job job = {0};
        int code = delta_scan_files(table, NULL, add_up, &job);
        fprintf(stderr, "%s\n", delta_last_error());
        exit(code == DELTA_OK ? (int)job.files : 100 + code);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int forked(char **words) {
    printf("cold %d\n", in_child(words[0]));
    struct job job = {0};
    int code = delta_scan_files(words[0], NULL, add_up, &job);
    struct ArrowArrayStream stream;
    if (code == DELTA_OK) code = delta_files_stream(words[0], NULL, &stream);
    printf("warm %d\n", in_child(words[0]));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) { /* the parent's stream */
        struct ArrowArray batch;
        int refused = stream.get_next(&stream, &batch) != 0;
        fprintf(stderr, "%s\n", stream.get_last_error(&stream));
        stream.release(&stream);
        _exit(refused);
    }
    int status;
    waitpid(child, &status, 0);
    printf("stream %d\n", WEXITSTATUS(status));
    struct ArrowArray batch;
    printf("parent %d\n", stream.get_next(&stream, &batch));
    printf("files %" PRId64 "\n", batch.length);
    batch.release(&batch);
    stream.release(&stream);
    return said(code);
}

/* --- rows, pages, leave TABLE OPTIONS: Arrow streams ------------------------------------------------------ */

static int drained(struct ArrowArrayStream *stream, int64_t batches_max) {
    int64_t rows = 0, batches = 0;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    int problem = stream->get_schema(stream, &schema);
    if (problem == 0) {
        printf("columns %" PRId64 "\n", schema.n_children);
        schema.release(&schema);
    }
    while (problem == 0 && batches != batches_max) {
        problem = stream->get_next(stream, &batch);
        if (problem != 0 || batch.release == NULL) break;
        rows += batch.length;
        batches++;
        batch.release(&batch);
    }
    printf("rows %" PRId64 "\n", rows);
    if (problem != 0) {
        printf("errno %d\n", problem);
        fprintf(stderr, "%s\n", stream->get_last_error(stream));
        if (strcmp(stream->get_last_error(stream), delta_last_error()) != 0) printf("the errors differ\n");
    }
    return problem == 0 ? DELTA_OK : DELTA_ERROR;
}

static int rows(char **words) {
    struct ArrowArrayStream stream;
    int code = delta_rows_stream(words[0], words[1], &stream);
    if (code != DELTA_OK) return said(code);
    code = drained(&stream, words[2] == NULL ? -1 : atol(words[2]));
    stream.release(&stream);
    if (stream.release != NULL) printf("not released\n");
    return code;
}

/* The process ends with streams half read, and one batch that nobody released. */
static int leave(char **words) {
    static struct ArrowArrayStream of_rows, of_files;
    static struct ArrowArray batch;
    int code = delta_rows_stream(words[0], NULL, &of_rows);
    if (code == DELTA_OK) code = delta_files_stream(words[0], NULL, &of_files);
    if (code == DELTA_OK) code = drained(&of_rows, 1);
    if (code == DELTA_OK) code = of_files.get_next(&of_files, &batch);
    return said(code);
}

/* The process ends while threads scan. */
static void *scan_on(void *table) {
    struct job job = {0};
    while (delta_scan_files(table, NULL, add_up, &job) == DELTA_OK) continue;
    return NULL;
}

static int leave_scanning(char **words) {
    struct job job = {0};
    int code = delta_scan_files(words[0], NULL, add_up, &job);
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, scan_on, words[0]);
    usleep(200 * 1000);
    return said(code);
}

/* The process ends so many milliseconds after threads began the first scans, or the start of Python. */
static bool dawdle(const char *path, int64_t size) {
    (void)path, (void)size;
    usleep(1000);
    return true;
}

static void *scan_slowly(void *table) {
    while (delta_scan_lazy(table, NULL, 0, dawdle) == DELTA_OK) continue;
    return NULL;
}

static int leave_early(char **words) {
    pthread_t thread;
    for (int i = 0; i < 4; i++) pthread_create(&thread, NULL, scan_slowly, words[0]);
    usleep((useconds_t)atoi(words[1]) * 1000);
    return 3;
}

/* exit() in a callback of a thread, while others scan. */
static bool leave_now(const char *path, int64_t size) {
    (void)path, (void)size;
    exit(3);
}

static void *scan_and_leave(void *table) {
    delta_scan_lazy(table, NULL, 0, leave_now);
    return NULL;
}

static int leave_within(char **words) {
    pthread_t thread;
    for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, scan_slowly, words[0]);
    pthread_create(&thread, NULL, scan_and_leave, words[0]);
    sleep(60);
    return 4;
}

/* A scan in a handler of exit(), where the thread's objects are gone. */
static const char *late_table;

static void scan_late(void) { printf("%d %s\n", delta_scan_lazy(late_table, NULL, 0, dawdle), delta_last_error()); }

static int late(char **words) {
    late_table = words[0];
    int code = delta_scan_lazy(words[0], NULL, 0, dawdle);
    atexit(scan_late);
    return said(code);
}

/* --- wrong TABLE: calls that lack something --------------------------------------------------------------- */

static int wrong(char **words) {
    struct ArrowArrayStream stream = {0};
    printf("%d\n", delta_scan_lazy(NULL, NULL, 0, print_path));
    printf("%d\n", delta_scan_lazy(words[0], NULL, 0, NULL));
    printf("%d\n", delta_scan_files(words[0], NULL, NULL, NULL));
    printf("%d\n", delta_files_stream(words[0], NULL, NULL));
    printf("%d\n", delta_rows_stream(NULL, NULL, &stream));
    printf("%d\n", delta_scan_lazy("\xff\xfe", NULL, 0, print_path));
    printf("%s\n", delta_last_error());
    return stream.release == NULL ? DELTA_OK : DELTA_ERROR;
}

/* --- codes [TABLE OPTIONS] …: the code of each, and the first line of its error --------------------------- */

static int codes(char **words) {
    struct job job = {0};
    for (; words[0] != NULL; words += 2) {
        int code = delta_scan_files(words[0], words[1], add_up, &job);
        printf("%d %.*s\n", code, (int)strcspn(delta_last_error(), "\n"), delta_last_error());
    }
    return DELTA_OK;
}

/* --- often TABLE ROUNDS: the memory of the process, in KB, before and after many calls of each kind -------- */

static long resident_kb(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    if (file != NULL) fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static bool take_one(const struct delta_file *file, void *user_data) {
    (void)file, (void)user_data;
    return false;
}

static int often(char **words) {
    int rounds = atoi(words[1]), code = DELTA_OK;
    for (int i = 0; i < rounds && code == DELTA_OK; i++) {
        if (i == rounds / 3) printf("%ld\n", resident_kb());
        struct ArrowArrayStream stream;
        struct ArrowArray batch;
        code = delta_scan_files(words[0], NULL, take_one, NULL);
        if (delta_scan_files("/no/table", NULL, take_one, NULL) != DELTA_TABLE_NOT_FOUND) code = 99;
        if (code == DELTA_OK) code = delta_files_stream(words[0], NULL, &stream);
        if (code != DELTA_OK) break;
        code = stream.get_next(&stream, &batch);
        batch.release(&batch);
        stream.release(&stream);
    }
    printf("%ld\n", resident_kb());
    return said(code);
}

/* --- forever TABLE: until somebody interrupts it ---------------------------------------------------------- */

static int forever(char **words) {
    struct job job = {0};
    int code = delta_scan_files(words[0], NULL, add_up, &job);
    puts("scanning");
    fflush(stdout);
    while (code == DELTA_OK) code = delta_scan_files(words[0], NULL, add_up, &job);
    return said(code);
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        int (*run)(char **);
    } actions[] = {{"lazy", lazy},   {"files", files}, {"threads", threads}, {"nested", nested},
                   {"fork", forked}, {"rows", rows},   {"leave", leave},     {"leave-scanning", leave_scanning},
                   {"wrong", wrong}, {"codes", codes}, {"often", often},     {"forever", forever},
                   {"late", late},   {"leave-early", leave_early}, {"leave-within", leave_within}};
    if (count < 3) return 64;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, words[1]) == 0) return actions[i].run(words + 2);
    return 64;
}
