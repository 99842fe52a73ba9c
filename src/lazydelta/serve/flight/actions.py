"""What a Flight client may ask for besides scans: the newest version, statistics, an explanation, a page.

Contract: the body is JSON of the named keys; answers are JSON, then, where there are rows, Arrow IPC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

import msgspec
import pyarrow as pa

from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.protocol.paths import listed_path
from lazydelta.scan.file_stats import look_up_stats
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.command import Command, read_command
from lazydelta.serve.concealment import concealed
from lazydelta.serve.flight.caller import Asking
from lazydelta.serve.predicate_size import checked_words
from lazydelta.serve.refusals import CancelledError
from lazydelta.serve.served import Served
from lazydelta.table import Table

Message = TypeVar("Message", bound=msgspec.Struct)
ACTIONS = {
    "refresh": 'The newest version of a table: {"table"}.',
    "stats_for_files": 'Statistics of files: {"table", "version", "paths", "columns"}.',
    "explain": "Run a command and tell what it read.",
    "page": 'A page of rows or files: {"command", "count", "after"}; answers {"next_token"}, then rows.',
}


class _OfTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    table: str


class _StatsWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    table: str
    paths: list[str]
    columns: list[str]
    version: int | None = None


class _PageWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: Command
    count: int
    after: str | None = None


def answer(served: Served, asking: Asking, name: str, body: bytes) -> list[bytes]:
    """The answer's parts."""
    act = _ANSWERS.get(name)
    if act is None:
        raise InvalidRequestError(
            f"there is no action {name[:100]!r}", "action", f"there are: {', '.join(ACTIONS)}"
        )
    asking.noted.method = name
    return act(served, asking, body)


def _refresh(served: Served, asking: Asking, body: bytes) -> list[bytes]:
    table = _opened(served, asking, _read(body, _OfTable).table)
    return [msgspec.json.encode({"version": table.version, "id": table.metadata.id})]


def _stats(served: Served, asking: Asking, body: bytes) -> list[bytes]:
    wanted = _read(body, _StatsWanted)
    table = _opened(served, asking, wanted.table, version=wanted.version)
    source = table.scan(scan_timeout_seconds=served.admission.seconds_of(asking.client)).source
    root = source.snapshot.storage.root
    # A path below the table's own address is not taken for the file: that would tell where the table lies.
    paths = [path if listed_path(path, root) == path else f"…{path}" for path in wanted.paths]
    with _limited(served, asking, f"statistics of {wanted.table}"):
        found = look_up_stats(source.files(), paths, wanted.columns)
    found = found.set_column(0, "path", pa.array(wanted.paths, pa.string()))
    return [msgspec.json.encode({"version": table.version}), _ipc([found], found.schema)]


def _explain(served: Served, asking: Asking, body: bytes) -> list[bytes]:
    command = read_command(body)
    served.catalog.find(command.table, asking.client)
    asking.noted.table = command.table
    planned = served.scans.plan(command, asking.client)
    with closing(served.scans.stream(planned, asking.client)) as batches:
        for _ in batches:
            if asking.is_cancelled():
                raise CancelledError("its client has gone", "explain", "ask anew")
    told = msgspec.to_builtins(planned.scan.report()) | {"table": command.table}
    return [concealed(msgspec.json.encode(told).decode(), served.config.tables.values()).encode()]


def _page(served: Served, asking: Asking, body: bytes) -> list[bytes]:
    wanted = _read(body, _PageWanted)
    command = wanted.command
    if command.limit is not None or command.endpoints > 1:
        raise InvalidRequestError("a page has a count of its own", "command", "leave limit and endpoints out")
    table = _opened(served, asking, command.table, version=command.version, timestamp=command.timestamp)
    if command.predicate is not None:
        checked_words(command.predicate)
    seconds = served.admission.seconds_of(asking.client)
    scan = table.scan(command.predicate, strategy=command.strategy, scan_timeout_seconds=seconds)
    with _limited(served, asking, f"a page of {command.table}") as admitted:
        admitted.gave(wanted.count)
        if command.what == "files":
            files = scan.file_page(wanted.count, after=wanted.after, order=command.order)
            return [msgspec.json.encode({"next_token": files.next_token, "files": files.files})]
        page = scan.page(wanted.count, after=wanted.after, order=command.order, columns=command.columns)
    rows = page.rows
    return [msgspec.json.encode({"next_token": page.next_token}), _ipc(rows.to_batches(), rows.schema)]


@contextmanager
def _limited(served: Served, asking: Asking, what: str) -> Iterator[Admitted]:
    """A place among the scans that run, within the client's memory and time."""
    with served.admission.admitted(asking.client, what) as admitted, served.memory.of(asking.client):
        try:
            yield admitted
        except LazyDeltaError:
            admitted.check()  # it was told to stop: that is why
            raise
        admitted.check()


def _opened(
    served: Served, asking: Asking, name: str, *, version: int | None = None, timestamp: str | None = None
) -> Table:
    served.catalog.find(name, asking.client)
    asking.noted.table = name
    return served.catalog.open(name, asking.client, version=version, timestamp=timestamp)


def _ipc(batches: list[pa.RecordBatch], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _read(body: bytes, kind: type[Message]) -> Message:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequestError(
            f"the body of the action is wrong: {problem}", "action", "see docs/flight.md"
        ) from problem


_ANSWERS: dict[str, Callable[[Served, Asking, bytes], list[bytes]]] = {
    "refresh": _refresh,
    "stats_for_files": _stats,
    "explain": _explain,
    "page": _page,
}
