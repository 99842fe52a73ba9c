"""Files to rows: Parquet, deletion vectors, column mapping, prefetch; filter, limit, pages."""

from lazydelta.lazy_exports import lazy_exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from lazydelta.rows.data_file import DataFile
    from lazydelta.rows.deletion_vectors import DeletionVectors
    from lazydelta.rows.estimate import ScanEstimate
    from lazydelta.rows.file_pages import FilePage
    from lazydelta.rows.iterator import LazyRecordBatchIterator
    from lazydelta.rows.page_series import PageSettings
    from lazydelta.rows.pages import Page
    from lazydelta.rows.source import RowSource

__all__ = [
    "DataFile",
    "DeletionVectors",
    "FilePage",
    "LazyRecordBatchIterator",
    "Page",
    "PageSettings",
    "RowSource",
    "ScanEstimate",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_exports(
        __name__,
        {
            "data_file": "DataFile",
            "deletion_vectors": "DeletionVectors",
            "estimate": "ScanEstimate",
            "file_pages": "FilePage",
            "iterator": "LazyRecordBatchIterator",
            "page_series": "PageSettings",
            "pages": "Page",
            "source": "RowSource",
        },
    )
