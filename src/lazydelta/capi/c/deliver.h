/* Files of an Arrow batch, handed to a callback one by one. Knows nothing of Python. */
#ifndef DELTA_LAZY_DELIVER_H
#define DELTA_LAZY_DELIVER_H

#include "arrow_abi.h"
#include "delta_lazy.h"

/* Who is called, and memory that serves all files of a scan. One of the callbacks is NULL. */
struct ld_sink {
    delta_path_callback on_path;
    delta_file_callback on_file;
    void *user_data;
    char *text;
    size_t text_size;
    struct delta_partition_value *values;
    size_t values_size;
};

/* How a batch ended. */
enum ld_delivery {
    LD_GO_ON = 0,
    LD_STOP = 1,      /* the callback had enough */
    LD_NO_MEMORY = 2, /* for a path of that length */
    LD_ZERO_BYTE = 3, /* a path that C cannot spell */
    LD_NOT_FILES = 4  /* the batch is not what ours look like */
};

/* Hand the files of the batch to the sink; both structures are released. The batch is a struct of path (utf8)
 * and size (int64), and for on_file besides of modification_time (int64), partition_values (map of utf8 to
 * utf8), deletion_vector (struct of utf8, utf8, int32, int32, int64) and, if it likes, stats (utf8). */
int ld_deliver(struct ArrowArray *batch, struct ArrowSchema *schema, struct ld_sink *sink);

/* Give the memory back. */
void ld_sink_clear(struct ld_sink *sink);

#endif
