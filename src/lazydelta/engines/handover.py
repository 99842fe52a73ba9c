"""Plain files handed to DuckDB's own Parquet reader, where a query goes through its tables to their end.

Why: DuckDB decodes and aggregates Parquet with all cores, dictionaries kept; through Arrow it takes several
times as long. Contract: the answer is the same. A table is handed over only where all of this holds: the
query is one SELECT that reads Delta tables and nothing else, and no LIMIT ends it early (that wants the first
rows, not the list of files); the table is one that `plain_files` finds files in that are worth it. Files of
it that are not plain are read by us, beside the others. Each table is judged by itself.
Which files and columns those are is what DuckDB asks of the tables: a first run is given no rows. Filters
that it makes out of the rows of another table are kept out of that run, since there are none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
import pyarrow as pa

from lazydelta.engines.chosen_files import chosen_source
from lazydelta.engines.file_rows import is_countable
from lazydelta.engines.plain_files import (
    FormOfFiles,
    NotPlainError,
    PlainFiles,
    plain_files,
    types_of,
    value_of,
)
from lazydelta.engines.plain_footers import path_list
from lazydelta.engines.query_plan import PlanFacts
from lazydelta.engines.scanner import LazyScanner
from lazydelta.engines.session import Duck, Parameters, spelled, text_literal
from lazydelta.engines.watch import Asked, Watch
from lazydelta.engines.watched_dataset import WatchedDataset
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.telemetry import log_event

_FILE_NAME = "lazydelta file"
_NOTHING = "lazydelta nothing"
_DYNAMIC_FILTERS = "join_filter_pushdown"
_SETTING = "disabled_optimizers"
_one_probe = threading.Lock()  # the setting is that of the whole database


class Handover(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What became of one table."""

    why_not: str | None = None  # None: it is handed over
    columns: tuple[str, ...] = ()  # that DuckDB reads
    predicate: str | None = None  # what decides which files it reads; None: it reads all
    files: int = 0  # that DuckDB reads
    bytes: int = 0  # of those, whole
    files_of_ours: int = 0  # of the same table, that stay with us
    listed: FileScan | None = None  # the scan that found them


def why_none(facts: PlanFacts) -> str | None:
    """What keeps every table of the query from being handed over, if something does."""
    if not facts.is_known:
        return "the query is not one SELECT whose plan DuckDB tells"
    if facts.may_stop_early:
        return "a LIMIT wants the first rows, not the list of files"
    if facts.is_recursive:
        return "the query is recursive"
    if facts.other_leaves:
        return f"the query also reads {facts.other_leaves[0]}"
    return None


def asked_of_tables(
    session: Duck, query: str, parameters: Parameters, watch: Watch, facts: PlanFacts
) -> list[Asked] | None:
    """What the query asks of its tables, each time it reads one; None where that does not come out.

    No rows are read. `facts` are those of a query that `why_none` has nothing against.
    """
    asked: list[Asked] = []
    try:
        with _one_probe, _without_dynamic_filters(session), watch.probing() as asked:
            session.sql(query, params=parameters).to_arrow_reader(1).read_all()
    except Exception as error:  # noqa: BLE001 - it is told when the query runs, if it comes again
        log_event("a query does not run without rows", reason=repr(error))
    return list(asked) if len(asked) == facts.scans else None


def is_counted_by_log(asked: Sequence[Asked], sources: Mapping[str, RowSource]) -> bool:
    """Whether the log tells how many rows the one scan has that is asked for."""
    (one,) = asked
    plan = LazyScanner(sources[one.table], columns=[], filter=one.filter).plan
    return plan.keep is None and is_countable(plan.source)


def hand_over(
    session: Duck,
    asked: Sequence[Asked],
    sources: Mapping[str, RowSource],
    watch: Watch,
    *,
    aggregates_all: bool,
) -> dict[str, Handover]:
    """Replace the tables that the query reads by their files, where that may be; what became of each.

    With `aggregates_all` the query may ask for the least or the greatest of all rows.
    """
    found = {}
    for name in dict.fromkeys(one.table for one in asked):
        wanted = [one for one in asked if one.table == name]
        found[name] = _judged(session, name, wanted, sources[name], watch, by_rows=aggregates_all)
    return found


def take_back(session: Duck, name: str, source: RowSource, watch: Watch) -> None:
    """Read a table the usual way, whatever stands in its place."""
    session.execute(f"drop view if exists {spelled(name)}")
    session.register(name, WatchedDataset(name, source, watch))


