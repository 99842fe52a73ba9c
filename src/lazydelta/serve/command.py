"""What a client asks of one table: `{"table": "telemetry", "what": "rows", "predicate": …, "limit": 100}`.

Contract: JSON of these keys and no others; what is wrong is an `InvalidRequestError` that names the key.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from lazydelta.errors import InvalidRequestError

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
ENDPOINTS_MAX = 64


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A scan as clients write it."""

    table: str
    what: Literal["files", "rows"] = "rows"
    predicate: Any = None  # Any: text of SQL, or JSON; see docs/flight.md, "A scan"
    columns: list[str] | None = None
    limit: _Count | None = None
    order: Literal["asc", "desc"] | None = None
    version: _Count | None = None
    timestamp: str | None = None
    strategy: str | None = None
    endpoints: Annotated[int, msgspec.Meta(ge=1, le=ENDPOINTS_MAX)] = 1  # for readers side by side


def read_command(body: bytes) -> Command:
    """The command, checked but for what the table knows."""
    try:
        command = msgspec.json.decode(body, type=Command)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequestError(
            f"the command is wrong: {problem}",
            "command",
            'send JSON such as {"table": "telemetry", "what": "rows", "limit": 100}',
        ) from problem
    if command.endpoints > 1 and (command.limit is not None or command.order is not None):
        raise InvalidRequestError(
            "a limit or an order is of all rows, and endpoints are read apart",
            "endpoints",
            "leave endpoints out, or limit and order",
        )
    return command
