/* Python in this process. */
#ifndef DELTA_LAZY_START_H
#define DELTA_LAZY_START_H

#include <stdbool.h>

/* Start Python and lazydelta, once. DELTA_OK, or DELTA_NO_RUNTIME with its text. Any thread. */
int ld_start(void);

/* Whether this process is a child, made by fork(), of the one that started Python. */
bool ld_is_forked(void);

/* cffi's part of the start; 0 where it went well. Defined by the code that cffi writes. */
int ld_start_embedding(void);

#endif
