"""A command turned into a stream of Arrow batches: the one way in which every protocol reads a table.

Contract: a stream has its schema before anything is read; batches come as they are found; whoever closes it,
tells it to stop or lets its time run out ends the reads. Limits of the server are held here: the rows of a
scan, its time, and its place among the scans that run.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing, nullcontext, suppress
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.log.file_rows import DEFAULT_COLUMNS, FILE_COLUMNS
from lazydelta.predicate.forms import parse_where
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.row_scan import RowScan
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.serve.admission import Admission
from lazydelta.serve.catalog import Catalog
from lazydelta.serve.client_memory import ClientMemory
from lazydelta.serve.command import Command
from lazydelta.serve.parts import part_of
from lazydelta.serve.predicate_size import checked_words
from lazydelta.serve.sign_in import Client
from lazydelta.serve.tickets import Ticket, check_table
from lazydelta.serve.tracing import Trace, part, part_across
from lazydelta.storage import StoppedError
from lazydelta.table import Table

_DEFAULT_SCHEMA = pa.schema([(name, FILE_COLUMNS[name]) for name in DEFAULT_COLUMNS])
_WORDS_AT_ONCE = 500  # of a filter that takes no time
Stream = Generator[pa.RecordBatch, None, None]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A command that fits its table."""

    command: Command  # with its version pinned
    table: Table
    schema: pa.Schema  # of what comes out
    scan: FileScan | RowScan


class Scans:
    """Plans and runs what clients ask for."""

    def __init__(self, catalog: Catalog, admission: Admission, memory: ClientMemory) -> None:
        self._catalog = catalog
        self._admission = admission
        self._memory = memory

    def plan(self, command: Command, client: Client, *, part_number: int = 0) -> Planned:
        """Open the table and check the command against it; the log's tail is read, no file list."""
        with part("plan"):
            return self._planned(command, client, part_number)

    def plan_ticket(self, ticket: Ticket, client: Client) -> Planned:
        """What was planned before, of the same table; a long filter is parsed in a place of its own."""
        command = ticket.command
        is_long = command.predicate is not None and checked_words(command.predicate) > _WORDS_AT_ONCE
        what = f"plan for {command.table}"
        with self._admission.admitted(client, what) if is_long else nullcontext():
            planned = self.plan(command, client, part_number=ticket.part)
        check_table(ticket.table_id, planned.table.metadata.id)
        return planned

    def _planned(self, command: Command, client: Client, number: int) -> Planned:
        table = self._catalog.open(
            command.table, client, version=command.version, timestamp=command.timestamp
        )
        pinned = msgspec.structs.replace(command, version=table.version, timestamp=None)
        scan = table.scan(
            _parsed(command.predicate),
            limit=command.limit,
            strategy=command.strategy,
            order=command.order,
            scan_timeout_seconds=self._admission.seconds_of(client),
        )
        source = part_of(scan.source, number, command.endpoints)
        if command.what == "files":
            files = _in_large_batches(source, command).files()
            return Planned(command=pinned, table=table, schema=_file_schema(command), scan=files)
        rows = source.rows(command.columns)
        return Planned(command=pinned, table=table, schema=rows.schema, scan=rows)

    def stream(
        self, planned: Planned, client: Client, *, ticket_id: str = "", is_limited: bool = True
    ) -> Stream:
        """The batches; the scan has its place from the first one asked for until the stream is closed.

        `ticket_id`: by which the client may tell it to stop. `is_limited`: they go out, so that the limit of
        rows is theirs.
        """
        command = planned.command
        what = f"{command.what} of {command.table}"
        began = time.monotonic()
        with (
            part_across("scan") as trace,
            self._admission.admitted(client, what, ticket_id=ticket_id) as admitted,
            closing(self._begun(planned, client)) as batches,
        ):
            trace.note(table=command.table, what=command.what, waited_ms=_ms_since(began))
            admitted.when_stopped(planned.scan.stop)
            admitted.when_stopped(partial(_close, batches))
            try:
                for batch in batches:
                    admitted.gave(batch.num_rows, is_limited=is_limited)
                    with admitted.handing_over():
                        yield batch
            except (LazyDeltaError, StoppedError):
                admitted.check()  # closed by whoever told it to stop: that is why
                raise
            finally:
                _note_report(trace, planned.scan)
            admitted.check()  # the same: not its end

    def _begun(self, planned: Planned, client: Client) -> LazyRecordBatchIterator | Stream:
        with self._memory.of(client):
            if isinstance(planned.scan, RowScan):
                is_all = planned.command.limit is None
                return planned.scan.batches(batch_rows_min=limits.SERVE_ROW_BATCH_ROWS if is_all else 0)
            return planned.scan.batches(planned.schema.names)


def _in_large_batches(source: RowSource, command: Command) -> RowSource:
    """Large batches of files where all are wanted: each costs a message, and work in both processes."""
    if command.limit is not None:  # the scan may end soon
        return source
    return source.with_config(batch_size=max(limits.SERVE_FILE_BATCH_ROWS, source.config.batch_size))


def _parsed(predicate: Any) -> Any:  # Any: as commands have it
    """A long filter as what it means, so that it is parsed once."""
    if predicate is None or checked_words(predicate) <= _WORDS_AT_ONCE:
        return predicate
    return parse_where(predicate)


def _note_report(trace: Trace, scan: FileScan | RowScan) -> None:
    report = scan.latest() if trace.is_recording else None
    if report is not None:
        trace.note(
            source=report.source,
            commits_read=report.commits_read,
            files_emitted=report.files_emitted,
            requests=report.requests,
            bytes_read=report.bytes_read,
            fallbacks=len(report.fallbacks),
            rows=0 if report.rows is None else report.rows.rows_emitted,
            time_to_first_file_ms=report.time_to_first_file_ms or 0.0,
        )


def _ms_since(moment: float) -> float:
    return round(1000 * (time.monotonic() - moment), 1)


def _close(batches: LazyRecordBatchIterator | Stream) -> None:
    with suppress(ValueError):  # it is being pulled: whoever pulls looks next
        batches.close()


def _file_schema(command: Command) -> pa.Schema:
    if command.columns is None:
        return _DEFAULT_SCHEMA
    names = command.columns
    unknown = [name for name in names if name not in FILE_COLUMNS]
    if unknown:
        raise InvalidRequestError(
            f"files have no column {unknown[0]!r}", "columns", f"there are: {', '.join(FILE_COLUMNS)}"
        )
    return pa.schema([(name, FILE_COLUMNS[name]) for name in names])
