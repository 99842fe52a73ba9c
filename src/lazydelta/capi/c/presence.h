/* Who is inside of Python or Arrow, so that a process can end without pulling the ground from under them.
 *
 * Why: exit() runs the destructors of Arrow and others while threads that the host never joined still scan.
 * Contract: a call is present from ld_enter to ld_leave, but for its callbacks, which are the host's own code.
 * Once the process is ending nobody enters, and who comes back from a callback is kept waiting for the end.
 */
#ifndef DELTA_LAZY_PRESENCE_H
#define DELTA_LAZY_PRESENCE_H

#include <stdbool.h>

/* False: the process or the thread is ending, with its text in delta_last_error(). A thread whose thread-local
 * objects are gone, as those of the thread in exit() are, may not run Arrow any more. */
bool ld_enter(void);
void ld_leave(void);

/* Around a callback. */
void ld_step_out(void);
void ld_step_in(void);

/* Whether a thread other than this one has ended within a callback, as those of runtimes that go down do. Python still
 * believes in it, and what it believes of its stack must not be looked at. */
bool ld_is_anyone_lost(void);

/* Whether the process is ending. */
bool ld_is_ending(void);

/* Let nobody in any more, and wait, up to so many milliseconds, until nobody is there: whether nobody is. */
bool ld_clear_out(int milliseconds_max);

/* Call the function once, within exit(), with exit()'s status, before the destructors of other libraries. Libraries
 * register theirs when they are loaded or first use something, and the last to register is the first to run. The
 * main thread, and one that calls exit() in a callback, register it within exit() itself, where the thread's own
 * objects go before anything else. For other threads, whose end looks the same, it is registered again and again,
 * as calls end (each time at first, ever more rarely later). */
void ld_at_exit(void (*function)(int status));
void ld_stay_first_at_exit(void);

#endif
