"""The settings of the pipeline: flags, then the environment, then one TOML file, then the defaults.

The file is the one that readers use too (`LAZYDELTA_CONFIG`, or `--config`); the pipeline's are its
tables [ingest], [spark] and [sidecar]. Sidecars go where readers look (`delta.sidecar.directory`) unless
[sidecar] says otherwise. The environment spells `ingest.event_time` as
`LAZYDELTA_INGEST_EVENT_TIME`.
Contract: an unknown name and a value of the wrong type are errors that name it, wherever it stands.
Options that are tables (`options`, `properties`, …) are merged key by key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import get_args

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.settings import (
    CONFIG_VARIABLE,
    LOCATIONS_TABLE,
    PIPELINE_TABLES,
    build_settings,
    read_settings_file,
)
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.names import sidecar_folder
from lazydelta.spark.config import IngestConfig

_PREFIX = "LAZYDELTA_"
_READERS_TABLES = ("delta", LOCATIONS_TABLE)
_SECTIONS: dict[str, type[msgspec.Struct]] = {"ingest": IngestConfig, "sidecar": SidecarConfig}
_INGEST_FIELDS = tuple(name for name in IngestConfig.__struct_fields__ if name not in ("spark", "sidecar"))
_NAMES = {"ingest": _INGEST_FIELDS, "sidecar": SidecarConfig.__struct_fields__}
_SIZE = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?b?)\s*$", re.IGNORECASE)
_SIZE_UNITS: dict[str, int] = {"": 1, "b": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for suffix, base in (("", 1000), ("b", 1000), ("ib", 1024), ("i", 1024))
}


def load_config(
    given: Mapping[str, object],
    *,
    environment: Mapping[str, str],
    spark: Mapping[str, str] | None = None,
    config_file: str | None = None,
) -> IngestConfig:
    """The effective settings; `given` are fields of `IngestConfig` whose None means not given."""
    path = config_file or environment.get(CONFIG_VARIABLE)
    tree = _checked_tables(read_settings_file(path), path) if path else {}
    where = path or "the settings file"
    arguments = {name: value for name, value in given.items() if value is not None}
    ingest = _merged(
        "ingest",
        (_table(tree, "ingest", where), where),
        (_from_environment("ingest", environment), "the environment"),
        (arguments, "the arguments"),
    )
    sidecar = _merged(
        "sidecar",
        (_table(tree, "sidecar", where), where),
        (_from_environment("sidecar", environment), "the environment"),
    )
    sidecar.setdefault("folder", _readers_folder(ingest, environment, path))
    settings = _spark_settings(_table(tree, "spark", where), where)
    settings |= _spark_settings(spark or {}, "--spark-conf")
    return msgspec.structs.replace(
        IngestConfig(), spark=settings, sidecar=msgspec.structs.replace(SidecarConfig(), **sidecar), **ingest
    )


def size_bytes(text: str) -> int:
    """`128MB`, `64 MiB` or `1000` as bytes; MB are decimal."""
    found = _SIZE.match(text)
    if found is None:
        raise ValueError(text)
    return round(float(found[1]) * int(_SIZE_UNITS[found[2].lower()]))


def _checked_tables(tree: dict[str, object], path: str) -> dict[str, object]:
    for name in tree:
        if name not in (*PIPELINE_TABLES, *_READERS_TABLES):
            raise _unknown(name, path, (*_READERS_TABLES, *PIPELINE_TABLES))
    return tree


def _readers_folder(ingest: Mapping[str, object], environment: Mapping[str, str], path: str | None) -> str:
    """Where readers with the same settings look for sidecars."""
    options = ingest.get("storage_options")
    assert options is None or isinstance(options, dict), "it was typed"
    variables = {**environment, CONFIG_VARIABLE: path} if path else environment
    return sidecar_folder(build_settings(options, environment=variables).sidecar_directory)


def _table(tree: Mapping[str, object], name: str, where: str) -> dict[str, object]:
    table = tree.get(name, {})
    if not isinstance(table, dict):
        raise InvalidRequestError(
            f"{name} is no table of settings", where, f"write [{name}] above its settings"
        )
    return table


def _from_environment(section: str, environment: Mapping[str, str]) -> dict[str, object]:
    prefix = f"{_PREFIX}{section.upper()}_"
    return {
        name.removeprefix(prefix).lower(): _read_text(section, name.removeprefix(prefix).lower(), value)
        for name, value in environment.items()
        if name.startswith(prefix)
    }


def _read_text(section: str, field: str, text: str) -> object:
    """A variable's text as the field's type; what cannot be read stays text and is refused later."""
    default = getattr(_SECTIONS[section](), field, None)
    if isinstance(default, dict):
        pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
        return {key.strip(): value for key, _, value in pairs}
    if isinstance(default, bool):
        return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower(), text)
    if isinstance(default, int) and re.fullmatch(r"\s*[0-9]+\s*", text):
        return int(text)
    return text


def _merged(section: str, *sources: tuple[Mapping[str, object], str]) -> dict[str, object]:
    """Values by field, later sources first in rank."""
    values: dict[str, object] = {}
    for source, where in sources:
        for name, value in source.items():
            if name not in _NAMES[section]:
                raise _unknown(f"{section}.{name}", where, [f"{section}.{one}" for one in _NAMES[section]])
            typed = _typed(section, name, value, where)
            before = values.get(name)
            values[name] = before | typed if isinstance(before, dict) and isinstance(typed, dict) else typed
    return values


def _typed(section: str, name: str, value: object, where: str) -> object:
    if name == "target_file_size" and isinstance(value, str):
        try:
            value = size_bytes(value)
        except ValueError:
            raise InvalidRequestError(
                f"ingest.{name} is {value!r}", where, "write a size such as 128MB"
            ) from None
    if isinstance(value, Mapping):
        value = {key: _plain(one) for key, one in _flat(value).items()}
    kind = next(field.type for field in msgspec.structs.fields(_SECTIONS[section]) if field.name == name)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        shown = "of another type" if isinstance(value, dict) else repr(value)  # it may hold a secret
        raise InvalidRequestError(
            f"{section}.{name} is {shown}", where, f"write {_wanted(kind, str(problem))}"
        ) from None


def _wanted(kind: object, said: str) -> str:
    """What a field takes, in words."""
    choices = [text for part in (kind, *get_args(kind)) for text in get_args(part) if isinstance(text, str)]
    if choices:
        return ", ".join(choices[:-1]) + f" or {choices[-1]}"
    expected = re.search(r"Expected `([^`]+)`", said)
    names = {"bool": "true or false", "int": "a whole number", "str": "text", "object": "a table of texts"}
    wanted = expected[1].removesuffix(" | null") if expected else "another value"
    return names.get(wanted, wanted)


def _spark_settings(given: Mapping[str, object], where: str) -> dict[str, str]:
    settings = {}
    for name, value in _flat(given).items():
        if not name.startswith("spark."):
            raise InvalidRequestError(
                f"{name} is no setting of Spark", where, f'they begin with spark.: "spark.{name}"'
            )
        if not isinstance(value, str | int | float | bool):
            raise InvalidRequestError(f"{name} is {value!r}", where, "write text, a number or a truth value")
        settings[name] = str(_plain(value))
    return settings


def _flat(tree: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Dotted names, as TOML's bare dotted keys become nested tables."""
    flat: dict[str, object] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _plain(value: object) -> object:
    """Numbers and truth values as Spark spells them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _unknown(name: str, where: str, known: tuple[str, ...] | list[str]) -> InvalidRequestError:
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
    return InvalidRequestError(f"there is no setting {name}", where, hint)
