"""Arrow Flight: tables listed, scans planned into tickets, batches streamed while files are discovered.

Contract: a thin room over `Scans`. `GetFlightInfo` and `GetSchema` take a JSON command (`command.py`) as a
descriptor's command, or a table's name as its path; commands of Flight SQL go to its room (`flight_sql`), on
the same port. Tickets are signed and expire. A client that cancels or goes away closes the stream, which ends
the reads below it.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial, wraps
from typing import Any

import msgspec
from pyarrow import flight

from lazydelta.errors import InvalidRequestError, LazyDeltaError, UnsupportedTableError
from lazydelta.serve.batches import in_messages
from lazydelta.serve.calls import CANCELLED, Call, call
from lazydelta.serve.command import Command, read_command
from lazydelta.serve.concealment import concealed_error
from lazydelta.serve.flight import actions as flight_actions
from lazydelta.serve.flight.caller import (
    HEADERS,
    Asking,
    HeadersFactory,
    client_of,
    headers_of,
)
from lazydelta.serve.flight.endpoints import endpoint
from lazydelta.serve.flight.handshake import NoHandshake
from lazydelta.serve.flight.hang_up import hang_up
from lazydelta.serve.flight.status import bug_status, status_of, unplaced
from lazydelta.serve.flight.watch import StreamWatch
from lazydelta.serve.flight_sql.envelope import Message, opened
from lazydelta.serve.flight_sql.room import FlightSqlRoom
from lazydelta.serve.scans import Planned, Stream
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client
from lazydelta.serve.tickets import Ticket
from lazydelta.serve.tracing import request_trace

Foreign = Any  # Any: pyarrow's classes have no types
Method = Callable[..., Any]  # Any: each method of Flight answers something else
LOGGER = logging.getLogger("lazydelta.serve")
_UNKNOWN = -1  # how many rows and bytes there will be
_LAST_SECONDS = 2.0  # that calls have to end once nothing more is sent
_SLOW_SECONDS = 0.5
_TICKET_BYTES = 1 << 16  # that a ticket may be longer than what was asked


def _answers(name: str) -> Callable[[Method], Method]:
    """A method of Flight: signed in, noted, and its errors told as statuses."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def answer(self: LazyFlightServer, context: Foreign, *arguments: Foreign) -> Foreign:
            noted, failed_by = None, ""
            headers = headers_of(context)
            trace = request_trace(f"flight {name}", headers.trace)
            try:
                with (
                    trace.active(),
                    call(self.served.metrics, "flight", name, headers.request_id, trace=trace) as noted,
                ):
                    client = client_of(context, self.served.sign_in)
                    noted.client = client.name
                    asking = Asking(client, noted, context.is_cancelled, headers.message_bytes)
                    found = method(self, asking, *arguments)
                    if not noted.goes_on and _is_slow(noted) and context.is_cancelled():
                        noted.status = CANCELLED
                    return found
            except Exception as error:  # noqa: BLE001 - every error becomes a status
                problem = self.told(error, noted)
                failed_by = "bug" if noted is None else noted.status
            finally:
                if noted is None or not noted.goes_on:
                    trace.end(failed_by=failed_by)
            raise problem

        return unplaced(answer)

    return decorate


