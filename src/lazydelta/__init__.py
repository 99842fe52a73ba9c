"""Stream the live files of huge Delta Lake tables, newest first, in bounded memory.

Names are looked up at first use, so that `lazydelta --help` does not pay for importing Arrow.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for true; importing `typing` would take longer than the rest

if TYPE_CHECKING:
    from lazydelta import errors
    from lazydelta.engines.sql_result import SqlResult
    from lazydelta.log.commits import ReverseCommitReader
    from lazydelta.predicate import col
    from lazydelta.queries import connect, sql
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
    from lazydelta.table import DeltaTable, LazyDeltaScanner, Scan, Table, TableInfo, open  # noqa: A004
    from lazydelta.telemetry import metrics

__all__ = [
    "DeltaFile",
    "DeltaTable",
    "FeatureTripwire",
    "FilePage",
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
    "Table",
    "TableInfo",
    "cache",
    "col",
    "connect",
    "errors",
    "metrics",
    "open",
    "sql",
]

_MODULES = {"errors": "lazydelta.errors", "cache": "lazydelta.scan.cache"}
_HOMES = {
    "FilePage": "lazydelta.rows.file_pages",
    "LazyRecordBatchIterator": "lazydelta.rows.iterator",
    "Page": "lazydelta.rows.pages",
    "ReverseCommitReader": "lazydelta.log.commits",
    "ScanEstimate": "lazydelta.rows.estimate",
    "col": "lazydelta.predicate",
    "metrics": "lazydelta.telemetry",
    "Settings": "lazydelta.settings",
    "SqlResult": "lazydelta.engines.sql_result",
    "connect": "lazydelta.queries",
    "sql": "lazydelta.queries",
    "SidecarAwareProvider": "lazydelta.sidecar.find.discover",
    **dict.fromkeys(
        ("DeltaFile", "FeatureTripwire", "LazyScanConfig", "RemoveSet", "ScanReport", "ScanStrategy"),
        "lazydelta.scan",
    ),
    **dict.fromkeys(
        ("DeltaTable", "LazyDeltaScanner", "Scan", "Table", "TableInfo", "open"), "lazydelta.table"
    ),
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lazydelta' has no attribute {name!r}")
