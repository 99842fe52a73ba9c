/* The error of each thread's latest call. */
#ifndef DELTA_LAZY_LAST_ERROR_H
#define DELTA_LAZY_LAST_ERROR_H

/* Keep the text, cut at a character's end where it is too long, and return the code. */
int ld_fail(int code, const char *text);

/* The same in three parts. */
int ld_fail_because(int code, const char *what, const char *where, const char *fix);

/* Forget what an earlier call left. */
void ld_succeed(void);

/* DELTA_OK if it went well. */
int ld_last_code(void);

#endif
