"""One frozen `Settings`, built at the edges and passed down: argument, environment, file, default.

Nothing below `table.py`, `cli`, the servers and the pipeline reads the environment: they get this struct. But
for `storage`, which asks `process_environment` for the variables that clients of stores know. Options have
dotted names (`delta.commit.parallelism`); the environment spells them `DELTA_COMMIT_PARALLELISM`, a TOML file
named by `LAZYDELTA_CONFIG` as they are.
Options of the store go there unread, for the table's own store or for a location of their own (a URL as the
key). They hold secrets, so nothing here shows their values: not the errors, not the `repr` of the settings.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, MutableMapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.redaction import redacted, shown_name

CONFIG_VARIABLE = "LAZYDELTA_CONFIG"
# Tables of the file that the pipeline reads (`lazydelta.spark`); readers pass them by.
PIPELINE_TABLES = ("ingest", "spark", "sidecar")
LOCATIONS_TABLE = "locations"  # of the file: options by URL
PROVIDER_OPTION = "credential_provider"


class LocationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How files below one URL are read, where it is not how the table's own are."""

    options: dict[str, str] = {}
    credential_provider: Any = None  # a callable or an object of a library: see docs/storage.md

    def __repr__(self) -> str:
        return f"LocationOptions({_names(self.options)})"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a table is opened with."""

    storage_options: dict[str, str] = {}
    request_timeout_seconds: float = limits.REQUEST_TIMEOUT_SECONDS
    request_attempts_max: int = limits.REQUEST_ATTEMPTS_MAX
    backoff_first_seconds: float = limits.BACKOFF_FIRST_SECONDS
    scan_timeout_seconds: float = limits.SCAN_TIMEOUT_SECONDS
    commit_read_parallelism: int = limits.COMMIT_PARALLELISM
    batch_size: int = limits.BATCH_ROWS
    checkpoint_row_groups_per_batch: int = limits.CHECKPOINT_ROW_GROUPS_PER_BATCH
    remove_set_memory_limit: int = limits.REMOVE_SET_BYTES
    sidecar_enabled: bool = True
    sidecar_directory: str = "_lazy"  # below _delta_log
    sidecar_row_groups_per_batch: int = limits.SIDECAR_ROW_GROUPS_PER_BATCH
    memory_bytes: int = 0  # of this process, over all scans; 0: as it is, `limits.MEMORY_BYTES` at first
    cache_bytes: int = limits.CACHE_BYTES  # of this process, over all tables; 0: nothing is kept
    max_staleness_seconds: float = 0.0  # how old a cached listing may be; 0: the log is listed each time
    page_signing_key: str = ""  # a secret; empty: page tokens have a checksum only
    allowed_roots: str = ""  # by commas: where absolute paths of a log may lead; "*": the table's own store
    credential_provider: Any = None  # as in `LocationOptions`
    locations: dict[str, LocationOptions] = {}

    def __repr__(self) -> str:
        locations = sorted(map(redacted, self.locations))
        return f"Settings(storage_options={_names(self.storage_options)}, locations={locations})"


# Option -> field of `Settings`.
OPTIONS = {
    "delta.commit.parallelism": "commit_read_parallelism",
    "delta.commit_read_parallelism": "commit_read_parallelism",
    "delta.batch_size": "batch_size",
    "delta.checkpoint_row_groups_per_batch": "checkpoint_row_groups_per_batch",
    "delta.remove_set_memory_limit": "remove_set_memory_limit",
    "delta.request.timeout_seconds": "request_timeout_seconds",
    "delta.request.attempts_max": "request_attempts_max",
    "delta.request.backoff_seconds": "backoff_first_seconds",
    "delta.scan.timeout_seconds": "scan_timeout_seconds",
    "delta.sidecar.enabled": "sidecar_enabled",
    "delta.sidecar.directory": "sidecar_directory",
    "delta.sidecar.row_groups_per_batch": "sidecar_row_groups_per_batch",
    "delta.memory.bytes": "memory_bytes",
    "delta.cache.bytes": "cache_bytes",
    "delta.cache.max_staleness_seconds": "max_staleness_seconds",
    "delta.page.signing_key": "page_signing_key",
    "delta.allowed_roots": "allowed_roots",
}

_MAY_BE_ZERO = frozenset(
    {
        "scan_timeout_seconds",
        "remove_set_memory_limit",
        "memory_bytes",
        "cache_bytes",
        "max_staleness_seconds",
    }
)
_LEVELS_MAX = 32  # of tables and arrays in a settings file
_SHOWN_CHARS_MAX = 100
_YES, _NO = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


def build_settings(
    storage_options: Mapping[str, Any] | None = None, *, environment: Mapping[str, str]
) -> Settings:
    """Settings from the caller's options, then the environment, then the file, then the defaults.

    Options that begin with `delta.` are lazydelta's own and may stand among the storage options, as users of
    other readers write them; `credential_provider` and URLs mean something of their own (docs/storage.md).
    The rest go to the store.
    """
    given = storage_options or {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidRequestError(
            "storage_options is not a mapping of names to values", "open()", 'give {"account_key": "…"}'
        )
    own = {name: value for name, value in given.items() if name.startswith("delta.")}
    _check_names(own)
    from_file, locations = _from_file(environment.get(CONFIG_VARIABLE))
    values: dict[str, object] = {}
    for source, where in (
        (from_file, CONFIG_VARIABLE),
        (_from_environment(environment), "the environment"),
        (own, "storage_options"),
    ):
        for name, value in source.items():
            values[OPTIONS[name]] = _value(name, value, where)
    rest = {name: value for name, value in given.items() if name not in own and "://" not in name}
    provider = rest.pop(PROVIDER_OPTION, None)
    locations |= _locations(
        {name: value for name, value in given.items() if "://" in name}, "storage_options"
    )
    settings = Settings(storage_options=rest, credential_provider=provider, locations=locations)
    return msgspec.structs.replace(settings, **values)


def process_environment() -> MutableMapping[str, str]:
    """The environment of this process, for the edges of the package that need it whole."""
    return os.environ


def read_settings_file(path: str, *, named_by: str = f"--config, {CONFIG_VARIABLE}") -> dict[str, object]:
    """The tables of a TOML file, whatever they hold."""
    try:
        tree = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        _check_depth(tree)
    except (OSError, ValueError, RecursionError) as problem:  # a number may be too long, too
        raise InvalidRequestError(
            f"the settings file cannot be read: {problem}",
            path,
            f"mend it, or name another one ({named_by})",
        ) from problem
    return tree


def variable_of(option: str) -> str:
    """`DELTA_COMMIT_PARALLELISM` for `delta.commit.parallelism`."""
    return option.replace(".", "_").upper()


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    return {name: environment[variable_of(name)] for name in OPTIONS if variable_of(name) in environment}


def _check_names(options: Mapping[str, object]) -> None:
    for name in options:
        if name not in OPTIONS:
            close = get_close_matches(name, OPTIONS, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(OPTIONS)}"
            raise InvalidRequestError(f"there is no option {shown_name(name)}", "storage_options", hint)


def _locations(given: Mapping[str, Any], where: str) -> dict[str, LocationOptions]:
    """Options by URL: `{url: {option: value}}`, or one by one as `{"url#option": value}`."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        url, mark, option = name.partition("#")
        if mark and option and not isinstance(value, Mapping):
            found.setdefault(url, {})[option] = value
        elif not mark and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            found.setdefault(url, {}).update(value)
        else:
            raise InvalidRequestError(
                f"the option {redacted(url)!r} is the address of a location, without options for it",
                where,
                'give {"s3://bucket/path": {"access_key_id": "…"}}, or "s3://bucket/path#access_key_id": "…"',
            )
    return {
        url: LocationOptions(credential_provider=options.pop(PROVIDER_OPTION, None), options=options)
        for url, options in found.items()
    }


