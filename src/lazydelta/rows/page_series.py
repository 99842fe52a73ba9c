"""A series of pages: one query at one pinned version, and where the next page goes on.

Why: pages of rows and pages of files differ in what they read, not in how they follow each other.
Contract: a series belongs to one table, one version and one query; a token of another is an
`InvalidRequestError`. The version is opened anew where the table at hand is another: one that was cleaned up
is a `VersionNotFoundError`. The order is that of the first page, whatever tells of the files later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from hashlib import blake2b

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, VersionNotFoundError
from lazydelta.log.file_rows import RAW_PATH
from lazydelta.protocol.schema import is_type_name
from lazydelta.rows.located_rows import RowPosition
from lazydelta.rows.page_token import PageToken, Position, read_token, write_token
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.scan.config import ScanOrder, check_number
from lazydelta.sidecar.order.anchor import Anchor, dv_ids, plain_values
from lazydelta.sidecar.read.traversal import ORDER_VALUE, Traversal

# The same table at another version.
AtVersion = Callable[[int], RowSource]


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asks for."""

    what: str  # "rows" or "files"
    count: int
    after: str | None = None
    order: ScanOrder | str | None = None
    columns: Sequence[str] | None = None


class PageSettings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What pages need besides the table."""

    at_version: AtVersion | None = None  # None: only the version at hand
    signing_key: str = ""

    def __repr__(self) -> str:
        return f"PageSettings({'signed' if self.signing_key else 'not signed'})"


class PageSeries(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One page of a series, before it is read."""

    source: RowSource  # at the series' version, in its order, without a limit
    request: PageRequest
    query: bytes
    token: PageToken | None  # of the page before
    limit: int | None  # of the whole series
    signing_key: str

    def __repr__(self) -> str:
        return f"PageSeries({self.request!r})"

    @property
    def count(self) -> int:
        """How much the page may have."""
        if self.limit is None:
            return self.request.count
        return max(0, min(self.request.count, self.limit - self._emitted))

    @property
    def anchor(self) -> Anchor | None:
        """The file that the page before ended with; one of rows goes on within it."""
        return None if self.token is None else _anchor(self.token.position)

    @property
    def after(self) -> RowPosition | None:
        """The last row of the page before; None of a first page."""
        return None if self.token is None else _row_position(self.token.position)

    def files(self, anchor: Anchor | None, *, limit: int) -> FileScan:
        """So many files, in order, from the anchor on."""
        source = self.source.with_config(limit=limit)
        return FileScan(
            source.snapshot, source.config, source.sidecar, source.memory, is_hurried=True, anchor=anchor
        )

    def next_token(self, scan: FileScan, position: Position) -> str | None:
        """For the page after this one, which is full and ends there; None where that is the series' limit."""
        emitted = self._emitted + self.count
        if self.limit is not None and emitted >= self.limit:
            return None
        report = scan.latest()
        assert report is not None
        token = PageToken(
            table_id=self.source.snapshot.state.metadata.id,
            version=self.source.snapshot.version,
            query=self.query,
            order=str(self.source.config.order),
            source=report.source,
            emitted=emitted,
            position=position,
        )
        return write_token(token, self.signing_key)

    @property
    def _emitted(self) -> int:
        return 0 if self.token is None else self.token.emitted


def open_series(source: RowSource, request: PageRequest, settings: PageSettings) -> PageSeries:
    """The series that a request begins or goes on with."""
    check_number(request.what, request.count, 1, where="page()")
    if request.count is None or request.count > limits.PAGE_COUNT_MAX:
        raise InvalidRequestError(
            f"{request.what} is {request.count!r}",
            "page()",
            f"give a whole number from 1 to {limits.PAGE_COUNT_MAX:,}",
        )
    token = None if request.after is None else read_token(request.after, settings.signing_key)
    if token is not None:
        _check_position(token.position)
    if token is not None:
        source = _at(source, token, settings.at_version)
    order = request.order or source.config.order or (ScanOrder.ASC if token is None else token.order)
    limit = source.config.limit
    source = msgspec.structs.replace(
        source, config=source.with_config(order=order, limit=None).config.checked()
    )
    query = _fingerprint(source, request, limit)
    if token is not None and (token.query, token.position.row is None) != (query, request.what == "files"):
        raise InvalidRequestError(
            "the page token is of another query",
            f"{source.snapshot.storage.root} @ {source.snapshot.version}",
            "give the filter, columns, order, limit and time zone of the first page, or begin a new series",
        )
    return PageSeries(
        source=source,
        request=request,
        query=query,
        token=token,
        limit=limit,
        signing_key=settings.signing_key,
    )