class LazyFlightServer(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """One port."""

    def __init__(self, served: Served, location: str, **tls: Foreign) -> None:
        wants_certificates = served.config.tls is not None and served.config.tls.client_ca is not None
        super().__init__(
            location,
            # With one of its own Arrow does not tell who a certificate is of.
            auth_handler=None if wants_certificates else NoHandshake(),
            middleware={HEADERS: HeadersFactory(served)},
            **tls,
        )
        self.served = served
        self._sql = FlightSqlRoom(served)
        self._watch = StreamWatch()

    @_answers("ListFlights")
    def list_flights(self, asking: Asking, criteria: bytes) -> Iterator[flight.FlightInfo]:
        """The tables that the client may read; `criteria` is what their names begin with."""
        start = criteria.decode("utf-8", "replace")
        tables = [
            table for table in self.served.catalog.seen_by(asking.client) if table.name.startswith(start)
        ]
        return iter([self._listed(Command(table=table.name), asking.client) for table in tables])

    @_answers("GetFlightInfo")
    def get_flight_info(self, asking: Asking, descriptor: Foreign) -> flight.FlightInfo:
        """A scan, planned."""
        asked = self._asked(descriptor, asking.noted)
        if isinstance(asked, Command):
            return self._info(asked, asking.client)
        return self._sql.info(asked, descriptor, asking.client)

    @_answers("GetSchema")
    def get_schema(self, asking: Asking, descriptor: Foreign) -> flight.SchemaResult:
        """The columns of a scan."""
        asked = self._asked(descriptor, asking.noted)
        if isinstance(asked, Command):
            return flight.SchemaResult(self._planned(asked, asking.client).schema)
        return flight.SchemaResult(self._sql.schema(asked, asking.client))

    @_answers("DoGet")
    def do_get(self, asking: Asking, ticket: Foreign) -> flight.FlightDataStream:
        """The batches of a ticket; where they begin to come, they are what is noted."""
        raw, client, noted = ticket.ticket, asking.client, asking.noted
        self._check_size(raw, _TICKET_BYTES)
        stream_id = f"{_digest(raw)}:{uuid.uuid4().hex}"
        asked = opened(raw)
        if asked is not None:
            noted.table = "SQL"
            schema, batches = self._sql.stream(asked, client, ticket_id=stream_id)
        else:
            found = self.served.tickets.read(raw, client=client.name)
            noted.table = found.command.table
            planned = self.served.scans.plan_ticket(found, client)
            schema = planned.schema
            batches = self.served.scans.stream(planned, client, ticket_id=stream_id)
        noted.goes_on = True
        return flight.GeneratorStream(schema, self._told(batches, asking, stream_id))

    @_answers("DoPut")
    def do_put(self, asking: Asking, descriptor: Foreign, reader: Foreign, writer: Foreign) -> None:
        """Parameters of prepared statements; everything else would write."""
        asked = self._asked(descriptor, asking.noted)
        if isinstance(asked, Command):
            raise _read_only()
        self._sql.put(asked, asking.client, reader, writer)

    @_answers("DoExchange")
    def do_exchange(self, asking: Asking, descriptor: Foreign, reader: Foreign, writer: Foreign) -> None:
        """Nothing is exchanged."""
        del asking, descriptor, reader, writer
        raise _read_only()

    @_answers("ListActions")
    def list_actions(self, asking: Asking) -> list[tuple[str, str]]:
        """What `do_action` knows."""
        del asking
        return [*flight_actions.ACTIONS.items(), *self._sql.ACTIONS.items()]

    @_answers("DoAction")
    def do_action(self, asking: Asking, action: Foreign) -> Iterator[bytes]:
        """Answer one of them."""
        body = action.body.to_pybytes()
        self._check_size(body)
        if action.type in self._sql.ACTIONS:
            return iter(self._sql.act(action.type, body, asking.client, ticket_id_of=_digest))
        return iter(flight_actions.answer(self.served, asking, action.type, body))

    def end(self) -> None:
        """Shut down, and hang up on clients that have stopped reading; scans were told to stop before."""
        ending = threading.Thread(target=self.shutdown, name="lazydelta-flight-end", daemon=True)
        ending.start()
        ending.join(_LAST_SECONDS)
        if ending.is_alive():
            LOGGER.warning("hung up on %d connections of Flight", hang_up(self.port))
            ending.join(_LAST_SECONDS)
        self._sql.close()

    def told(self, error: Exception, noted: Call | None) -> Exception:
        """An error as clients get it; what nobody foresaw is logged whole."""
        if isinstance(error, LazyDeltaError):
            client = None if noted is None else self.served.sign_in.named(noted.client)
            seen = [] if client is None else self.served.catalog.seen_by(client)
            tables = self.served.config.tables.values()
            return status_of(error, lambda told: concealed_error(told, tables, seen))
        request_id = "?" if noted is None else noted.id
        LOGGER.error("request %s failed", request_id, exc_info=error)
        return bug_status(request_id)

    @unplaced
    def _told(self, batches: Stream, asking: Asking, stream_id: str) -> Stream:
        """The batches, noted, their errors told as statuses."""
        noted, asked, failed_by = None, asking.noted, CANCELLED
        stop = partial(self.served.admission.cancel, asking.client, stream_id)
        went_on = call(self.served.metrics, "flight", "DoGet", asked.id, trace=asked.trace, began=asked.began)
        try:
            with self._watch.watched(asking.is_cancelled, stop), went_on as noted, closing(batches):
                noted.client, noted.table = asked.client, asked.table
                for batch in asked.trace.pulled(batches):
                    for part in in_messages(batch, asking.message_bytes):
                        noted.rows += part.num_rows
                        yield part
                failed_by = ""
                return
        except Exception as error:  # noqa: BLE001 - every error becomes a status
            problem = self.told(error, noted)
            failed_by = "bug" if noted is None else noted.status
        finally:
            asked.trace.end(failed_by=failed_by)
        raise problem

    def _asked(self, descriptor: Foreign, noted: Call) -> Command | Message:
        if descriptor.descriptor_type == flight.DescriptorType.PATH:
            path = b"/".join(descriptor.path)
            self._check_size(path)
            command = Command(table=path.decode("utf-8", "replace"))
        else:
            self._check_size(descriptor.command)
            message = opened(descriptor.command)
            if message is not None:
                return message
            command = read_command(descriptor.command)
        noted.table = command.table if command.table in self.served.config.tables else ""
        return command

    def _check_size(self, body: bytes, more: int = 0) -> None:
        most = self.served.admission.limits.request_bytes
        if 0 < most < len(body) - more:
            raise InvalidRequestError(
                f"the request has {len(body):,} bytes, more than {most:,} (limits.request_bytes)",
                "request",
                "ask for less at once",
            )

    def _listed(self, command: Command, client: Client) -> flight.FlightInfo:
        """As `_info`; a table that cannot be opened now is listed all the same, without columns."""
        try:
            return self._info(command, client)
        except LazyDeltaError as error:
            LOGGER.warning("%s is listed without its columns: %s", command.table, error)
            descriptor = flight.FlightDescriptor.for_command(msgspec.json.encode(command))
            return flight.FlightInfo(None, descriptor, [], _UNKNOWN, _UNKNOWN)

    def _planned(self, command: Command, client: Client) -> Planned:
        """Planning takes a place as running does: who asks first is served first.

        The newest version is looked for by the first who has a place, for all who wait for one.
        """
        asked_at, catalog = time.monotonic(), self.served.catalog
        catalog.find(command.table, client)  # who may not read it does not wait to hear that
        with self.served.admission.admitted(client, f"plan for {command.table}") as admitted:
            if command.version is None and command.timestamp is None:
                newest = catalog.open(command.table, client, asked_at=asked_at)
                command = msgspec.structs.replace(command, version=newest.version)
            planned = self.served.scans.plan(command, client)
            admitted.check()
            return planned

    def _info(self, command: Command, client: Client) -> flight.FlightInfo:
        planned = self._planned(command, client)
        office = self.served.tickets
        expires_at, table_id = office.expiry(), planned.table.metadata.id
        endpoints = [
            endpoint(
                office.write(Ticket(client.name, planned.command, table_id, part, expires_at)), expires_at
            )
            for part in range(command.endpoints)
        ]
        descriptor = flight.FlightDescriptor.for_command(msgspec.json.encode(planned.command))
        return flight.FlightInfo(planned.schema, descriptor, endpoints, _UNKNOWN, _UNKNOWN)


def _is_slow(noted: Call) -> bool:
    """Whether it took so long that its client may have gone: to find out costs more than many an answer."""
    return time.monotonic() - noted.began > _SLOW_SECONDS


def _digest(ticket: bytes) -> str:
    """By which a ticket is known."""
    return hashlib.sha256(ticket).hexdigest()


def _read_only() -> UnsupportedTableError:
    return UnsupportedTableError(
        "tables are read only here", "DoPut", "write them with Spark or another writer of Delta"
    )
