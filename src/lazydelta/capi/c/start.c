/* How Python gets into a process that may know nothing of it.
 *
 * Contract: one start, whichever threads come first; a failed start is remembered and told again. The host keeps
 * its signal handlers, its locale and its standard streams. Python is never ended: it goes with the process. At
 * exit() scans are stopped, also a start that is under way, and then nobody gets Python's lock any more
 * (presence.h). If somebody still is inside of Python or Arrow after a while, the process ends without the
 * destructors of libraries, which would pull the ground from under them.
 *
 * Which Python: the environment variable DELTA_LAZY_PYTHON, or what `make capi` baked in: the path of an
 * interpreter (`.venv/bin/python`) whose environment has lazydelta. It is not run: Python looks from there for
 * its own library. Without either, PYTHONHOME and PYTHONPATH count as they do for Python. A process that runs
 * Python already is taken as it is.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "start.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "delta_lazy.h"
#include "last_error.h"
#include "presence.h"

#ifndef DELTA_LAZY_PYTHON
#define DELTA_LAZY_PYTHON ""
#endif
#define FIX                                                                                                    \
    "set DELTA_LAZY_PYTHON to the python of an environment that has lazydelta and cffi, such as "              \
    ".venv/bin/python; it must be Python " Py_STRINGIFY(PY_MAJOR_VERSION) "." Py_STRINGIFY(PY_MINOR_VERSION)

#define SIGNALS 32
#define LEAVING_MILLISECONDS_MAX 2500 /* for callers, and again for Python's own threads */
#define FLUSHING_MILLISECONDS_MAX 1000

enum { COLD, RUNNING, FAILED };

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static atomic_int state = COLD;
static _Atomic pid_t home;
static char why[2048]; /* why the start failed */

static const char *chosen_python(void) {
    const char *chosen = getenv("DELTA_LAZY_PYTHON");
    return chosen != NULL && chosen[0] != '\0' ? chosen : DELTA_LAZY_PYTHON;
}

static int failed(const char *what, const char *where) {
    snprintf(why, sizeof why, "%s\n  where: %s\n  fix:   %s", what, where, FIX);
    return DELTA_NO_RUNTIME;
}

/* Extension modules of Python (Arrow, numpy) expect its symbols among those that every library sees. A host that
 * loads us for itself alone, as runtimes with plug-ins do, hides them. */
static void show_python_to_its_extensions(void) {
    Dl_info found;
    if (dladdr((void *)&Py_IsInitialized, &found) != 0 && found.dli_fname != NULL)
        (void)dlopen(found.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

static PyStatus initialize(const char *python) {
    PyPreConfig early;
    PyPreConfig_InitPythonConfig(&early);
    early.parse_argv = 0;
    early.configure_locale = 0;
    early.coerce_c_locale = 0;
    early.coerce_c_locale_warn = 0;
    early.utf8_mode = 1;
    PyStatus status = Py_PreInitialize(&early);
    if (PyStatus_Exception(status)) return status;
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;
    config.install_signal_handlers = 0;
    config.configure_c_stdio = 0;
    config.pathconfig_warnings = 0;
    if (python[0] != '\0') status = PyConfig_SetBytesString(&config, &config.program_name, python);
    if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    return status;
}

static int start_python(void) {
    const char *python = chosen_python();
    if (python[0] != '\0' && access(python, X_OK) != 0) {
        if (getenv("DELTA_LAZY_PYTHON") != NULL || getenv("PYTHONHOME") == NULL)
            return failed("there is no Python interpreter", python);
        python = "";
    }
    show_python_to_its_extensions();
    PyStatus status = initialize(python);
    if (PyStatus_Exception(status)) {
        char text[512];
        const char *told = status.err_msg != NULL ? status.err_msg : "it does not say why";
        snprintf(text, sizeof text, "Python did not start; does the path or PYTHONHOME belong to one? %s", told);
        return failed(text, python);
    }
    PyEval_SaveThread();
    return DELTA_OK;
}

/* The error that is set, as text; it is cleared. */
static void take_error(const char *prefix, char *text, size_t size) {
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    PyObject *words = value == NULL ? NULL : PyObject_Str(value);
    const char *spelled = words == NULL ? NULL : PyUnicode_AsUTF8(words);
    snprintf(text, size, "%s: %s", prefix, spelled == NULL ? "an import failed" : spelled);
    Py_XDECREF(words);
    Py_XDECREF(kind);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
}

static int import_all(void) {
    static const char *const needed[] = {"_cffi_backend", "numpy", "pyarrow", "lazydelta.capi.calls"};
    PyGILState_STATE held = PyGILState_Ensure();
    int code = DELTA_OK;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0] && code == DELTA_OK; i++) {
        PyObject *module = PyImport_ImportModule(needed[i]);
        if (module == NULL) {
            char text[1024];
            take_error("this Python cannot import what is needed", text, sizeof text);
            code = failed(text, chosen_python());
        }
        Py_XDECREF(module);
        if (code == DELTA_OK && ld_is_ending()) code = failed("the process is ending", "exit()");
    }
    PyGILState_Release(held);
    return code;
}

