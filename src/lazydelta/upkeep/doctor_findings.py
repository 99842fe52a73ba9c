"""What the doctor says: one finding per cause, with what was measured, why it matters and what to do.

Contract: plain data, the same for a terminal, for JSON and for Python. A command is complete: it can be
copied into a shell, or into Spark's SQL where `runs_in` says so. Storage options are not in it: they may be
secrets.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

Fact = int | float | str | bool | None | dict[str, int] | list[str]


class Severity(StrEnum):
    """How much it costs, the worst first."""

    PROBLEM = "problem"  # queries fail, or read everything
    WARNING = "warning"  # queries are slower than they need be
    NOTE = "note"  # worth knowing; nothing has to be done


class RunsIn(StrEnum):
    """Where a command is typed."""

    SHELL = "shell"
    SPARK_SQL = "spark-sql"


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """A command that mends what was found."""

    command: str
    runs_in: RunsIn = RunsIn.SHELL


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing about the table."""

    code: str  # stable: a script may look for it
    severity: Severity
    what: str  # with the figures
    why: str
    fix: str
    remedy: Remedy | None = None
    facts: dict[str, Fact] = {}


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """What the doctor looked at, so that nobody takes a sample for the whole."""

    files_known: int | None  # in the table, by its hints
    files_known_from: str | None
    files_sampled: int
    is_sample_whole: bool  # every live file was looked at
    log_files_listed: int
    is_log_listed_whole: bool
    requests: int
    bytes_read: int
    elapsed_ms: float


class DoctorReport(msgspec.Struct, frozen=True, kw_only=True):
    """All findings, the worst first."""

    table: str
    version: int | None  # None: the table could not be opened
    predicate: str | None
    findings: tuple[Finding, ...]
    examined: Examined | None

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding; None where there is none."""
        return next((level for level in Severity if any(f.severity is level for f in self.findings)), None)

    @property
    def needs_work(self) -> bool:
        """Whether there is more than notes."""
        return self.worst in (Severity.PROBLEM, Severity.WARNING)


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """The worst first, else as they were found."""
    levels = list(Severity)
    return tuple(sorted(findings, key=lambda finding: levels.index(finding.severity)))


def shell(*words: str) -> Remedy:
    """A command of the shell, quoted where it must be."""
    return Remedy(command=shlex.join(words))


def spark_sql(statement: str) -> Remedy:
    """A statement of Spark's SQL."""
    return Remedy(command=statement, runs_in=RunsIn.SPARK_SQL)


def delta_name(url: str) -> str:
    """The table as Spark's SQL names one by its address; Hadoop calls S3 otherwise."""
    address = f"s3a{url.removeprefix('s3')}" if url.startswith("s3:") else url
    return f"delta.`{address.replace('`', '``')}`"


def delta_column(names: Sequence[str]) -> str:
    """A column as Delta's settings name one: dotted, in backticks where a name is not plain."""
    plain = re.compile(r"[A-Za-z_]\w*", re.ASCII)
    return ".".join(name if plain.fullmatch(name) else f"`{name.replace('`', '``')}`" for name in names)


def set_properties(url: str, values: Mapping[str, str]) -> Remedy:
    """The statement that gives a table these properties."""
    told = ", ".join(f"'{key}' = '{_escaped(value)}'" for key, value in values.items())
    return spark_sql(f"ALTER TABLE {delta_name(url)} SET TBLPROPERTIES ({told})")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def byte_text(count: float) -> str:
    """`3.1 MB`."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if amount < 999.95 or unit == "TB":
            break
        amount /= 1000
    return f"{amount:,.0f} B" if unit == "B" else f"{amount:,.1f} {unit}"


def _escaped(text: str) -> str:
    """Inside the quotes of Spark's SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
