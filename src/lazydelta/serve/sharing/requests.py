"""What clients of Delta Sharing send: bodies, parameters and the capabilities header, checked at the border.

Contract: what is malformed or of a wrong type is an `InvalidRequestError` that names the field; what the
protocol does not know is passed over, so that newer clients are served. Headers are read case apart.
Spec: PROTOCOL.md of Delta Sharing, "Read Data from a Table", "Delta Sharing Capabilities Header".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec

from lazydelta.errors import InvalidRequestError

PARQUET, DELTA = "parquet", "delta"
CAPABILITIES_HEADER = "delta-sharing-capabilities"
VERSION_HEADER = "Delta-Table-Version"
FILE_ID_HEADER = "fileidhash"
_LONG_MAX = (1 << 63) - 1
_CHARACTERS_MAX = 4096  # of a timestamp or a token
_Count = Annotated[int, msgspec.Meta(ge=0, le=_LONG_MAX)]
_Text = Annotated[str, msgspec.Meta(max_length=_CHARACTERS_MAX)]
Asked = TypeVar("Asked", bound=msgspec.Struct)


class QueryBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The body of a query."""

    predicate_hints: list[str] | None = None
    json_predicate_hints: str | None = None
    limit_hint: _Count | None = None
    version: _Count | None = None
    timestamp: _Text | None = None
    starting_version: _Count | None = None
    ending_version: _Count | None = None
    max_files: _Count | None = None
    page_token: str | None = None
    include_refresh_token: bool | None = None
    refresh_token: str | None = None
    include_historical_protocol: bool | None = None


class ChangesAsked(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The parameters of a question for changes."""

    starting_version: _Count | None = None
    starting_timestamp: _Text | None = None
    ending_version: _Count | None = None
    ending_timestamp: _Text | None = None
    include_historical_metadata: bool = False
    include_historical_protocol: bool = False
    max_files: _Count | None = None
    page_token: str | None = None


class VersionAsked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters of a question for a version, or for metadata."""

    version: _Count | None = None
    timestamp: _Text | None = None
    starting_timestamp: _Text | None = None


class ListAsked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters of a list."""

    max_results: Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)] | None = None
    page_token: str | None = None


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a client can read."""

    formats: frozenset[str] = frozenset({PARQUET})
    reader_features: frozenset[str] = frozenset()  # lower case
    wants_end: bool = False  # an `endStreamAction` closes every answer


def read_query(body: bytes) -> QueryBody:
    """The body of a query; nothing at all is an empty one."""
    try:
        query = msgspec.json.decode(body or b"{}", type=QueryBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequestError(
            f"the body is wrong: {problem}", "body", 'send JSON such as {"limitHint": 100}, or {}'
        ) from problem
    _at_most_one("version", query.version, "timestamp", query.timestamp)
    _at_most_one("version", query.version, "startingVersion", query.starting_version)
    _at_most_one("timestamp", query.timestamp, "startingVersion", query.starting_version)
    _at_most_one("pageToken", query.page_token, "refreshToken", query.refresh_token)
    check_paging(query.max_files, query.page_token)
    return query


def read_changes(parameters: Mapping[str, str]) -> ChangesAsked:
    """The parameters of a question for changes: a start, and perhaps an end."""
    asked = _converted(parameters, ChangesAsked)
    _at_most_one("startingVersion", asked.starting_version, "startingTimestamp", asked.starting_timestamp)
    _at_most_one("endingVersion", asked.ending_version, "endingTimestamp", asked.ending_timestamp)
    if asked.starting_version is None and asked.starting_timestamp is None:
        raise InvalidRequestError(
            "no start is given", "startingVersion", "give startingVersion or startingTimestamp"
        )
    check_paging(asked.max_files, asked.page_token)
    return asked


def read_version(parameters: Mapping[str, str]) -> VersionAsked:
    """The parameters of a question for a version, or for metadata."""
    asked = _converted(parameters, VersionAsked)
    _at_most_one("version", asked.version, "timestamp", asked.timestamp)
    return asked


def read_list(parameters: Mapping[str, str]) -> ListAsked:
    """The parameters of a list."""
    return _converted(parameters, ListAsked)


def read_capabilities(header: str | None) -> Capabilities:
    """What the header tells; without one, a client of the first days."""
    told: dict[str, frozenset[str]] = {}
    for part in (header or "").lower().split(";"):
        name, _, values = part.partition("=")
        told[name.strip()] = frozenset(filter(None, (value.strip() for value in values.split(","))))
    formats = told.get("responseformat") or frozenset({PARQUET})
    if not formats & {PARQUET, DELTA}:
        raise InvalidRequestError(
            f"this server has no response format {sorted(formats)[0][:100]!r}",
            CAPABILITIES_HEADER,
            "ask for responseformat=parquet, delta or both",
        )
    return Capabilities(
        formats=formats & {PARQUET, DELTA},
        reader_features=told.get("readerfeatures", frozenset()),
        wants_end=told.get("includeendstreamaction") == frozenset({"true"}),
    )


def read_file_id(header: str | None) -> str | None:
    """How ids of files are made; both ways are one here."""
    wanted = None if header is None else header.strip().lower()
    if wanted not in {None, PARQUET, DELTA}:
        raise InvalidRequestError(
            f"there is no way {str(header)[:100]!r} to make ids", FILE_ID_HEADER, "give parquet or delta"
        )
    return wanted


def check_paging(max_files: int | None, page_token: str | None) -> None:
    """A page has at least one file, and who goes on says how many."""
    if max_files == 0 or (page_token is not None and max_files is None):
        raise InvalidRequestError(
            "a page must be of at least one file", "maxFiles", "give maxFiles of 1 or more with every page"
        )


def _converted(parameters: Mapping[str, str], kind: type[Asked]) -> Asked:
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    given: dict[str, object] = {name: value for name, value in parameters.items() if name in names}
    for name, value in given.items():
        if str(value).lower() in {"true", "false"} and name.startswith("include"):
            given[name] = str(value).lower() == "true"
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as problem:
        raise InvalidRequestError(
            f"a parameter is wrong: {problem}", "query parameters", "see the protocol for its type"
        ) from problem


def _at_most_one(name: str, value: object, other_name: str, other: object) -> None:
    if value is not None and other is not None:
        raise InvalidRequestError(f"{name} and {other_name} are both given", name, "give one of them")
