"""What the data files cost: too small, without statistics, full of deleted rows."""

from __future__ import annotations

from collections.abc import Iterator

from lazydelta.protocol.actions import Metadata
from lazydelta.sidecar.format.layout import TIME_COLUMN_PROPERTY
from lazydelta.upkeep.doctor_facts import TableFacts
from lazydelta.upkeep.doctor_findings import (
    Finding,
    Remedy,
    Severity,
    byte_text,
    counted,
    delta_name,
    shell,
    spark_sql,
)
from lazydelta.upkeep.doctor_sample import Sample

SMALL_FILE_BYTES = 16_000_000
SMALL_FILES_MIN = 100  # of fewer nobody notices
COUNTS_SHARE_MIN = 0.95  # of sampled files that ought to have statistics
VECTORS_SHARE_MAX = 0.2


def file_findings(url: str, table: TableFacts, sample: Sample, metadata: Metadata) -> Iterator[Finding]:
    """What is to be said of the files."""
    if not sample.files:
        return
    small = _small_files(url, table, sample, metadata)
    if small is not None:
        yield small
    if sample.files_with_counts < COUNTS_SHARE_MIN * sample.files:
        yield _no_statistics(url, sample)
    if sample.files_with_vectors > VECTORS_SHARE_MAX * sample.files:
        yield _deletion_vectors(url, sample)


def sampled(sample: Sample) -> str:
    """What a figure speaks about."""
    if sample.is_whole:
        return f"all {counted(sample.files, 'file')}"
    return f"the newest {counted(sample.files, 'file')}"


def _small_files(url: str, table: TableFacts, sample: Sample, metadata: Metadata) -> Finding | None:
    count = table.files or sample.files
    average = table.size_bytes // table.files if table.files and table.size_bytes is not None else None
    typical = sample.size_median if average is None else average
    if count < SMALL_FILES_MIN or typical >= SMALL_FILE_BYTES:
        return None
    whole = ""
    if average is not None:
        whole = f"{count:,} files of {byte_text(average)} on average ({table.told_by}); "
    classes = ", ".join(f"{number:,} {_class_text(name)}" for name, number in sample.sizes.items() if number)
    return Finding(
        code="small_files",
        severity=Severity.WARNING,
        what=f"{whole}of {sampled(sample)} a tenth are below {byte_text(sample.size_p10)}, half below "
        f"{byte_text(sample.size_median)}, nine tenths below {byte_text(sample.size_p90)} ({classes})",
        why="each file costs a row in every checkpoint and at least one request when it is read",
        fix="compact them, within their periods where the table has some",
        remedy=_compaction(url, metadata),
        facts={
            "files": count,
            "average_bytes": average,
            "sampled": sample.files,
            "size_p10": sample.size_p10,
            "size_median": sample.size_median,
            "size_p90": sample.size_p90,
            "sizes": sample.sizes,
        },
    )


def _class_text(name: str) -> str:
    """A size class behind a number: a bare "1,000 1 to 16 MB" would read as one number."""
    return f"of {name}" if name[0].isdigit() else name


def _compaction(url: str, metadata: Metadata) -> Remedy:
    """Our own keeps periods apart, and needs a table that has them; else Delta's."""
    time_column = metadata.configuration.get(TIME_COLUMN_PROPERTY)
    if time_column is not None and time_column in metadata.partition_columns:
        return shell("lazydelta", "optimize", url)
    return spark_sql(f"OPTIMIZE {delta_name(url)}")


def _no_statistics(url: str, sample: Sample) -> Finding:
    without = sample.files - sample.files_with_counts
    return Finding(
        code="no_statistics",
        severity=Severity.WARNING,
        what=f"{without:,} of {sampled(sample)} have no statistics, not even their number of rows",
        why="no filter on a data column can rule such a file out, and counts and limits have to open it",
        fix="find the writer that leaves them out; files that are rewritten get them",
        remedy=spark_sql(f"OPTIMIZE {delta_name(url)}"),
        facts={"files_without": without, "sampled": sample.files},
    )


def _deletion_vectors(url: str, sample: Sample) -> Finding:
    share = sample.rows_deleted / sample.rows_known if sample.rows_known else 0.0
    rows = f", {share:.1%} of their rows are deleted" if sample.rows_known else ""
    return Finding(
        code="deletion_vectors",
        severity=Severity.WARNING,
        what=f"{sample.files_with_vectors:,} of {sampled(sample)} have a deletion vector{rows}",
        why="each is one more read beside its file, statistics become wide bounds, and such files do not go "
        "to DuckDB's own reader",
        fix="write the files anew without their deleted rows",
        remedy=spark_sql(f"REORG TABLE {delta_name(url)} APPLY (PURGE)"),
        facts={
            "files_with_vectors": sample.files_with_vectors,
            "rows_deleted": sample.rows_deleted,
            "sampled": sample.files,
        },
    )
