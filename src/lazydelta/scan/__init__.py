"""Which files are live: strategies, RemoveSet, FeatureTripwire, skipping, explain."""

from lazydelta.scan.config import LazyScanConfig, ScanStrategy
from lazydelta.scan.files import DeltaFile, files_of
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.report import ScanReport
from lazydelta.scan.scanner import FileScan
from lazydelta.scan.tripwire import FeatureTripwire

__all__ = [
    "DeltaFile",
    "FeatureTripwire",
    "FileScan",
    "LazyScanConfig",
    "RemoveSet",
    "ScanReport",
    "ScanStrategy",
    "files_of",
]
