"""Files of tables over HTTP, for who has a link: whole, or a range of them.

Contract: a link is all that is needed and all that counts: what it does not name cannot be asked for. It is
refused once it has expired, once its client may not read the table any more, or the table is not served.
Data files do not change, so the entity tag is made of the file's name and size; `If-Match`, `If-None-Match`
and `If-Range` go by it. Bytes are read as fast as the client takes them, a chunk at a time.
Spec: RFC 9110, "Range Requests", "Conditional Requests".
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import closing
from hashlib import blake2b

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from lazydelta import limits
from lazydelta.errors import CorruptDataError, LazyDeltaError, TableNotFoundError
from lazydelta.serve.calls import call
from lazydelta.serve.http.pulled_response import PulledResponse
from lazydelta.serve.http.status import error_response
from lazydelta.serve.link_office import FileLink, LinkOffice
from lazydelta.serve.refusals import ForbiddenError
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client
from lazydelta.storage import ObjectNotFoundError, Storage, open_storage, past_end
from lazydelta.storage.elsewhere import storage_of

_READS_MAX = 64  # at once, over all clients
_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z", re.ASCII)
_FAR = 1 << 63  # no file has so many bytes


class Span(msgspec.Struct, frozen=True):
    """Bytes of a file."""

    start: int
    length: int | None  # None: to an end that is not known


class FileServer:
    """Answers links."""

    def __init__(self, served: Served, office: LinkOffice) -> None:
        self._served = served
        self._office = office
        self._reads = CapacityLimiter(_READS_MAX)

    async def answer(self, request: Request) -> Response:
        """The file, a part of it, or why not."""
        noted = call(self._served.metrics, "sharing", "file", request.headers.get("x-request-id"))
        with noted as found:
            try:
                link = self._link(request)
                found.client, found.table = link.client, link.table
                return await self._answered(request, link)
            except LazyDeltaError as error:
                found.status = type(error).__name__.removesuffix("Error")
                return error_response(_as_told(error))

    def _link(self, request: Request) -> FileLink:
        asked = request.query_params
        link = self._office.read(
            request.path_params["payload"], asked.get("sp", ""), asked.get("se", ""), asked.get("sig", "")
        )
        self._served.catalog.find(link.table, self._client(link.client))
        return link

    def _client(self, name: str) -> Client:
        """Who the link was made for, with the roles of today."""
        found = self._served.sign_in.named(name)
        if found is not None:
            return found
        raise ForbiddenError("the link cannot be used: its client is gone", "link", "sign in and ask again")

    async def _answered(self, request: Request, link: FileLink) -> Response:
        tag = f'"{blake2b(f"{link.path} {link.size}".encode(), digest_size=12).hexdigest()}"'
        headers = {"ETag": tag, "Accept-Ranges": "bytes", "Cache-Control": "private, no-transform"}
        wanted = request.headers.get("if-match")
        if wanted is not None and not _names(wanted, tag):
            return Response(status_code=412, headers=headers)
        known = request.headers.get("if-none-match")
        if known is not None and _names(known, tag):
            return Response(status_code=304, headers=headers)
        span, status = _span(request, tag, link.size)
        if span is None:
            return Response(status_code=416, headers=headers | {"Content-Range": f"bytes */{link.size}"})
        if status == 206:
            assert span.length is not None
            total = "*" if link.size is None else link.size
            headers["Content-Range"] = f"bytes {span.start}-{span.start + span.length - 1}/{total}"
        if span.length is not None:
            headers["Content-Length"] = str(span.length)
        media = "application/octet-stream"
        if request.method == "HEAD":
            return Response(status_code=status, headers=headers, media_type=media)
        chunks = await to_thread.run_sync(self._opened, link, span, limiter=self._reads)
        return PulledResponse(
            chunks,
            self._reads,
            status=status,
            headers=headers | {"Content-Type": media},
            stalled_seconds=self._served.admission.limits.stalled_seconds,
        )

    def _opened(self, link: FileLink, span: Span) -> Generator[bytes, None, None]:
        """The chunks, the first of which is there: a file that cannot be read has a status."""
        table = self._served.config.tables.get(link.table)
        if table is None:
            raise TableNotFoundError(f"there is no table {link.table!r}", "table", "list what is served")
        storage, name = storage_of(open_storage(table.url, table.settings), link.path)
        is_whole = span.start == 0 and span.length == link.size
        chunks = _whole(storage, name, link.size) if is_whole else _parts(storage, name, span)
        return _after(next(chunks, b""), chunks)


def _whole(storage: Storage, name: str, size: int | None) -> Generator[bytes, None, None]:
    """All of a file, by one request; one of another size than the log tells is not handed out as it.

    A chunk goes out once the next one is there, so that a file that is too large is never whole.
    """
    seen, held = 0, b""
    with closing(_stream(storage, name)) as chunks:
        for chunk in chunks:
            seen += len(chunk)
            if size is not None and seen > size:
                raise CorruptDataError(
                    "the file is larger than the log says", name, "ask for the files again"
                )
            if held:
                yield held
            held = chunk
    if size is not None and seen < size:
        raise past_end(name)
    yield held


def _stream(storage: Storage, name: str) -> Generator[bytes, None, None]:
    yield from storage.get_stream(name, limits.SERVE_FILE_CHUNK_BYTES)


def _parts(storage: Storage, name: str, span: Span) -> Generator[bytes, None, None]:
    assert span.length is not None
    at, end = span.start, span.start + span.length
    while at < end:
        length = min(limits.SERVE_FILE_CHUNK_BYTES, end - at)
        yield storage.get_range(name, at, length)
        at += length


def _after(first: bytes, rest: Iterator[bytes]) -> Generator[bytes, None, None]:
    yield first
    yield from rest


def _span(request: Request, tag: str, size: int | None) -> tuple[Span | None, int]:
    """Which bytes, and the status; None: none of those asked for are there."""
    whole = Span(0, size)
    condition = request.headers.get("if-range")
    asked = _RANGE.match(request.headers.get("range", "").strip().lower())
    if asked is None or (condition is not None and condition.strip() != tag):
        return whole, 200
    first, last = _position(asked[1]), _position(asked[2])
    is_closed = first is not None and last is not None
    is_none = first is last is None or (first is not None and last is not None and last < first)
    if is_none or (size is None and not is_closed):  # without the size only both ends tell a range
        return whole, 200
    start = first if first is not None else max(0, (size or 0) - (last or 0))
    end = last + 1 if first is not None and last is not None else size or 0
    if size is not None:
        end = min(size, end)
    return (Span(start, end - start), 206) if start < end else (None, 416)


def _position(digits: str) -> int | None:
    """The number; one beyond all files is as good as any."""
    told = digits.lstrip("0")
    if not told:
        return 0 if digits else None
    return min(int(told), _FAR) if len(told) <= len(str(_FAR)) else _FAR


def _names(header: str, tag: str) -> bool:
    return header.strip() == "*" or tag in (part.strip().removeprefix("W/") for part in header.split(","))


def _as_told(error: LazyDeltaError) -> LazyDeltaError:
    """Without the address of the store; a file that is gone is not found."""
    if isinstance(error, ObjectNotFoundError):
        return TableNotFoundError("the file is not there any more", "file", "ask for the files again")
    return type(error)(error.what, "file", error.fix)
