/* Arrow streams as callers get them. */
#ifndef DELTA_LAZY_STREAMS_H
#define DELTA_LAZY_STREAMS_H

#include "arrow_abi.h"

/* Move the stream into `out`, with our error texts and the guard against fork(). 0, or 1 without memory. */
int ld_wrap_stream(struct ArrowArrayStream *inner, struct ArrowArrayStream *out);

#endif