def _judged(
    session: Duck, name: str, asked: Sequence[Asked], source: RowSource, watch: Watch, *, by_rows: bool
) -> Handover:
    try:
        types = types_of(session, spelled(name))
        found = plain_files(session, asked, source, types, watch)
        view = _view(session, name, found, types, watch)
        if by_rows:
            view += f" union all {_nothing(session, name, source.schema)}"
        session.unregister(name)
        session.execute(f"create or replace temp view {spelled(name)} as {view}")
    except NotPlainError as told:
        return Handover(why_not=str(told))
    except Exception as error:  # noqa: BLE001 - the usual way serves, and knows best what is wrong
        log_event("plain files are not handed to DuckDB", table=name, reason=repr(error))
        take_back(session, name, source, watch)
        reason = " ".join(str(error).split())[:200]
        return Handover(why_not=f"DuckDB cannot open its files: {reason}")
    return Handover(
        columns=tuple(column for column in types if column in found.needed),
        predicate=found.predicate,
        files=found.plain_count,
        bytes=found.plain_bytes,
        files_of_ours=len(found.others),
        listed=found.listed,
    )


@contextmanager
def _without_dynamic_filters(session: Duck) -> Iterator[None]:
    """Meanwhile no filter comes from the rows of another table."""
    (before,) = session.execute(f"select current_setting('{_SETTING}')").fetchall()[0]
    names = [name for name in (before or "").split(",") if name]
    session.execute(f"set {_SETTING} = {text_literal(','.join({*names, _DYNAMIC_FILTERS}))}")
    try:
        yield
    finally:
        session.execute(f"set {_SETTING} = {text_literal(before or '')}")


def _view(session: Duck, name: str, plain: PlainFiles, types: Mapping[str, str], watch: Watch) -> str:
    """The table's rows out of its files; columns that the query does not need are null."""
    parts = []
    for number, form in enumerate(plain.forms):
        origin = _files(plain.paths.take(pa.array(form.places)).to_pylist())
        if plain.partitions:
            values = f"{_FILE_NAME}s {number} of {name}"
            session.register(values, _partition_values(plain, form))
            origin += f" join {spelled(values)} as p on f.{spelled(_FILE_NAME)} = p.{spelled(_FILE_NAME)}"
        parts.append(f"select {_columns(plain, form, types)} from {origin}")
    if len(plain.others):
        ours = f"{_FILE_NAME}s of {name}"
        chosen = chosen_source(plain.source, plain.files.take(pa.array(plain.others)), listed=plain.listed)
        session.register(ours, WatchedDataset(name, chosen, watch))
        parts.append(f"select * from {spelled(ours)}")
    return " union all ".join(parts)


def _nothing(session: Duck, name: str, schema: pa.Schema) -> str:
    """No rows, which DuckDB does not know before it looks.

    Of files alone it takes the bounds in their footers for the least and the greatest value; with
    `can_have_nan` the greatest is NaN then, whether there is one or not.
    """
    nothing = f"{_NOTHING} of {name}"
    session.register(nothing, schema.empty_table())
    return f"select * from {spelled(nothing)}"


def _columns(plain: PlainFiles, form: FormOfFiles, types: Mapping[str, str]) -> str:
    chosen = []
    for name, kind in types.items():
        if name not in plain.needed:
            value: str | None = f"cast(null as {kind})"
        elif name in plain.partitions:
            value = f"cast(p.{spelled(name)} as {kind})"
        else:
            value = value_of(f"f.{spelled(name)}", form.types[name], kind)
        assert value is not None, "the files were found to have the table's types"
        chosen.append(f"{value} as {spelled(name)}")
    return ", ".join(chosen)


def _partition_values(plain: PlainFiles, form: FormOfFiles) -> pa.Table:
    """For each file its partition values, typed."""
    places = pa.array(form.places)
    values = {name: column.take(places) for name, column in plain.partitions.items()}
    return pa.table({_FILE_NAME: plain.paths.take(places), **values})


def _files(paths: Sequence[str]) -> str:
    # Statistics in Parquet leave NaN out, which is the greatest value here: without `can_have_nan` row groups
    # that have one are skipped by them.
    how = f"can_have_nan = true, hive_partitioning = false, filename = {text_literal(_FILE_NAME)}"
    return f"read_parquet({path_list(paths)}, {how}) as f"
