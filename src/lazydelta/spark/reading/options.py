"""The options of the data source, from Spark's texts to one checked struct and back.

Why: Spark hands options over as texts whose names have lost their case. Contract: an option that nobody knows
is an error, so is a value that does not fit. Credentials stand in `storage_options` (JSON) or behind the
prefix `storage.`; the `repr` shows none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.redaction import redacted, shown_name
from lazydelta.settings import Settings, build_settings, process_environment
from lazydelta.spark.reading.time_zones import zone_name
from lazydelta.storage import split_credentials

FORMAT = "lazydelta"
_STORAGE_PREFIX = "storage."
_WHERE = f'format("{FORMAT}")'
# Names that users of Delta's own source know -> ours.
_ALIASES = {"url": "path", "versionasof": "version", "timestampasof": "timestamp", "filter": "where"}
# Names of Delta's own source that mean nothing here -> how they are written, what to do.
_DELTAS_OWN = {
    "startingtimestamp": ("startingTimestamp", "give startingVersion"),
    "readchangefeed": ("readChangeFeed", 'there is no change data feed here: use format("delta") for it'),
    "readchangedata": ("readChangeData", 'there is no change data feed here: use format("delta") for it'),
    "failondataloss": ("failOnDataLoss", "leave it out: lost commits are always an error here"),
    "schematrackinglocation": ("schemaTrackingLocation", "leave it out: start the query again instead"),
}
_MAY_BE_ZERO = frozenset({"version", "startingversion", "limit", "partitionlimit", "minpartitions"})
_FLAGS = {"true": True, "false": False}
_SIZE = re.compile(r"([0-9]{1,19})\s*([kmgtp])?b?", re.IGNORECASE | re.ASCII)  # as in Spark: 512, 10m, 1 GB
_UNITS = "kmgtp"
_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
STREAM_ONLY = (
    "startingversion",
    "maxfilespertrigger",
    "maxbytespertrigger",
    "ignoredeletes",
    "ignorechanges",
    "skipchangecommits",
)
BATCH_ONLY = ("version", "timestamp", "limit", "partitionlimit")


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to read and how; fields are the options' names in lower case."""

    path: str
    where: str | None = None
    columns: tuple[str, ...] | None = None
    version: int | None = None
    timestamp: str | None = None
    limit: int | None = None  # rows, in all
    partitionlimit: int | None = None  # rows of each partition
    timezone: str = "UTC"  # of partition values, literals and timestamps without one
    maxpartitionbytes: int = limits.SPARK_PARTITION_BYTES
    opencostbytes: int = limits.SPARK_OPEN_COST_BYTES
    minpartitions: int = 0  # where there is enough to share; 0: as many as the driver has cores
    spill: str | None = None  # where file lists go that are too long for a plan
    startingversion: int | str | None = None  # a number or "latest"; None: the table as it is, then changes
    maxfilespertrigger: int | None = None
    maxbytespertrigger: int | None = None
    ignoredeletes: bool = False
    ignorechanges: bool = False
    skipchangecommits: bool = False
    storage_options: dict[str, Any] = {}  # Any: options of locations are mappings

    def __repr__(self) -> str:
        return f"ReadOptions(path={redacted(self.path)!r})"

    def opened_with(self) -> tuple[str, Settings]:
        """The table's address without credentials, and the settings with them."""
        settings = build_settings(self.storage_options, environment=process_environment())
        return split_credentials(self.path, settings)


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """The options as Spark gives them."""
    values: dict[str, Any] = {}
    storage: dict[str, Any] = {}
    for name, text in given.items():
        lowered = name.lower()
        field = _ALIASES.get(lowered, lowered)
        if field == "storage_options":
            storage |= _mapping(text)
        elif field.startswith(_STORAGE_PREFIX):
            storage[field.removeprefix(_STORAGE_PREFIX)] = text
        elif field not in ReadOptions.__struct_fields__:
            raise _unknown(name)
        elif field in values:
            raise InvalidRequestError(f"the option {field} is given twice", _WHERE, "give it once")
        else:
            values[field] = _READ.get(field, _text)(field, text)
    if not values.get("path"):
        raise InvalidRequestError(
            "the data source has no table", _WHERE, "give the table's address: load(url), or option path"
        )
    if "version" in values and "timestamp" in values:
        raise InvalidRequestError("version and timestamp are both given", _WHERE, "give one of them")
    return ReadOptions(storage_options=storage, **values)