/* Call a function of lazydelta.capi.guest: whether it does not fail, nor says False. Python's lock is held. */
static int guest(const char *function) {
    PyObject *module = PyImport_ImportModule("lazydelta.capi.guest");
    PyObject *done = module == NULL ? NULL : PyObject_CallMethod(module, function, NULL);
    int code = done != NULL && done != Py_False ? DELTA_OK : DELTA_NO_RUNTIME;
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(module);
    return code;
}

static int settle(void) {
    PyGILState_STATE held = PyGILState_Ensure();
    int code = guest("settle");
    PyGILState_Release(held);
    return code == DELTA_OK ? code : failed("lazydelta did not settle", chosen_python());
}

static void *stop_all(void *unused) {
    PyGILState_Ensure(); /* for good: nobody runs Python after this */
    return guest("leave") == DELTA_OK ? &home : unused;
}

static void *flush_all(void *unused) {
    fflush(NULL);
    return unused;
}

/* Do it in a thread of its own, but wait no longer than so: what it returned, or NULL. */
static void *done_within(void *(*work)(void *), long milliseconds_max) {
    pthread_t thread;
    struct timespec until;
    void *done = NULL;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return NULL;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += milliseconds_max % 1000 * 1000000;
    until.tv_sec += milliseconds_max / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(thread, &done, &until) == 0 ? done : NULL;
}

/* Runs within exit(), whose thread has lost its thread-local objects already: Arrow must not run in it. */
static void leave_python(int status) {
    if (ld_is_forked()) return;
    bool is_clear = ld_clear_out(LEAVING_MILLISECONDS_MAX);
    if (is_clear && state != RUNNING) return; /* the start failed, or was given up */
    bool may_ask = is_clear && !ld_is_anyone_lost();
    if (may_ask && done_within(stop_all, LEAVING_MILLISECONDS_MAX) != NULL) return;
    done_within(flush_all, FLUSHING_MILLISECONDS_MAX);
    _exit(status);
}

static int start_all(void) {
    bool is_ours = !Py_IsInitialized();
    if (is_ours) ld_at_exit(leave_python);
    int code = is_ours ? start_python() : DELTA_OK;
    if (code == DELTA_OK) code = import_all();
    if (code == DELTA_OK && is_ours) code = settle();
    if (code == DELTA_OK) ld_stay_first_at_exit();
    if (code == DELTA_OK && ld_start_embedding() != 0)
        code = failed("lazydelta did not start; Python's words are on stderr", chosen_python());
    return code;
}

/* Python takes SIGINT when its module of signals is first loaded, even where it is told to leave signals alone. */
static int start_all_but_signals(void) {
    struct sigaction kept[SIGNALS];
    for (int i = 1; i < SIGNALS; i++) sigaction(i, NULL, &kept[i]);
    int code = start_all();
    for (int i = 1; i < SIGNALS; i++) {
        struct sigaction now;
        bool is_same = sigaction(i, NULL, &now) != 0 || now.sa_handler == kept[i].sa_handler;
        if (!is_same) sigaction(i, &kept[i], NULL);
    }
    return code;
}

bool ld_is_forked(void) { return home != 0 && home != getpid(); }

int ld_start(void) {
    if (ld_is_forked())
        return ld_fail_because(DELTA_NO_RUNTIME, "this process was forked from one that had started Python",
                               "fork()", "scan before the fork is made, in the parent, or call exec() after it");
    if (state == RUNNING) return DELTA_OK;
    pthread_mutex_lock(&starting);
    if (state == COLD) {
        home = getpid();
        state = start_all_but_signals() == DELTA_OK ? RUNNING : FAILED;
    }
    pthread_mutex_unlock(&starting);
    return state == RUNNING ? DELTA_OK : ld_fail(DELTA_NO_RUNTIME, why);
}