def _names(options: Mapping[str, object]) -> list[str]:
    return sorted(map(shown_name, options))


def _from_file(path: str | None) -> tuple[dict[str, object], dict[str, LocationOptions]]:
    """Options and locations of the settings file."""
    if not path:
        return {}, {}
    tree = read_settings_file(path)
    locations = tree.pop(LOCATIONS_TABLE, {})
    if not isinstance(locations, dict):
        raise InvalidRequestError(
            f"{LOCATIONS_TABLE} is no table", path, f'write [{LOCATIONS_TABLE}."s3://bucket/path"]'
        )
    pipeline = {name for name in PIPELINE_TABLES if isinstance(tree.get(name), dict)}
    tree = {name: value for name, value in tree.items() if name not in pipeline}
    flat = _flattened(tree)
    unknown = sorted(set(flat) - set(OPTIONS))
    if unknown:
        raise InvalidRequestError(
            f"there is no option {shown_name(unknown[0])}", path, f"there are: {', '.join(OPTIONS)}"
        )
    return flat, _locations(locations, path)


def _check_depth(tree: dict[str, object]) -> None:
    """What goes through the tree later recurses once a level, on a stack that callers share."""
    level: list[object] = [tree]
    for _ in range(_LEVELS_MAX):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"it nests deeper than {_LEVELS_MAX} levels")


