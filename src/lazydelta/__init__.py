"""Stream the live files of huge Delta Lake tables, newest first, in bounded memory.

Names are looked up at first use, so that `lazydelta --help` does not pay for importing Arrow.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for true; importing `typing` would take longer than the rest

if TYPE_CHECKING:
    from lazydelta import errors
    from lazydelta.engines.kql.catalog import StoredFunction
    from lazydelta.engines.kql.result import KqlResult
    from lazydelta.engines.sql_result import SqlResult
    from lazydelta.log.commits import ReverseCommitReader
    from lazydelta.predicate import col
    from lazydelta.queries import connect, kql, sql
    from lazydelta.rows.estimate import ScanEstimate
    from lazydelta.rows.file_pages import FilePage
    from lazydelta.rows.iterator import LazyRecordBatchIterator
    from lazydelta.rows.pages import Page
    from lazydelta.scan import (
        DeltaFile,
        FeatureTripwire,
        LazyScanConfig,
        RemoveSet,
        ScanReport,
        ScanStrategy,
        cache,
    )
    from lazydelta.settings import Settings
    from lazydelta.sidecar.find.discover import SidecarAwareProvider
    from lazydelta.table import DeltaTable, LazyDeltaScanner, Table, TableInfo, open  # noqa: A004
    from lazydelta.table_scan import Scan
    from lazydelta.telemetry import metrics
    from lazydelta.upkeep.doctor_findings import DoctorReport

    __version__: str

__all__ = [
    "DeltaFile",
    "DeltaTable",
    "DoctorReport",
    "FeatureTripwire",
    "FilePage",
    "KqlResult",
    "LazyDeltaScanner",
    "LazyRecordBatchIterator",
    "LazyScanConfig",
    "Page",
    "RemoveSet",
    "ReverseCommitReader",
    "Scan",
    "ScanEstimate",
    "ScanReport",
    "ScanStrategy",
    "Settings",
    "SidecarAwareProvider",
    "SqlResult",
    "StoredFunction",
    "Table",
    "TableInfo",
    "cache",
    "col",
    "connect",
    "errors",
    "kql",
    "metrics",
    "open",
    "sql",
]

_MODULES = {"errors": "lazydelta.errors", "cache": "lazydelta.scan.cache"}
_HOMES = {
    "DoctorReport": "lazydelta.upkeep.doctor_findings",
    "FilePage": "lazydelta.rows.file_pages",
    "KqlResult": "lazydelta.engines.kql.result",
    "LazyRecordBatchIterator": "lazydelta.rows.iterator",
    "Page": "lazydelta.rows.pages",
    "ReverseCommitReader": "lazydelta.log.commits",
    "ScanEstimate": "lazydelta.rows.estimate",
    "col": "lazydelta.predicate",
    "metrics": "lazydelta.telemetry",
    "Settings": "lazydelta.settings",
    "SqlResult": "lazydelta.engines.sql_result",
    "StoredFunction": "lazydelta.engines.kql.catalog",
    "connect": "lazydelta.queries",
    "kql": "lazydelta.queries",
    "sql": "lazydelta.queries",
    "SidecarAwareProvider": "lazydelta.sidecar.find.discover",
    **dict.fromkeys(
        ("DeltaFile", "FeatureTripwire", "LazyScanConfig", "RemoveSet", "ScanReport", "ScanStrategy"),
        "lazydelta.scan",
    ),
    **dict.fromkeys(("DeltaTable", "LazyDeltaScanner", "Table", "TableInfo", "open"), "lazydelta.table"),
    "Scan": "lazydelta.table_scan",
}


if not TYPE_CHECKING:  # to a type checker every name would be there, and a mistyped one right

    def __getattr__(name: str) -> object:
        # Of the installed distribution: pyproject.toml is the only place that has it.
        if name == "__version__":
            return import_module("importlib.metadata").version("lazydelta")
        if name in _MODULES:
            return import_module(_MODULES[name])
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'lazydelta' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that are looked up at first use count, too: prompts complete by them."""
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, "__version__"})