def option_texts(options: ReadOptions) -> dict[str, str]:
    """The same as texts, those that differ from the defaults: `parse_options` reads them back."""
    found = {}
    for name, value in msgspec.structs.asdict(options).items():
        if name == "storage_options":
            if value:
                found[name] = msgspec.json.encode(value).decode()
        elif value is not None and value != _DEFAULTS.get(name):
            is_plain = isinstance(value, str | int) and not isinstance(value, bool)
            found[name] = str(value) if is_plain else msgspec.json.encode(value).decode()
    return found


def refuse(options: ReadOptions, names: tuple[str, ...], why: str) -> None:
    """An error where one of these options is given."""
    for name in names:
        if getattr(options, name) != _DEFAULTS[name]:
            raise InvalidRequestError(f"the option {name} is given", _WHERE, why)


_DEFAULTS = dict(zip(ReadOptions.__struct_fields__[1:], ReadOptions.__struct_defaults__, strict=True)) | {
    "storage_options": {}
}


def _unknown(name: str) -> InvalidRequestError:
    if name.lower() in _DELTAS_OWN:
        own, instead = _DELTAS_OWN[name.lower()]
        return InvalidRequestError(f"{own} is an option of Delta's own source alone", _WHERE, instead)
    known = [*ReadOptions.__struct_fields__, *_ALIASES]
    close = get_close_matches(name.lower(), known, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
    return InvalidRequestError(
        f"the data source has no option {shown_name(name)}",
        _WHERE,
        f"{hint} (options of the store begin with {_STORAGE_PREFIX})",
    )


def _text(_: str, text: str) -> str:
    return text


def _mapping(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise InvalidRequestError(
            "storage_options is not a JSON object", _WHERE, 'give {"account_key": "…"}'
        ) from None  # the cause would repeat what it read


def _columns(name: str, text: str) -> tuple[str, ...]:
    if not text.lstrip().startswith("["):
        return tuple(part.strip() for part in text.split(","))
    try:
        return msgspec.json.decode(text, type=tuple[str, ...])
    except msgspec.DecodeError as error:
        raise InvalidRequestError(
            f"{name} is {text!r}", _WHERE, 'give names by commas, or as JSON: ["a", "b"]'
        ) from error


def _number(name: str, text: str) -> int:
    least = 0 if name in _MAY_BE_ZERO else 1
    stripped = text.strip()
    if _DIGITS.fullmatch(stripped) and least <= int(stripped) <= limits.NUMBER_MAX:
        return int(stripped)
    raise InvalidRequestError(f"{name} is {text!r}", _WHERE, f"give a whole number of at least {least}")


def _size(name: str, text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    times = 0 if found is None or found[2] is None else 1 + _UNITS.index(found[2].lower())
    size = 0 if found is None else int(found[1]) << 10 * times
    if not 1 <= size <= limits.NUMBER_MAX:
        raise InvalidRequestError(
            f"{name} is {text!r}", _WHERE, "give a number of bytes, or one as 10m or 1g"
        )
    return size


def _time_zone(_: str, text: str) -> str:
    return zone_name(text, _WHERE)


def _starting_version(name: str, text: str) -> int | str:
    return "latest" if text.strip().lower() == "latest" else _number(name, text)


def _flag(name: str, text: str) -> bool:
    try:
        return _FLAGS[text.strip().lower()]
    except KeyError:
        raise InvalidRequestError(f"{name} is {text!r}", _WHERE, "give true or false") from None


_READ: dict[str, Any] = {  # Any: each reads its own kind
    "columns": _columns,
    "timezone": _time_zone,
    "startingversion": _starting_version,
    **dict.fromkeys(("ignoredeletes", "ignorechanges", "skipchangecommits"), _flag),
    **dict.fromkeys(
        (
            "version",
            "limit",
            "partitionlimit",
            "minpartitions",
            "maxfilespertrigger",
        ),
        _number,
    ),
    **dict.fromkeys(("maxpartitionbytes", "opencostbytes", "maxbytespertrigger"), _size),
}
