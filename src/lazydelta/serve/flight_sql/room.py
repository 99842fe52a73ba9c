"""Flight SQL on the same port as Flight: every message of the protocol, and who answers it.

Contract: statements are planned into signed handles (`statements.py`) and streamed by them; what drivers ask
of the catalog is answered by `catalog_rows.py`; what would write, or keep a transaction, is refused.
Parameters that a client binds come back to it inside a new handle; clients that do not take it are served by
the old one, as long as it is among the latest that are remembered.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import flight

from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.serve.flight.endpoints import endpoint
from lazydelta.serve.flight_sql import messages_pb2 as messages
from lazydelta.serve.flight_sql.catalog_rows import answer_of
from lazydelta.serve.flight_sql.envelope import Message, enclosed, opened, parsed
from lazydelta.serve.flight_sql.statements import Statements
from lazydelta.serve.scans import Stream
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client

_UNKNOWN = -1  # how many rows and bytes there will be
_REMEMBERED_MAX = 256  # bound statements of clients that keep their first handle
_CANCELLED, _NOT_CANCELLABLE = 1, 3
_CREATE, _CLOSE = "CreatePreparedStatement", "ClosePreparedStatement"
_CANCEL_QUERY, _CANCEL_INFO, _CLOSE_SESSION = "CancelQuery", "CancelFlightInfo", "CloseSession"


class FlightSqlRoom:
    """Answers what Flight SQL asks."""

    ACTIONS: ClassVar[dict[str, str]] = {
        _CREATE: "Flight SQL: prepare a statement.",
        _CLOSE: "Flight SQL: forget a prepared statement.",
        _CANCEL_QUERY: "Flight SQL: stop a statement.",
        _CANCEL_INFO: "Stop what was planned by GetFlightInfo.",
        _CLOSE_SESSION: "Nothing is kept of a session.",
        "BeginTransaction": "Refused: tables are read only here.",
        "EndTransaction": "Refused: tables are read only here.",
        "BeginSavepoint": "Refused: tables are read only here.",
        "EndSavepoint": "Refused: tables are read only here.",
        "CreatePreparedSubstraitPlan": "Refused: statements are SQL here.",
        "SetSessionOptions": "Refused: there are no options.",
        "GetSessionOptions": "Refused: there are no options.",
    }

    def __init__(self, served: Served) -> None:
        self._served = served
        self._statements = Statements(served)
        self._lock = threading.Lock()
        self._bound: OrderedDict[str, bytes] = OrderedDict()  # parameters by a prepared statement's id

    def close(self) -> None:
        """Let go of what is held."""
        self._statements.close()

    def info(self, message: Message, descriptor: Any, client: Client) -> flight.FlightInfo:
        """GetFlightInfo."""
        if isinstance(message, messages.CommandStatementQuery):
            self._check_transaction(message)
            schema, handle = self._statements.plan(message.query, client)
            return self._planned(schema, handle, descriptor)
        if isinstance(message, messages.CommandPreparedStatementQuery):
            query, parameters = self._prepared(message, client)
            schema, handle = self._statements.plan(query, client, parameters)
            return self._planned(schema, handle, descriptor)
        answer = answer_of(message)
        if answer is None:
            raise _not_served(message.DESCRIPTOR.name)
        schema = answer(self._served, client, message).schema
        return flight.FlightInfo(
            schema, descriptor, [flight.FlightEndpoint(descriptor.command, [])], _UNKNOWN, _UNKNOWN
        )

    def schema(self, message: Message, client: Client) -> pa.Schema:
        """GetSchema."""
        if isinstance(message, messages.CommandStatementQuery):
            return self._statements.describe(message.query, client).schema
        if isinstance(message, messages.CommandPreparedStatementQuery):
            query, parameters = self._prepared(message, client)
            if parameters is not None:  # a type may be theirs
                return self._statements.plan(query, client, parameters)[0]
            return self._statements.describe(query, client).schema
        answer = answer_of(message)
        if answer is None:
            raise _not_served(message.DESCRIPTOR.name)
        return answer(self._served, client, message).schema

    def stream(self, message: Message, client: Client, *, ticket_id: str) -> tuple[pa.Schema, Stream]:
        """DoGet."""
        if isinstance(message, messages.TicketStatementQuery):
            return self._statements.stream(message.statement_handle, client, ticket_id=ticket_id)
        answer = answer_of(message)
        if answer is None:
            raise _not_served(message.DESCRIPTOR.name)
        table = answer(self._served, client, message)
        return table.schema, (batch for batch in table.to_batches())

    def put(self, message: Message, client: Client, reader: Any, writer: Any) -> None:  # Any: pyarrow's
        """DoPut: parameters of a prepared statement, and nothing else."""
        if not isinstance(message, messages.CommandPreparedStatementQuery):
            raise _not_served(message.DESCRIPTOR.name)
        prepared = self._statements.prepared(message.prepared_statement_handle, client)
        parameters = self._one_row(reader)
        with self._lock:
            self._bound[prepared.id] = parameters
            self._bound.move_to_end(prepared.id)
            while len(self._bound) > _REMEMBERED_MAX:
                self._bound.popitem(last=False)
        handle = self._statements.prepare(prepared.query, client, parameters)
        result = messages.DoPutPreparedStatementResult(prepared_statement_handle=handle)
        writer.write(pa.py_buffer(result.SerializeToString()))

    def act(
        self, name: str, body: bytes, client: Client, *, ticket_id_of: Callable[[bytes], str]
    ) -> list[bytes]:
        """DoAction; `ticket_id_of` is how running tickets are known."""
        if name == _CANCEL_INFO:
            request = parsed(messages.CancelFlightInfoRequest, body)
            status = self._cancel(request.info, client, ticket_id_of)
            return [messages.CancelFlightInfoResult(status=status).SerializeToString()]
        if name == _CLOSE_SESSION:
            return []
        message = opened(body)
        if isinstance(message, messages.ActionCreatePreparedStatementRequest):
            self._check_transaction(message)
            return [enclosed(self._create(message.query, client))]
        if isinstance(message, messages.ActionClosePreparedStatementRequest):
            self._forget(message.prepared_statement_handle, client)
            return []
        if isinstance(message, messages.ActionCancelQueryRequest):
            status = self._cancel(message.info, client, ticket_id_of)
            return [enclosed(messages.ActionCancelQueryResult(result=status))]
        raise _not_served(name)

    def _create(self, query: str, client: Client) -> Message:
        described = self._statements.describe(query, client)
        return messages.ActionCreatePreparedStatementResult(
            prepared_statement_handle=self._statements.prepare(query, client),
            dataset_schema=described.schema.serialize().to_pybytes(),
            parameter_schema=described.parameters.serialize().to_pybytes(),
        )

    def _prepared(self, message: Message, client: Client) -> tuple[str, bytes | None]:
        prepared = self._statements.prepared(message.prepared_statement_handle, client)
        with self._lock:
            return prepared.query, prepared.parameters or self._bound.get(prepared.id)

    def _forget(self, handle: bytes, client: Client) -> None:
        prepared = self._statements.prepared(handle, client)
        with self._lock:
            self._bound.pop(prepared.id, None)

    def _one_row(self, reader: Any) -> bytes:  # Any: pyarrow's
        """What was bound, as IPC."""
        most = self._served.admission.limits.request_bytes
        rows: list[pa.RecordBatch] = []
        for chunk in reader:
            if chunk.data is not None and chunk.data.num_rows:
                rows.append(chunk.data)
            if 0 < most < sum(batch.nbytes for batch in rows):
                raise InvalidRequestError(
                    f"the parameters have more than {most:,} bytes (limits.request_bytes)",
                    "parameters",
                    "bind less",
                )
            if sum(batch.num_rows for batch in rows) > 1:
                break
        if sum(batch.num_rows for batch in rows) != 1:
            raise InvalidRequestError(
                "not one row of parameters was bound",
                "parameters",
                "bind one row, and run the statement for each",
            )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows[0].schema) as out:
            out.write_batch(rows[0])
        found: bytes = sink.getvalue().to_pybytes()
        return found

    def _planned(self, schema: pa.Schema, handle: bytes, descriptor: Any) -> flight.FlightInfo:
        ticket = enclosed(messages.TicketStatementQuery(statement_handle=handle))
        found = endpoint(ticket, self._served.tickets.expiry())
        return flight.FlightInfo(schema, descriptor, [found], _UNKNOWN, _UNKNOWN)

    def _cancel(self, raw: bytes, client: Client, ticket_id_of: Callable[[bytes], str]) -> int:
        try:
            info = flight.FlightInfo.deserialize(raw)
            tickets = [endpoint.ticket.ticket for endpoint in info.endpoints]
        except (pa.ArrowException, ValueError) as problem:
            raise InvalidRequestError(
                "what is to be cancelled is no FlightInfo", "cancel", "send what GetFlightInfo gave"
            ) from problem
        stopped = [self._served.admission.cancel(client, ticket_id_of(ticket)) for ticket in tickets]
        return _CANCELLED if any(stopped) else _NOT_CANCELLABLE

    def _check_transaction(self, message: Message) -> None:
        if message.HasField("transaction_id") and message.transaction_id:
            raise _not_served("a transaction")


def _not_served(name: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{name} is not served: tables are read only here", "Flight SQL", "send SELECT statements"
    )
