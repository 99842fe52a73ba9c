"""What a client of Kusto sends: `{"db": …, "csl": …, "properties": …}`, and the options in it.

Contract: a body that is no such JSON is refused by what is wrong with it; options that are not known are
passed over, as Kusto does; a known one of the wrong kind is refused by its name. `properties` may be an
object or its text. Bodies may be packed by gzip; what they unpack to has the same limit.
Spec: Kusto, "Query/management HTTP request", "Request properties".
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.engines.kql.timespans import read_timespan
from lazydelta.errors import InvalidRequestError
from lazydelta.serve.refusals import TooLargeError

_SANE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,511}\Z")
_WHERE = "body"
_FIX = 'send JSON such as {"db": "main", "csl": "TABLE | take 10"}'
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_YES, _NO = ("true", "1", "yes"), ("false", "0", "no", "")
Options = Mapping[str, Any]  # Any: as JSON has it


class Body(msgspec.Struct, frozen=True):
    """A request as it stands."""

    csl: str
    db: str | None = None
    properties: Any = None  # Any: an object, its text, or nothing


class Properties(msgspec.Struct, frozen=True, rename="pascal"):
    """What stands in `properties`."""

    options: dict[str, Any] | None = None  # Any: as JSON has it
    parameters: dict[str, Any] | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A query or a command, with how it is to be answered."""

    text: str
    database: str
    options: Options  # by small letters
    parameters: Mapping[str, Any]  # Any: text of KQL, numbers, truth
    request_id: str  # the client's
    activity_id: str
    application: str = ""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Options that have a meaning here; `set` statements of the query are options, too."""

    seconds: float
    records_max: int | None  # None: no limit
    bytes_max: int | None
    take_max: int | None
    is_progressive: bool
    is_fragmented: bool
    errors_are_deferred: bool
    is_explained: bool
    now: datetime | None


def read_body(sent: bytes, encoding: str | None, *, bytes_max: int) -> Body:
    """The request, checked."""
    plain = _unpacked(sent, encoding, bytes_max)
    try:
        found = msgspec.json.decode(plain, type=Body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequestError(f"the body is no request: {problem}", _WHERE, _FIX) from problem
    if not found.csl.strip():
        raise InvalidRequestError("the query is empty", "csl", _FIX)
    return found


def read_properties(body: Body) -> Properties:
    """Its options and parameters."""
    given = body.properties
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given) if given.strip() else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise _wrong("properties", f"it is no JSON: {problem}") from problem
    try:
        return Properties() if given is None else msgspec.convert(given, Properties)
    except msgspec.ValidationError as problem:
        raise _wrong("properties", str(problem)) from problem


def lower_options(options: Mapping[str, Any] | None) -> Options:
    """By small letters: Kusto does not tell cases apart."""
    return {name.lower(): value for name, value in (options or {}).items()}


def read_parameters(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Literals of KQL; numbers and truth may stand there as such."""
    for name, value in (parameters or {}).items():
        if not isinstance(value, str | int | float):
            raise _wrong(f"properties.Parameters.{name}"[:200], "it is no literal of KQL")
    return dict(parameters or {})


def read_settings(options: Options, *, records_max: int, bytes_max: int, seconds: float) -> Settings:
    """What the options say; the rest is by default. 0 is no limit."""
    is_whole = _truth(options, "notruncation")
    records = _count(options, "truncationmaxrecords")
    size = _count(options, "truncationmaxsize")
    return Settings(
        seconds=_seconds(options, seconds),
        records_max=None if is_whole else (records_max if records is None else records) or None,
        bytes_max=None if is_whole else (bytes_max if size is None else size) or None,
        take_max=_count(options, "query_take_max_records"),
        is_progressive=_truth(options, "results_progressive_enabled"),
        is_fragmented=_truth(options, "results_v2_fragment_primary_tables"),
        errors_are_deferred=_truth(options, "deferpartialqueryfailures"),
        is_explained=_truth(options, "query_explain"),
        now=_moment(options, "query_now"),
    )


def sane(given: str | None) -> str:
    """What a client says of itself, if it may stand in an answer and in a log."""
    return given if given and _SANE.match(given) else ""


def _unpacked(sent: bytes, encoding: str | None, bytes_max: int) -> bytes:
    kind = (encoding or "").strip().lower()
    if kind in ("", "identity"):
        return sent
    if kind not in ("gzip", "deflate"):
        raise _wrong("content-encoding", f"{kind[:40]!r} is not known; there are gzip and deflate")
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    most = bytes_max or limits.NUMBER_MAX
    try:
        plain = unpacker.decompress(sent, most + 1)
    except zlib.error as problem:
        raise _wrong(_WHERE, f"it is not packed as it says: {problem}") from problem
    if len(plain) > most:
        raise TooLargeError(
            f"the body has more than {most:,} bytes (limits.request_bytes)", _WHERE, "send less"
        )
    if not unpacker.eof:
        raise _wrong(_WHERE, "it is packed, and breaks off")
    return plain


def _truth(options: Options, name: str) -> bool:
    value = options.get(name)
    told = str(value).strip().lower()
    if value is None or told in _NO:
        return False
    if told not in _YES:
        raise _wrong(name, f"it is {value!r}"[:100] + ", not true or false")
    return True


def _count(options: Options, name: str) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    told = str(value).strip()
    if isinstance(value, bool) or not (told.isascii() and told.isdecimal() and len(told) < 20):
        raise _wrong(name, f"it is {value!r}"[:100] + ", not a whole number")
    return min(int(told), limits.NUMBER_MAX)


def _seconds(options: Options, most: float) -> float:
    longest = limits.KUSTO_SECONDS_MAX
    if _truth(options, "norequesttimeout"):
        return longest
    value = options.get("servertimeout")
    if value is None:
        return most
    found = read_timespan(str(value))
    if found is None or found <= 0:
        raise _wrong("servertimeout", f"it is {value!r}"[:100] + ", not a timespan such as 00:04:00")
    return min(found, longest)


def _moment(options: Options, name: str) -> datetime | None:
    value = options.get(name)
    if value is None:
        return None
    told = str(value).strip().removeprefix("datetime(").removesuffix(")")
    try:
        found = datetime.fromisoformat(told)
    except ValueError as problem:
        raise _wrong(name, f"it is {value!r}"[:100] + ", not a datetime") from problem
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _wrong(where: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(f"{where}: {what}", where, "see docs/kusto.md, Options")
