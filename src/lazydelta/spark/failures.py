"""Failures of Spark, Java and py4j as errors of lazydelta: the root cause's first line, never a stack trace.

Contract: inside `explained` every exception of PySpark or py4j becomes a `LazyDeltaError`; errors of
lazydelta and bugs of Python code pass as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lazydelta.errors import AccessDeniedError, InvalidRequestError, LazyDeltaError, StorageError

# What the message says -> the branch, and what to do.
_KNOWN: tuple[tuple[str, type[LazyDeltaError], str], ...] = (
    (
        r"No space left on device|Disk quota exceeded|File too large",
        StorageError,
        "make room and run it again: the table is as its last commit left it",
    ),
    (
        r"Access ?Denied|Forbidden|AuthorizationPermissionMismatch|AuthenticationFailed|status code.* 40[13]",
        AccessDeniedError,
        "check the credentials that Spark uses (spark.hadoop.fs.…), then run it again",
    ),
    (
        r"Permission denied|Read-only file system|Mkdirs failed|Unable to create|Cannot create directory",
        StorageError,
        "make the folder writable and run it again: the table is as its last commit left it",
    ),
    (
        r"No FileSystem for scheme|Class .*FileSystem not found",
        InvalidRequestError,
        "add the store's connector (--spark-conf spark.jars.packages=…) and its spark.hadoop.fs.… settings",
    ),
    (
        r"Connection refused|timed out|UnknownHostException|Connection reset|Input/output error"
        r"|Operation failed: .*, (?:429|5\d\d), [A-Z]+,",  # as Hadoop tells what Azure answered
        StorageError,
        "check the store and the network, then run it again: the table is as its last commit left it",
    ),
    (
        r"Failed to find the data source|DATA_SOURCE_NOT_FOUND",
        InvalidRequestError,
        "give --format json, csv, parquet, orc, delta or table; others need spark.jars.packages",
    ),
    (
        r"INVALID_CHARACTERS? ?_?IN_COLUMN_NAME|invalid character\(s\) among",
        InvalidRequestError,
        "rename the column, or make the table with --property delta.columnMapping.mode=name",
    ),
    (
        r"Unknown time-zone ID|INVALID_TIMEZONE",
        InvalidRequestError,
        "give a --time-zone that this Java knows, or install a newer Java",
    ),
    (
        r"CSV header does not conform to the schema",
        InvalidRequestError,
        "give every column of the header a name: none empty, none twice, upper and lower case alike",
    ),
    (r"PATH_NOT_FOUND|Path does not exist", InvalidRequestError, "check the path"),
    (
        r"INVALID_DATETIME_PATTERN",
        InvalidRequestError,
        "write --event-time-format in Spark's letters",
    ),
    (
        r"OutOfMemoryError|Java heap space",
        LazyDeltaError,
        "give more with --spark-conf spark.driver.memory=4g",
    ),
)
_OTHERWISE = "mend what it names, then run it again: the table is as its last commit left it"


@contextmanager
def explained(doing: str, where: str) -> Iterator[None]:
    """Run the body; what Spark raises in it becomes a `LazyDeltaError`: "`doing` failed: cause"."""
    try:
        yield
    except spark_failures() as problem:
        raise explain(problem, doing, where) from problem


def spark_failures() -> tuple[type[Exception], ...]:
    """What PySpark and py4j raise; a connection breaks when the JVM is gone."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, ConnectionError


def explain(problem: BaseException, doing: str, where: str) -> LazyDeltaError:
    """The error that tells what `problem` means."""
    causes = _messages(problem)
    text = "\n".join(causes)
    for pattern, branch, fix in _KNOWN:
        found = re.search(pattern, text)
        if found:
            line = next(line for line in causes if re.search(pattern, line))
            return branch(f"{doing} failed: {_first_line(line)}", where, fix)
    branch = InvalidRequestError if _is_refusal(problem) else LazyDeltaError
    return branch(f"{doing} failed: {_summed_up(causes)}", where, _OTHERWISE)


def _is_refusal(problem: BaseException) -> bool:
    """Whether Spark refused the request itself, before it ran."""
    from pyspark.errors import AnalysisException, ParseException

    return isinstance(problem, AnalysisException | ParseException)


def _messages(problem: BaseException) -> list[str]:
    """What each cause says, outermost first."""
    java = getattr(problem, "java_exception", None)
    if java is None:
        java = getattr(problem, "_origin", None)
    messages = _java_messages(java) if java is not None else []
    return messages or [str(problem) or type(problem).__name__]


def _java_messages(throwable: Any) -> list[str]:  # Any: an object of the JVM
    messages: list[str] = []
    try:
        while throwable is not None and len(messages) < 20:
            message = throwable.getMessage()
            name = throwable.getClass().getSimpleName()
            messages.append(f"{name}: {message}" if message else name)
            throwable = throwable.getCause()
    except Exception:  # noqa: BLE001 - the JVM is gone: what was read must do
        return messages
    return messages


def _summed_up(causes: list[str]) -> str:
    """The innermost message that Spark wrote for users, and the root cause where that is another."""
    root = _first_line(causes[-1])
    written = [_first_line(cause) for cause in causes if re.match(r"\w+: \[[A-Z_.]+\]", cause)]
    return root if not written or written[-1] == root else f"{written[-1]} ({root})"


def _first_line(message: str) -> str:
    """The first line that says something, without what only the JVM's authors read."""
    lines = [line.strip() for line in message.splitlines()]
    line = next((line for line in lines if line and not line.startswith("at ")), message.strip())
    # The stack of an executor's failure stands in its message.
    line = re.sub(
        r"^(SparkException: )?Job aborted due to stage failure: .*?(\w+(?:Exception|Error): )", r"\2", line
    )
    return line if len(line) <= 600 else line[:600] + "…"