def _flattened(tree: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat.update(_flattened(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _value(name: str, value: object, where: str) -> object:
    """The value as the field's own kind."""
    default = getattr(Settings(), OPTIONS[name])
    if isinstance(default, bool):
        return _flag(name, value, where)
    if isinstance(default, str):
        read = {"sidecar_directory": _folder, "allowed_roots": _roots}.get(OPTIONS[name], _secret)
        return read(name, value, where)
    return _number(name, value, where)


def _flag(name: str, value: object, where: str) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in _YES and text not in _NO:
        raise InvalidRequestError(f"{name} is {value!r}", where, "give true or false")
    return text in _YES


def _folder(name: str, value: object, where: str) -> str:
    parts = str(value).removesuffix("/").split("/")
    if not isinstance(value, str) or any(part in {"", ".", ".."} for part in parts):
        fix = "give the name of a folder below _delta_log, as in _lazy: no absolute path, no .."
        raise InvalidRequestError(f"{name} is {value!r}", where, fix)
    return "/".join(parts)


def _roots(name: str, value: object, where: str) -> str:
    """One text, whether a list was given or one; what the roots are is for the storage to say."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(root, str) for root in value):
        raise InvalidRequestError(f"{name} is not text", where, "give addresses, by commas")
    return ",".join(_without_comma(root) for root in value)


def _without_comma(root: str) -> str:
    if "," not in root:
        return root
    return root.replace(",", "%2C") if "://" in root else Path(root).absolute().as_uri()


def _secret(name: str, value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequestError(f"{name} is not text", where, "give the key as text; empty for none")
    return value


def _number(name: str, value: object, where: str) -> int | float:
    """The value as the field's own kind of number; text is read as one, nothing is rounded."""
    field = OPTIONS[name]
    is_whole = isinstance(getattr(Settings(), field), int)
    least = 0.0 if field in _MAY_BE_ZERO else 1e-9
    most = limits.NUMBER_MAX if is_whole else limits.SECONDS_MAX
    number = _read_number(value)
    if not least <= number <= most or (is_whole and not number.is_integer()):
        kind = "whole number" if is_whole else "number"
        wanted = f"a {kind} of at least 0" if field in _MAY_BE_ZERO else f"a positive {kind}"
        if number > most:
            wanted += f", at most {most:,.0f}"
        shown = f"{value!r}"[:_SHOWN_CHARS_MAX]
        raise InvalidRequestError(f"{name} is {shown}", where, f"give {wanted}")
    return int(number) if is_whole else number


def _read_number(value: object) -> float:
    """The number, or NaN where there is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
