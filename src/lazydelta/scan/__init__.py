"""Which files are live: strategies, RemoveSet, FeatureTripwire, skipping, explain."""

from lazydelta.lazy_exports import lazy_exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lazydelta.scan.config import LazyScanConfig, ScanStrategy
    from lazydelta.scan.file_stats import look_up_stats
    from lazydelta.scan.files import DeltaFile, files_of
    from lazydelta.scan.keys import FileKeys
    from lazydelta.scan.remove_set import RemoveSet
    from lazydelta.scan.report import ScanReport
    from lazydelta.scan.scanner import FileScan
    from lazydelta.scan.tripwire import FeatureTripwire
    from lazydelta.scan.values import rows_of, values_of

__all__ = [
    "DeltaFile",
    "FeatureTripwire",
    "FileKeys",
    "FileScan",
    "LazyScanConfig",
    "RemoveSet",
    "ScanReport",
    "ScanStrategy",
    "files_of",
    "look_up_stats",
    "rows_of",
    "values_of",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_exports(
        __name__,
        {
            "config": "LazyScanConfig ScanStrategy",
            "file_stats": "look_up_stats",
            "files": "DeltaFile files_of",
            "keys": "FileKeys",
            "remove_set": "RemoveSet",
            "report": "ScanReport",
            "scanner": "FileScan",
            "tripwire": "FeatureTripwire",
            "values": "rows_of values_of",
        },
    )
