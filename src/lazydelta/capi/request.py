"""What a caller in C asks for: JSON in a string, or nothing.

Contract: an object of these keys and no others; what is wrong is an `InvalidRequestError` that names the key.
The same struct serves files and rows; what only one of them has is refused by the other.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.log.file_rows import DEFAULT_COLUMNS, FILE_COLUMNS
from lazydelta.table import open as open_table
from lazydelta.table_scan import Scan

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_HELP = 'give an object such as {"predicate": {"date": "2026-02-08"}, "limit": 100}'


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a scan."""

    predicate: Any = None  # Any: its own room checks it
    limit: _Count | None = None
    strategy: str | None = None
    order: Literal["asc", "desc"] | None = None
    version: _Count | None = None
    timestamp: str | None = None
    columns: list[str] | None = None
    with_stats: bool = False
    batch_size: _Count | None = None
    timeout_seconds: float | None = None
    storage_options: dict[str, str] | None = None


def read_request(text: bytes | None) -> Request:
    """The options, checked but for what the table knows."""
    if text is None or not text.strip():
        return Request()
    try:
        return msgspec.json.decode(text, type=Request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequestError(f"the options are wrong: {problem}", "options_json", _HELP) from problem


def scan_of(table_path: str, request: Request) -> Scan:
    """The scan, pinned to a version; the log's tail is read, no file list."""
    options = request.storage_options
    table = open_table(
        table_path, version=request.version, timestamp=request.timestamp, storage_options=options
    )
    more: dict[str, Any] = {"batch_size": request.batch_size, "scan_timeout_seconds": request.timeout_seconds}
    return table.scan(
        _filter_of(request.predicate),
        limit=request.limit or None,
        strategy=request.strategy,
        order=request.order,
        **{name: value for name, value in more.items() if value is not None},
    )


def _filter_of(predicate: Any) -> Any:  # Any: its own room checks it
    """The filter; text without one, and JSON's `null` as text, are none."""
    return None if isinstance(predicate, str) and predicate.strip() in {"", "null"} else predicate


def file_columns(request: Request) -> tuple[str, ...]:
    """The attributes of files that a stream of them has."""
    if request.columns is None:
        return (*DEFAULT_COLUMNS, "stats") if request.with_stats else DEFAULT_COLUMNS
    unknown = [name for name in request.columns if name not in FILE_COLUMNS]
    if unknown:
        raise InvalidRequestError(
            f"files have no column {unknown[0]!r}", "columns", f"there are: {', '.join(FILE_COLUMNS)}"
        )
    return tuple(request.columns)


def refuse(request: Request, name: str, why: str) -> None:
    """Raise where an option was given that this call cannot honour."""
    if getattr(request, name) not in (None, False):
        raise InvalidRequestError(f"{name} is given", "options_json", f"leave it out: {why}")
