"""Build libdelta_lazy.so: `python -m lazydelta.capi.build --into build/capi`.

Why by hand: cffi writes the C that carries Python in; one call of the compiler does the rest, and every flag
of it can be seen here. Contract: the folder holds the library and its header afterwards, or the process exits
with words. The library looks for Python where this interpreter is, unless DELTA_LAZY_PYTHON says otherwise.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import NoReturn

SOURCES = Path(__file__).parent / "c"
HEADER = "delta_lazy.h"
LIBRARY = "libdelta_lazy.so"
MODULE = "_delta_lazy"
C_FILES = ("library.c", "last_error.c", "deliver.c", "streams.c", "presence.c", "start.c")
WARNINGS = ("-Wall", "-Wextra", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")

# What Python sees of C. Only sizes are asked of Arrow's structures, but for the release of a stream.
SEEN = """
struct ld_sink;
struct ArrowArray { ...; };
struct ArrowSchema { ...; };
struct ArrowArrayStream { void (*release)(struct ArrowArrayStream *); ...; };
int ld_deliver(struct ArrowArray *, struct ArrowSchema *, struct ld_sink *);
int ld_wrap_stream(struct ArrowArrayStream *, struct ArrowArrayStream *);
int ld_fail(int, const char *);
"""
# What C sees of Python: `Calls` of calls.py.
ENTRY = """
int ld_py_scan_lazy(const char *, const char *, size_t, struct ld_sink *);
int ld_py_scan_files(const char *, const char *, struct ld_sink *);
int ld_py_files_stream(const char *, const char *, struct ArrowArrayStream *);
int ld_py_rows_stream(const char *, const char *, struct ArrowArrayStream *);
"""
PRELUDE = """
#include "deliver.h"
#include "last_error.h"
#include "start.h"
#include "streams.h"

/* Before Python 3.12 cffi takes the version of the type of capsules for a lock: it must be 0, which it is no
 * more once somebody has looked up an attribute of a capsule. */
int ld_start_embedding(void) {
    PyGILState_STATE held = PyGILState_Ensure();
    PyType_Modified(&PyCapsule_Type);
    int code = cffi_start_python();
    PyGILState_Release(held);
    return code;
}
"""
START = f"""
from {MODULE} import ffi, lib
from lazydelta.capi.calls import Calls
Calls(ffi, lib).attach()
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, and say where."""
    parser = argparse.ArgumentParser(
        prog="python -m lazydelta.capi.build", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--into", type=Path, required=True, help="the folder for the library and its header")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that the library looks for")
    parser.add_argument(
        "--sanitize", action="store_true", help="with the sanitizers of addresses and of undefined behaviour"
    )
    given = parser.parse_args(arguments)
    print(build(given.into, python=given.python, sanitize=given.sanitize))


def build(
    into: Path, *, python: str = sys.executable, sanitize: bool = False, below: Path | None = None
) -> Path:
    """Make the library; its path. `below`: a folder with Python's headers and library, as in the root."""
    lacking = None if below else lacking_of_python()
    if lacking:
        _refuse(*lacking)
    into.mkdir(parents=True, exist_ok=True)
    target = into / LIBRARY
    with tempfile.TemporaryDirectory() as folder:
        carrier = Path(folder) / f"{MODULE}.c"
        _write_carrier(carrier)
        made = Path(folder) / LIBRARY
        command = _command(carrier, made, below, python=python, sanitize=sanitize)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(
                f"lazydelta: the library was not built\n{shlex.join(command)}\n{done.stdout}{done.stderr}"
            )
        shutil.copyfile(SOURCES / HEADER, into / HEADER)
        # Renamed into place: a process that runs the old library keeps it.
        partial = target.with_suffix(".part")
        shutil.copyfile(made, partial)
        partial.chmod(0o755)
        partial.replace(target)
    return target


def compiler() -> list[str]:
    """The C compiler of this machine."""
    found = shlex.split(sysconfig.get_config_var("CC") or "cc")
    if shutil.which(found[0]) is None:
        found = ["cc"]
    if shutil.which(found[0]) is None:
        _refuse("there is no C compiler", "install one (Debian, Ubuntu: apt-get install gcc libc6-dev)")
    return found


def lacking_of_python() -> tuple[str, str] | None:
    """What this Python lacks for building the library, and what to do about it."""
    include, libraries = _python_parts(None)
    name = f"python{sysconfig.get_config_var('LDVERSION')}"
    if not (include / "Python.h").exists():
        return f"{include} has no Python.h", "install Python's headers (Debian, Ubuntu: python3-dev)"
    if not sysconfig.get_config_var("Py_ENABLE_SHARED") and not list(libraries.rglob(f"lib{name}.so")):
        return f"there is no lib{name}.so", "use a Python that has its shared library (python3-dev)"
    return None


def _python_parts(below: Path | None) -> tuple[Path, Path]:
    """The folders of Python's headers and of its library."""
    include, libraries = Path(sysconfig.get_path("include")), Path(sysconfig.get_config_var("LIBDIR"))
    if below is None:
        return include, libraries
    return below / include.relative_to("/"), below / libraries.relative_to("/")


def _write_carrier(path: Path) -> None:
    """The C that cffi writes: it carries Python in."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(SEEN)
    ffi.embedding_api(ENTRY)
    ffi.embedding_init_code(START)
    ffi.set_source(MODULE, PRELUDE)
    with redirect_stdout(StringIO()):  # it says what it writes
        ffi.emit_c_code(str(path))


def _command(carrier: Path, target: Path, below: Path | None, *, python: str, sanitize: bool) -> list[str]:
    include, libraries = _python_parts(below)
    name = f"python{sysconfig.get_config_var('LDVERSION')}"
    return [
        *compiler(),
        *("-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-pthread"),
        *(WARNINGS if not sanitize else (*WARNINGS, *SANITIZERS)),
        f'-DDELTA_LAZY_VERSION="{version("lazydelta")}"',
        f'-DDELTA_LAZY_PYTHON="{python}"',
        *(f"-I{SOURCES}", f"-I{include}"),
        # Debian's headers take one from the folder above, where others must not hide the compiler's own.
        *([f"-idirafter{include.parent}"] if below else ()),
        *(str(SOURCES / name) for name in C_FILES),
        *("-Wno-error", "-Wno-unused-parameter", "-Wno-missing-field-initializers", str(carrier)),
        # Never unloaded: Python's threads would be left without their code.
        *("-Wl,-z,nodelete", f"-Wl,--version-script={SOURCES / 'exports.map'}", f"-Wl,-soname,{LIBRARY}"),
        *(f"-L{libraries}", f"-Wl,-rpath,{libraries}", f"-l{name}", "-ldl", "-o", str(target)),
    ]


def _refuse(what: str, fix: str) -> NoReturn:
    sys.exit(f"lazydelta: {what}\n  fix: {fix}")


if __name__ == "__main__":
    main()
