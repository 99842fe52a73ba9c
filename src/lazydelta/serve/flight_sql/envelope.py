"""Messages of Flight SQL as they come and go: each in an envelope that names its type.

Contract: bytes that are no envelope of Flight SQL are None, so that they may be something else; one of a type
that this server does not know, or whose content is none, is an error.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # no types published

from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.serve.flight_sql import messages_pb2 as messages

Message: TypeAlias = Any  # Any: the classes of protobuf are made at run time
_TYPE = "type.googleapis.com/arrow.flight.protocol.sql."
_START_MAX = 8  # bytes before the type's name: a tag and a length


def opened(body: bytes) -> Message | None:
    """The message in an envelope, or None where there is none."""
    if _TYPE.encode() not in body[: len(_TYPE) + _START_MAX]:
        return None
    envelope = parsed(messages.Envelope, body)
    name = envelope.type_url.removeprefix(_TYPE)
    kind = getattr(messages, name, None) if name in messages.DESCRIPTOR.message_types_by_name else None
    if kind is None:
        raise UnsupportedTableError(
            f"{name[:100]} is not served", "Flight SQL", "use statements: tables are read only here"
        )
    return parsed(kind, envelope.value)


def enclosed(message: Message) -> bytes:
    """The message in its envelope."""
    name = message.DESCRIPTOR.name
    envelope = messages.Envelope(type_url=_TYPE + name, value=message.SerializeToString())
    found: bytes = envelope.SerializeToString()
    return found


def parsed(kind: Any, body: bytes) -> Message:  # Any: a class of protobuf
    """A message without an envelope."""
    try:
        return kind.FromString(body)
    except DecodeError as problem:
        raise InvalidRequestError(
            f"this is no {kind.DESCRIPTOR.name}", "Flight SQL", "send the message that the protocol describes"
        ) from problem
