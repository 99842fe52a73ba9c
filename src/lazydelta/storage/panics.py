"""A panic of the native library: an exception that is none of Python's, made an error of ours.

Why: it derives from `BaseException`, so that it would pass every `except` on its way and end the process.
"""

from __future__ import annotations

from lazydelta.errors import StorageError

# Of a call, and of what an event loop waits for.
_PANICS = (("pyo3_runtime", "PanicException"), ("pyo3_async_runtimes", "RustPanic"))


def is_panic(error: BaseException) -> bool:
    """Whether Rust gave up: its own exceptions, which cannot be imported."""
    return (type(error).__module__, type(error).__name__) in _PANICS


def panicked(where: str) -> StorageError:
    """The error for that; what it says may hold anything, and goes to stderr anyhow."""
    return StorageError(
        "the library that talks to the store panicked",
        where,
        "run it again; if it happens again, report it with what stderr shows",
    )
