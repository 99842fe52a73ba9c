"""Which files of a table DuckDB may read by itself, and which stay with us.

Contract: a file is plain where its rows are the table's rows as they lie in it: on a local disk below the
table's root, no pipe or device and no link that leads out of it, without a deletion vector, with a name that
DuckDB does not take for a pattern, partition values that can be read, and every column that the query needs
in exactly the type that the table has, without what DuckDB does not know of (`plain_footers.py`).
What is not certain is not plain. The list of files is bounded; nothing but footers is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta import limits
from lazydelta.engines.arrow_filter import pushed_filter
from lazydelta.engines.partition_rows import partition_rows
from lazydelta.engines.plain_footers import path_list, schema_digests, unfit_files
from lazydelta.engines.projection import columns_needed
from lazydelta.engines.scanner import narrowed
from lazydelta.engines.session import Duck
from lazydelta.engines.watch import Asked, Watch
from lazydelta.predicate import Expression
from lazydelta.predicate.expression import any_of
from lazydelta.rows.data_file import DATA_FILE_COLUMNS
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.storage.address import parse_address
from lazydelta.storage.local import LocalStorage

Places = npt.NDArray[np.int64]
# Names that mean something else to DuckDB, files elsewhere, and dots that lead there.
_PATTERN = r"[*?\[\]{}\\]|://|/\.{0,2}(/|$)"
_FORMS_MAX = 8  # different schemas of files in one query; files of further ones stay with us
_FOOTERS_AT_ONCE = 500
_CACHED_FOOTERS_MAX = 1000  # kept between looking and reading; wide ones take megabytes


class NotPlainError(Exception):
    """Why a table is read the usual way."""


class FormOfFiles(msgspec.Struct, frozen=True, eq=False):
    """Plain files of one schema."""

    places: Places  # in `PlainFiles.files`
    types: dict[str, str]  # of the columns in the files, as DuckDB names them


class PlainFiles(msgspec.Struct, frozen=True, eq=False):
    """The files of one table that a query needs."""

    source: RowSource
    needed: frozenset[str]  # columns
    files: pa.RecordBatch  # with `DATA_FILE_COLUMNS`
    paths: pa.Array  # of the files, as DuckDB takes them
    listed: FileScan
    predicate: str | None  # by which they were listed
    forms: tuple[FormOfFiles, ...]
    others: Places  # files that stay with us
    partitions: dict[str, pa.Array]  # typed, of the columns that are needed

    @property
    def plain_bytes(self) -> int:
        """The size of the plain ones."""
        sizes = self.files.column("size").to_numpy()
        return int(sum(sizes[form.places].sum() for form in self.forms))

    @property
    def plain_count(self) -> int:
        """How many are plain."""
        return sum(len(form.places) for form in self.forms)


def plain_files(
    session: Duck, asked: Sequence[Asked], source: RowSource, types: Mapping[str, str], watch: Watch
) -> PlainFiles:
    """The files for all that is asked of one table; `types` are those of its columns in DuckDB."""
    why = _why_not(source)
    if why is not None:
        raise NotPlainError(why)
    needed = _needed(asked, source)
    narrow = _narrowed(source, asked)
    listed = watch.walk(narrow.files())
    files = _listed(listed)
    root = parse_address(source.snapshot.storage.root).path.rstrip("/")
    paths = pc.binary_join_element_wise(pa.scalar(root), files.column("path"), "/")
    names = [name for name in source.snapshot.state.metadata.partition_columns if name in needed]
    partitions = partition_rows(source, files, names)
    is_odd = pc.match_substring_regex(paths, _PATTERN).to_numpy(zero_copy_only=False)
    has_vector = files.column("deletion_vector").is_valid().to_numpy(zero_copy_only=False)
    required = [field.name for field in source.snapshot.schema.fields if not field.nullable]
    is_whole = ~is_odd & ~has_vector & partitions.is_told
    for name in set(names) & set(required):
        is_whole &= partitions.values[name].is_valid().to_numpy(zero_copy_only=False)
    candidates = _on_disk(source, files, np.flatnonzero(is_whole))
    _check_size(files, candidates)
    stored = {name: types[name] for name in needed if name not in names}
    forms = tuple(_forms(session, paths, candidates, stored, [name for name in required if name in stored]))
    chosen = np.concatenate([form.places for form in forms]) if forms else np.zeros(0, np.int64)
    found = PlainFiles(
        source=source,
        needed=needed,
        files=files,
        paths=paths,
        listed=listed,
        predicate=None if narrow.config.predicate is None else str(narrow.config.predicate),
        forms=forms,
        others=np.setdiff1d(np.arange(files.num_rows), chosen),
        partitions=partitions.values,
    )
    if found.plain_bytes < limits.HANDOVER_BYTES_MIN or not forms:
        raise NotPlainError(
            "its files lack columns that the query needs, or have them in other types or forms"
        )
    return found


def types_of(session: Duck, what: str) -> dict[str, str]:
    """The columns of something that can be selected from."""
    return {row[0]: row[1] for row in session.execute(f"describe select * from {what}").fetchall()}


def value_of(column: str, stored: str, wanted: str) -> str | None:
    """A column of a file as the table has it; None where its type is another."""
    if stored == wanted:
        return column
    # Spark's old form (INT96) has no zone, and means UTC.
    is_old = (stored, wanted) == ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
    return f"make_timestamptz(epoch_us({column}))" if is_old else None


def _why_not(source: RowSource) -> str | None:
    """What keeps the rows of a table from being those of its files."""
    state, config = source.snapshot.state, source.config
    mode = state.metadata.mapping_mode
    reasons = (
        (not isinstance(source.snapshot.storage, LocalStorage), "it lies in an object store"),
        (mode != "none", f"its columns are mapped by {mode}"),
        (config.predicate is not None, "the scan has a filter of its own"),
        (config.limit is not None, "the scan has a limit of its own"),
        (config.order is not None, "the scan has an order of its own"),
    )
    return next((why for is_so, why in reasons if is_so), None)


def _needed(asked: Sequence[Asked], source: RowSource) -> frozenset[str]:
    """The columns that the query reads, or filters by."""
    needed: set[str] = set()
    for one in asked:
        needed |= set(source.schema.names if one.columns is None else one.columns)
        if one.filter is not None:
            needed |= set(columns_needed([one.filter], source.schema))
    return frozenset(needed)


def _narrowed(source: RowSource, asked: Sequence[Asked]) -> RowSource:
    """The source without files that no part of the query can want a row of."""
    conditions: list[Expression] = []
    for one in asked:
        pushed = None if one.filter is None else pushed_filter(one.filter, source.snapshot.schema).condition
        if pushed is None:
            return source
        conditions.append(pushed)
    return narrowed(source, any_of(*conditions))


def _listed(scan: FileScan) -> pa.RecordBatch:
    """The files, if they are few."""
    found: list[pa.RecordBatch] = []
    with closing(scan.batches(DATA_FILE_COLUMNS)) as batches:
        for batch in batches:
            found.append(batch)
            if sum(part.num_rows for part in found) > limits.HANDOVER_FILES_MAX:
                raise NotPlainError(f"it has more than {limits.HANDOVER_FILES_MAX:,} files that might match")
    if not found:
        raise NotPlainError("no file of it might match")
    return pa.concat_batches(found)


def _on_disk(source: RowSource, files: pa.RecordBatch, candidates: Places) -> Places:
    """Those that are regular files inside; of the others, those that are ours to read say what is wrong."""
    storage = source.snapshot.storage
    assert isinstance(storage, LocalStorage), "others are not plain"
    names = files.column("path").take(pa.array(candidates)).to_pylist()
    return candidates[np.array(storage.are_plain(names), np.bool_)]


def _check_size(files: pa.RecordBatch, candidates: Places) -> None:
    size = int(files.column("size").to_numpy()[candidates].sum())
    if size >= limits.HANDOVER_BYTES_MIN and len(candidates):
        return
    vectors = files.num_rows - files.column("deletion_vector").null_count
    told = f"its files have {size:,} bytes in all, less than {limits.HANDOVER_BYTES_MIN:,}"
    if vectors:
        told = (
            f"{vectors:,} of its {files.num_rows:,} files have deletion vectors; the others, {size:,} bytes"
        )
    raise NotPlainError(told)


def _forms(
    session: Duck, paths: pa.Array, candidates: Places, stored: Mapping[str, str], required: Sequence[str]
) -> Iterator[FormOfFiles]:
    """The candidates by their schema, most first, where that has the columns in the table's types."""
    keeps = len(candidates) <= _CACHED_FOOTERS_MAX
    session.execute(f"set parquet_metadata_cache = {'true' if keeps else 'false'}")
    by_form: dict[str, list[int]] = {}
    for start in range(0, len(candidates), _FOOTERS_AT_ONCE):
        part = candidates[start : start + _FOOTERS_AT_ONCE]
        named = paths.take(pa.array(part)).to_pylist()
        told, unfit = schema_digests(session, named), unfit_files(session, named, stored, required)
        for place, path in zip(part.tolist(), named, strict=True):
            if path not in unfit:
                by_form.setdefault(told[path], []).append(place)
    for places in sorted(by_form.values(), key=len, reverse=True)[:_FORMS_MAX]:
        types = types_of(session, f"read_parquet({path_list([paths[places[0]].as_py()])})")
        if all(
            name in types and value_of("", types[name], kind) is not None for name, kind in stored.items()
        ):
            yield FormOfFiles(np.array(places, np.int64), types)
