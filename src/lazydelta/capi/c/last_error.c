/* One buffer a thread, of a fixed size: nothing to free when a thread ends, and nothing that can fail. */
#include "last_error.h"

#include <stdio.h>
#include <string.h>

#include "delta_lazy.h"

#define TEXT_BYTES_MAX 4096

static _Thread_local char last_text[TEXT_BYTES_MAX];
static _Thread_local int last_code;

static size_t cut(const char *text, size_t length) {
    if (length < TEXT_BYTES_MAX) return length;
    length = TEXT_BYTES_MAX - 1;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
    return length;
}

int ld_fail(int code, const char *text) {
    size_t length = cut(text, strlen(text));
    memmove(last_text, text, length);
    last_text[length] = '\0';
    last_code = code;
    return code;
}

int ld_fail_because(int code, const char *what, const char *where, const char *fix) {
    char text[TEXT_BYTES_MAX * 2];
    snprintf(text, sizeof text, "%s\n  where: %s\n  fix:   %s", what, where, fix);
    return ld_fail(code, text);
}

void ld_succeed(void) {
    last_text[0] = '\0';
    last_code = DELTA_OK;
}

int ld_last_code(void) { return last_code; }

const char *delta_last_error(void) { return last_text; }