def position_of(file: pa.RecordBatch, traversal: Traversal) -> Position:
    """The place of a file: one row with the keys of its scan."""
    has_value = ORDER_VALUE in file.schema.names
    value = plain_values(file.column(ORDER_VALUE))[0] if has_value else None
    return position_in(
        traversal, value=value, raw_path=file.column(RAW_PATH)[0].as_py(), dv_id=dv_ids(file)[0]
    )


def position_in(
    traversal: Traversal, *, value: object, raw_path: str, dv_id: str | None, row: int | None = None
) -> Position:
    """A place in that order."""
    column = traversal.column
    path, type_name = (None, None) if column is None else (column.path, column.type.name)
    return Position(path, type_name, value, raw_path, dv_id or "", row)


def anchor_behind(file: pa.RecordBatch, traversal: Traversal) -> Anchor:
    """Where to go on behind that file."""
    return _anchor(position_of(file, traversal))


def _check_position(position: Position) -> None:
    """A token that is only sealed, not signed, may say anything."""
    column, type_name = position.column, position.type_name
    has_type = type_name is not None and is_type_name(type_name)
    if (column is None) != (type_name is None) or (column is not None and (not column or not has_type)):
        raise InvalidRequestError(
            f"the page token goes by {column!r} of the type {type_name!r}, which is no column",
            "after",
            "begin with the first page again",
        )


def _anchor(position: Position) -> Anchor:
    return Anchor(
        column=position.column,
        type_name=position.type_name,
        value=position.value,
        raw_path=position.raw_path,
        dv_id=position.dv_id,
        is_included=position.row is not None,
    )


def _row_position(position: Position) -> RowPosition:
    assert position.row is not None
    value = position.value
    if value is not None and (position.type_name or "").startswith("decimal"):
        try:
            value = Decimal(str(value))
        except InvalidOperation:
            raise InvalidRequestError(
                f"the page token goes on from {value!r}, which is no {position.type_name}",
                "after",
                "begin with the first page again",
            ) from None
    return RowPosition(
        order_value=value,
        raw_path=position.raw_path,
        dv_id=position.dv_id or None,
        row_index=position.row,
    )


def _fingerprint(source: RowSource, request: PageRequest, limit: int | None) -> bytes:
    """What tells queries apart: a page of one must not be gone on with by another."""
    predicate, config = source.files().predicate, source.config
    columns = None if request.columns is None else [str(name) for name in request.columns]
    told = (
        request.what,
        None if predicate is None else str(predicate.expression),
        columns,
        str(config.order),
        config.time_zone,
        limit,
    )
    return blake2b(msgspec.json.encode(told), digest_size=12).digest()


def _at(source: RowSource, token: PageToken, at_version: AtVersion | None) -> RowSource:
    """The table at the token's version, which is the token's table."""
    known = source.snapshot.state.metadata.id
    if token.version == source.snapshot.version and token.table_id == known:
        return source
    found = source
    if token.version != source.snapshot.version and at_version is not None:
        try:
            found = at_version(token.version)
        except VersionNotFoundError:
            if token.table_id == known:
                raise
    if (token.table_id, token.version) != (found.snapshot.state.metadata.id, found.snapshot.version):
        raise InvalidRequestError(
            f"the page token is of another table ({token.table_id})",
            f"{source.snapshot.storage.root} @ {source.snapshot.version}",
            "give next_token of this table's own pages, or None for the first page",
        )
    return msgspec.structs.replace(found, config=source.config)
