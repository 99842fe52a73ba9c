"""A series of pages: one query at one pinned version, and where the next page goes on.

Why: pages of rows and pages of files differ in what they read, not in how they follow each other.
Contract: a series belongs to one table, one version and one query; a token of another is an
`InvalidRequestError`. The version is opened anew where the table at hand is another: one that was cleaned up
is a `VersionNotFoundError`. The order is that of the first page, whatever tells of the files later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, VersionNotFoundError
from lazydelta.rows.located_rows import RowPosition
from lazydelta.rows.page_token import PageToken, Position, read_token, write_token
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.scan.config import ScanOrder, check_number
from lazydelta.sidecar.order.anchor import Anchor

# The same table at another version.
AtVersion = Callable[[int], RowSource]


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asks for, checked."""

    what: str  # "rows" or "files"
    count: int
    after: str | None = None
    order: ScanOrder | str | None = None
    columns: Sequence[str] | None = None


class PageSettings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What pages need besides the table."""

    at_version: AtVersion | None = None  # None: only the version at hand
    signing_key: str = ""


class PageSeries(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One page of a series, before it is read."""

    source: RowSource  # at the series' version, in its order, without a limit
    request: PageRequest
    query: bytes
    token: PageToken | None  # of the page before
    limit: int | None  # of the whole series
    signing_key: str

    @property
    def count(self) -> int:
        """How much the page may have."""
        emitted = 0 if self.token is None else self.token.emitted
        return self.request.count if self.limit is None else min(self.request.count, self.limit - emitted)

    @property
    def is_descending(self) -> bool:
        """Whether the last come first."""
        return self.source.config.order == ScanOrder.DESC

    @property
    def after(self) -> RowPosition | None:
        """The last row of the page before; None of a first page."""
        if self.token is None:
            return None
        place = self.token.position
        assert place.row is not None
        is_decimal = (place.type_name or "").startswith("decimal") and place.value is not None
        return RowPosition(
            order_value=Decimal(place.value) if is_decimal else place.value,
            raw_path=place.raw_path,
            dv_id=place.dv_id or None,
            row_index=place.row,
        )

    def files(self, *, limit: int | None) -> FileScan:
        """The files from the place on where the page before has ended; of rows, that file included."""
        position = None if self.token is None else self.token.position
        anchor = None
        if position is not None:
            anchor = Anchor(
                column=position.column,
                type_name=position.type_name,
                value=position.value,
                raw_path=position.raw_path,
                dv_id=position.dv_id,
                is_included=position.row is not None,
            )
        source = self.source.with_config(limit=limit)
        return FileScan(
            source.snapshot, source.config, source.sidecar, source.memory, is_hurried=True, anchor=anchor
        )

    def next_token(
        self, scan: FileScan, count: int, file: tuple[Any, str, str], row: int | None
    ) -> str | None:
        """For the page after this one, which has `count` and ends with that of `file`, its key.

        None where the series' limit is reached.
        """
        emitted = count + (0 if self.token is None else self.token.emitted)
        if self.limit is not None and emitted >= self.limit:
            return None
        assert scan.traversal is not None
        column, report = scan.traversal.column, scan.latest()
        assert report is not None
        value, raw_path, dv_id = file
        token = PageToken(
            table_id=self.source.snapshot.state.metadata.id,
            version=self.source.snapshot.version,
            query=self.query,
            order=ScanOrder(str(self.source.config.order)).value,
            source=report.source,
            emitted=emitted,
            position=Position(
                None if column is None else column.path,
                None if column is None else column.type.name,
                value,
                raw_path,
                dv_id,
                row,
            ),
        )
        return write_token(token, self.signing_key)


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
        source = _at(source, token, settings.at_version)
    order = request.order or source.config.order or (ScanOrder.ASC if token is None else token.order)
    limit = source.config.limit
    source = source.with_config(order=order, limit=None)
    source = source.with_config(order=source.config.checked().order)
    query = fingerprint(source, request.what, request.columns, limit)
    if token is not None and (
        token.query != query or (token.position.row is None) != (request.what == "files")
    ):
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


def fingerprint(source: RowSource, what: str, columns: Sequence[str] | None, limit: int | None) -> bytes:
    """What tells queries apart: a page of one must not be gone on with by another."""
    scan = source.with_config(limit=None).files()
    told = (
        what,
        None if scan.predicate is None else str(scan.predicate.expression),
        columns,
        str(scan.config.order),
        scan.config.time_zone,
        limit,
    )
    return blake2b(msgspec.json.encode(told), digest_size=12).digest()


def _at(source: RowSource, token: PageToken, at_version: AtVersion | None) -> RowSource:
    """The table at the token's version, which is the token's table."""
    known = source.snapshot.state.metadata.id
    if token.version == source.snapshot.version and token.table_id == known:
        return source
    try:
        is_here = token.version == source.snapshot.version or at_version is None
        found = source if is_here else at_version(token.version)
    except VersionNotFoundError:
        if token.table_id == known:
            raise
        found = source
    if (token.table_id, token.version) != (found.snapshot.state.metadata.id, found.snapshot.version):
        raise InvalidRequestError(
            f"the page token is of another table ({token.table_id})",
            f"{source.snapshot.storage.root} @ {token.version}",
            "give next_token of this table's own pages, or None for the first page",
        )
    return msgspec.structs.replace(found, config=source.config)
