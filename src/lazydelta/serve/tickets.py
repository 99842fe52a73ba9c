"""Tickets: a scan that was planned, as text that a client hands back to read it.

Contract: signed by the server's key and bound to a client, a table by its id, a version and an end of
validity; one that was altered, has expired, is another client's or of a table that has given its place to
another is refused. It tells nothing that its holder did not send, but the version and the id.
"""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from typing import Protocol, TypeVar

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.command import Command

_SEAL_BYTES = 32
_FORMAT = b"lazydelta-ticket-2 "


class Expiring(Protocol):
    """What can be sealed."""

    @property
    def client(self) -> str: ...
    @property
    def expires_at(self) -> float: ...


Handed = TypeVar("Handed", bound=Expiring)


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """One endpoint of a planned scan."""

    client: str
    command: Command  # with its version pinned
    table_id: str  # by the metadata of that version
    part: int  # of `command.endpoints`
    expires_at: float  # seconds since 1970


class TicketOffice:
    """Writes and reads tickets with one key."""

    def __init__(self, key: bytes, *, valid_seconds: float) -> None:
        self._key = key
        self._valid_seconds = valid_seconds

    def expiry(self) -> float:
        """When a ticket written now expires."""
        return time.time() + self._valid_seconds

    def write(self, ticket: Ticket) -> bytes:
        """The ticket, sealed."""
        return self.sealed(_FORMAT, ticket)

    def read(self, raw: bytes, *, client: str) -> Ticket:
        """What `write` wrote, for that client and still in time."""
        return self.opened(_FORMAT, raw, Ticket, client=client)

    def sealed(self, purpose: bytes, what: Expiring) -> bytes:
        """What a client will hand back, sealed; what is sealed for one purpose is of no use for another."""
        body = msgspec.msgpack.encode(what)
        return self._seal(purpose, body) + body

    def opened(self, purpose: bytes, raw: bytes, kind: type[Handed], *, client: str) -> Handed:
        """What `sealed` sealed for the purpose, for that client and still in time."""
        seal, body = raw[:_SEAL_BYTES], raw[_SEAL_BYTES:]
        if not hmac.compare_digest(seal, self._seal(purpose, body)):
            raise _refused("it was altered, or another server wrote it")
        found = msgspec.msgpack.decode(body, type=kind)
        if found.client != client:
            raise _refused("it is another client's")
        if found.expires_at < time.time():
            raise _refused("it has expired")
        return found

    def _seal(self, purpose: bytes, body: bytes) -> bytes:
        return hmac.new(self._key, purpose + body, sha256).digest()


def check_table(wanted: str, found: str) -> None:
    """Raise where a name stands for another table than when a ticket was written; both by their ids."""
    if wanted != found:
        raise _refused("it is of another table, which had this name before")


def _refused(reason: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the ticket cannot be used: {reason}", "ticket", "ask for a new one with GetFlightInfo"
    )
