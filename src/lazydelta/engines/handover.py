"""Plain files handed to DuckDB's own Parquet reader, where a query goes through one table to its end.

Why: DuckDB decodes and aggregates Parquet with all cores, dictionaries kept; through Arrow it takes several
times as long. Contract: the answer is the same. A table is handed over only where all of this holds: the
query is one SELECT that reads one table once and nothing else, without LIMIT (a limit wants the first rows,
not the list of files); the table lies on a local disk, has no column mapping and is read whole; the files
that the query's own filter leaves are few, large enough to matter, and have no deletion vector; and the
columns that the query needs have, in every file, exactly the type that the table has. Otherwise nothing
changes.
Which files and columns those are is what DuckDB asks of the table when the query begins: a first run is
stopped right there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.engines.arrow_filter import pushed_filter
from lazydelta.engines.projection import columns_needed
from lazydelta.engines.scanner import narrowed
from lazydelta.engines.session import Duck, Parameters, spelled
from lazydelta.engines.watch import Asked, Watch
from lazydelta.log.file_rows import Batches
from lazydelta.rows.data_file import DATA_FILE_COLUMNS, DataFile, data_files
from lazydelta.rows.filled_columns import partition_column
from lazydelta.rows.source import RowSource
from lazydelta.storage.address import parse_address
from lazydelta.storage.local import LocalStorage
from lazydelta.telemetry import told_at_debug

_FILE_NAME = "lazydelta file"
_GLOB = frozenset("*?[]{}\\")
_ZONED = "TIMESTAMP WITH TIME ZONE"


class PlainFiles(msgspec.Struct, frozen=True, eq=False):
    """The files of one table that a query needs, and how they become its columns."""

    table: str
    paths: list[str]
    files: list[DataFile]
    source: RowSource
    needed: frozenset[str]
    columns: dict[str, str]  # every column of the table → its type in DuckDB


def hand_over(
    session: Duck, query: str, parameters: Parameters, sources: Mapping[str, RowSource], watch: Watch
) -> str | None:
    """Replace the table that the query reads by its files, if that may be; its name, or None.

    The query is one that reads one table, once, whole, and nothing else.
    """
    if not any(map(_is_plain, sources.values())):
        return None
    with told_at_debug("plain files are not handed to DuckDB"):  # the usual path serves, and tells
        asked = _first_asked(session, query, parameters, watch)
        found = None if asked is None else _plain_files(session, asked, sources)
        if found is not None and _are_alike(session, found):
            _replace(session, found)
            return found.table
    return None


def _is_plain(source: RowSource) -> bool:
    """Whether rows of the table may be rows of its files as they are."""
    state, config = source.snapshot.state, source.config
    mode = (state.metadata.configuration.get("delta.columnMapping.mode") or "none").lower()
    return (
        isinstance(source.snapshot.storage, LocalStorage)
        and mode == "none"
        and config.predicate is None
        and config.limit is None
        and config.order is None
    )


def _first_asked(session: Duck, query: str, parameters: Parameters, watch: Watch) -> Asked | None:
    """What the query asks of its table first; it is stopped there."""
    with watch.probing() as asked:
        relation = session.sql(query, params=parameters)
        with suppress(Exception), closing(relation.to_arrow_reader(1)) as reader:
            reader.read_next_batch()
    return asked[0] if len(asked) == 1 else None


def _plain_files(session: Duck, asked: Asked, sources: Mapping[str, RowSource]) -> PlainFiles | None:
    source = sources[asked.table]
    needed = set(source.schema.names if asked.columns is None else asked.columns)
    if not needed and asked.filter is None:
        return None  # rows are counted by the log
    if not _is_plain(source):
        return None
    if asked.filter is not None:
        needed |= set(columns_needed([asked.filter], source.schema))
    files = _files_left(source, asked)
    if files is None:
        return None
    root = parse_address(source.snapshot.storage.root).path.rstrip("/")
    return PlainFiles(
        table=asked.table,
        paths=[f"{root}/{file.path}" for file in files],
        files=files,
        source=source,
        needed=frozenset(needed),
        columns=_types(session, spelled(asked.table)),
    )


def _files_left(source: RowSource, asked: Asked) -> list[DataFile] | None:
    """The files that the query's filter leaves, if all are plain, few and large enough to matter."""
    if asked.filter is not None:
        pushed = pushed_filter(asked.filter, source.snapshot.schema)
        source = source if pushed.condition is None else narrowed(source, pushed.condition)
    found: list[DataFile] = []
    with closing(source.files().batches(DATA_FILE_COLUMNS)) as batches:
        for file in _each(batches):
            if file.deletion_vector is not None or "://" in file.path or _GLOB & set(file.path):
                return None
            found.append(file)
            if len(found) > limits.HANDOVER_FILES_MAX:
                return None
    return found if sum(file.size for file in found) >= limits.HANDOVER_BYTES_MIN else None


