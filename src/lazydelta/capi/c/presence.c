/* A count of who is inside, and functions for exit(). */
#define _GNU_SOURCE /* gettid */
#include "presence.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "delta_lazy.h"
#include "last_error.h"

static atomic_long present;
static atomic_bool is_ending;
static void (*_Atomic last_words)(int);
static atomic_ulong registered;
static atomic_int lost; /* threads that ended within a callback, or are in exit() there */
/* Of the thread: whether we are told of its end, its end, and how many callbacks it is in. */
static _Thread_local bool is_watched, is_over;
static _Thread_local int callbacks;

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *); /* of glibc: at the end of a thread */
extern void *__dso_handle;

#define REGISTERED_EACH_TIME 64

static void wait_for_the_end(void) {
    while (true) pause();
}

/* Presence is counted before the end is looked for, and the end is said before presence is counted: one of both
 * sees the other. */
static bool came_in(void) {
    atomic_fetch_add(&present, 1);
    if (!atomic_load(&is_ending)) return true;
    atomic_fetch_sub(&present, 1);
    return false;
}

static void say_last_words(int status, void *unused) {
    (void)unused;
    void (*function)(int) = atomic_exchange(&last_words, NULL);
    if (function != NULL) function(status);
}

static void be_first_at_exit(void) {
    if (atomic_load(&last_words) != NULL) on_exit(say_last_words, NULL);
}

/* The main thread's objects go within exit() alone, and so do those of a thread that is in a callback. */
static void end_thread(void *unused) {
    (void)unused;
    is_over = true;
    if (callbacks > 0) atomic_fetch_add(&lost, 1);
    if (gettid() == getpid() || callbacks > 0) be_first_at_exit();
}

__attribute__((constructor)) static void watch_thread(void) {
    if (!is_watched) is_watched = __cxa_thread_atexit_impl(end_thread, NULL, &__dso_handle) == 0;
}

bool ld_enter(void) {
    watch_thread();
    if (is_over) {
        ld_fail_because(DELTA_NO_RUNTIME, "the thread is ending", "exit(), or the end of the thread",
                        "end scans before the thread or the process ends");
        return false;
    }
    if (came_in()) return true;
    ld_fail_because(DELTA_NO_RUNTIME, "the process is ending", "exit()", "end scans before the process ends");
    return false;
}

void ld_leave(void) {
    ld_stay_first_at_exit();
    atomic_fetch_sub(&present, 1);
}

void ld_step_out(void) {
    callbacks++;
    atomic_fetch_sub(&present, 1);
}

void ld_step_in(void) {
    callbacks--;
    if (!came_in()) wait_for_the_end();
}

bool ld_is_anyone_lost(void) { return atomic_load(&lost) > (callbacks > 0 ? 1 : 0); }

bool ld_is_ending(void) { return atomic_load(&is_ending); }

bool ld_clear_out(int milliseconds_max) {
    const struct timespec millisecond = {.tv_nsec = 1000000};
    atomic_store(&is_ending, true);
    while (atomic_load(&present) > 0 && milliseconds_max-- > 0) nanosleep(&millisecond, NULL);
    return atomic_load(&present) == 0;
}

void ld_at_exit(void (*function)(int)) {
    atomic_store(&last_words, function);
    be_first_at_exit();
}

void ld_stay_first_at_exit(void) {
    if (atomic_load(&last_words) == NULL) return;
    unsigned long count = atomic_fetch_add(&registered, 1);
    if (count < REGISTERED_EACH_TIME || (count & (count - 1)) == 0) be_first_at_exit();
}
