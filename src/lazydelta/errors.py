"""Every error lazydelta raises on purpose, and the exit code the command line gives it.

    LazyDeltaError                1   something else lazydelta can explain
    ├── InvalidRequestError       2   the caller's words are off: a column, a predicate, an option
    ├── TableNotFoundError        3   no Delta table there
    ├── VersionNotFoundError      4   the version or time asked for cannot be read (any more, or yet)
    ├── CorruptLogError           5   the log is damaged: gap, truncated line, unreadable checkpoint
    ├── UnsupportedTableError     6   a reader feature or version this reader cannot honour
    ├── StorageError              7   the store refused, timed out or broke off
    │   └── AccessDeniedError     8   credentials refused
    └── CorruptDataError          9   a data file is missing or damaged, or its deletion vector is

A branch exists only where a caller would act differently on it. Whatever the texts repeat of an address, a
path or an option, no error holds a secret: they are redacted when the error is made.
"""

from __future__ import annotations

from lazydelta.redaction import redacted


class LazyDeltaError(Exception):
    """Root of every error raised on purpose: what happened, where, what to do next."""

    exit_code = 1

    def __init__(self, what: str, where: str, fix: str) -> None:
        # Positional args, so the error survives pickling out of a Spark worker.
        super().__init__(redacted(str(what)), redacted(str(where)), redacted(str(fix)))

    @property
    def what(self) -> str:
        """What happened, in one sentence."""
        return str(self.args[0])

    @property
    def where(self) -> str:
        """The table, file, line or option it happened at."""
        return str(self.args[1])

    @property
    def fix(self) -> str:
        """What to do next."""
        return str(self.args[2])

    def __str__(self) -> str:
        return f"{self.what}\n  where: {self.where}\n  fix:   {self.fix}"


class InvalidRequestError(LazyDeltaError):
    """The request itself is wrong: an unknown column, a value of the wrong type, a bad option."""

    exit_code = 2


class TableNotFoundError(LazyDeltaError):
    """There is no Delta table at the address."""

    exit_code = 3


class VersionNotFoundError(LazyDeltaError):
    """The version or timestamp asked for is not in the log, or not any more."""

    exit_code = 4


class CorruptLogError(LazyDeltaError):
    """The log contradicts itself or cannot be decoded."""

    exit_code = 5


class UnsupportedTableError(LazyDeltaError):
    """The table needs something of its readers that this reader does not have."""

    exit_code = 6


class StorageError(LazyDeltaError):
    """The object store failed after all retries."""

    exit_code = 7


class AccessDeniedError(StorageError):
    """The object store refused the credentials."""

    exit_code = 8


class CorruptDataError(LazyDeltaError):
    """A data file or a deletion vector is missing, cannot be decoded, or contradicts the log."""

    exit_code = 9