def _each(batches: Batches) -> Iterator[DataFile]:
    for batch in batches:
        yield from data_files(batch)


def _types(session: Duck, what: str) -> dict[str, str]:
    return {row[0]: row[1] for row in session.execute(f"describe select * from {what}").fetchall()}


def _are_alike(session: Duck, plain: PlainFiles) -> bool:
    """Whether the columns that are needed are in every file, in the table's types."""
    partitions = set(plain.source.snapshot.state.metadata.partition_columns)
    stored = plain.needed - partitions
    session.execute("set parquet_metadata_cache = true")
    in_file = _types(session, _read_parquet(plain.paths[:1]))
    if any(name not in in_file for name in stored):
        return False
    forms = session.execute(
        "select count(distinct form) from (select file_name, list((name, type, num_children, converted_type, "
        "scale, precision, logical_type, duckdb_type) order by place) as form from (select *, row_number() "
        f"over () as place from parquet_schema({_texts(plain.paths)})) group by file_name)"
    ).fetchall()[0][0]
    return forms == 1 and all(_expression(name, plain, in_file) is not None for name in stored)


def _replace(session: Duck, plain: PlainFiles) -> None:
    """A view of the files under the table's name; columns that the query does not need are null."""
    snapshot = plain.source.snapshot
    partitions = [name for name in snapshot.state.metadata.partition_columns if name in plain.needed]
    in_file = _types(session, _read_parquet(plain.paths[:1]))
    chosen = []
    for name, kind in plain.columns.items():
        if name not in plain.needed:
            value: str | None = f"cast(null as {kind})"
        elif name in partitions:
            value = f"cast(p.{spelled(name)} as {kind})"
        else:
            value = _expression(name, plain, in_file)
        chosen.append(f"{value} as {spelled(name)}")
    origin = f"{_read_parquet(plain.paths)} as f"
    if partitions:
        values = f"{_FILE_NAME}s of {plain.table}"
        session.register(values, _partition_values(plain, partitions))
        origin += f" join {spelled(values)} as p on f.{spelled(_FILE_NAME)} = p.{spelled(_FILE_NAME)}"
    session.unregister(plain.table)
    session.execute(
        f"create or replace temp view {spelled(plain.table)} as select {', '.join(chosen)} from {origin}"
    )


def _expression(name: str, plain: PlainFiles, in_file: Mapping[str, str]) -> str | None:
    """The column as the table has it; None where the file's type is another."""
    column, stored, wanted = f"f.{spelled(name)}", in_file[name], plain.columns[name]
    if stored == wanted:
        return column
    # Spark's old form (INT96) has no zone, and means UTC.
    return f"make_timestamptz(epoch_us({column}))" if (stored, wanted) == ("TIMESTAMP", _ZONED) else None


def _partition_values(plain: PlainFiles, names: Sequence[str]) -> pa.Table:
    """For each file its partition values, typed."""
    snapshot, zone = plain.source.snapshot, plain.source.config.time_zone
    columns = {_FILE_NAME: pa.array(plain.paths, pa.string())}
    for name in names:
        field = snapshot.schema.field(name)
        assert field is not None, "DuckDB asks for columns that the table declared"
        values = [
            partition_column(field, file, 1, time_zone=zone, where=snapshot.storage.root)
            for file in plain.files
        ]
        columns[name] = pa.concat_arrays(values)
    return pa.table(columns)


def _read_parquet(paths: Sequence[str]) -> str:
    return f"read_parquet({_texts(paths)}, hive_partitioning = false, filename = {_text(_FILE_NAME)})"


def _texts(paths: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, paths))}]"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
