"""The tree of `serve.toml` turned into its sections; what does not fit is told by its key.

Contract: an error names the whole key (`tables.telemetry.ulr`) and what may stand there; it shows no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.config_parts import (
    ClientLimits,
    ClientPart,
    ConfigFile,
    FunctionPart,
    LimitsPart,
    Reference,
    ServerPart,
    TablePart,
    TlsPart,
    Value,
    WhoLinks,
)

_SECTIONS = ("server", "tls", "limits", "clients", "tables", "functions")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`\Z", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(.*?)`, got `(.*?)`\Z")
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
    "null": "nothing",
}
Part = TypeVar("Part", bound=msgspec.Struct)
Tree = Mapping[str, Any]  # Any: as TOML has it


class ConfigKeys:
    """Reads one tree."""

    def __init__(self, path: str) -> None:
        self._path = path

    def file(self, tree: Tree) -> ConfigFile:
        """All of it."""
        for name in tree:
            if name not in _SECTIONS:
                raise self._unknown("", name, _SECTIONS)
        tls = self._table(tree, "tls")
        return ConfigFile(
            server=self._part(self._table(tree, "server"), ServerPart, "server"),
            tls=self._part(tls, TlsPart, "tls") if "tls" in tree else None,
            limits=self._part(self._table(tree, "limits"), LimitsPart, "limits"),
            clients=[self._client(number, part) for number, part in enumerate(self._clients(tree))],
            tables={name: self._served(name, part) for name, part in self._table(tree, "tables").items()},
            functions={
                name: self._part(part, FunctionPart, f"functions.{name}")
                for name, part in self._table(tree, "functions").items()
            },
        )

    def wrong(self, key: str, what: str, fix: str) -> InvalidRequestError:
        """The error for a key."""
        return InvalidRequestError(f"{key}: {what}", self._path, fix)

    def _table(self, tree: Tree, name: str) -> Tree:
        found = tree.get(name, {})
        if not isinstance(found, dict):
            raise self.wrong(name, "it is no table", f"write [{name}]")
        return found

    def _clients(self, tree: Tree) -> list[Any]:  # Any: as TOML has it
        found = tree.get("clients", [])
        if not isinstance(found, list):
            raise self.wrong("clients", "it is no list of tables", "write [[clients]]")
        return found

    def _client(self, number: int, part: Any) -> ClientPart:  # Any: as TOML has it
        name = part.get("name") if isinstance(part, dict) else None
        return self._part(
            part, ClientPart, f"clients.{name}" if isinstance(name, str) else f"clients[{number}]"
        )

    def _served(self, name: str, part: Any) -> TablePart:  # Any: as TOML has it
        key = f"tables.{name}"
        options = part.get("storage_options") if isinstance(part, dict) else None
        for option, value in (options if isinstance(options, dict) else {}).items():
            try:
                msgspec.convert(value, Value)  # by itself, so that its key is told
            except msgspec.ValidationError as problem:
                raise self._told(problem, f"{key}.storage_options.{option}", Reference) from problem
        return self._part(part, TablePart, key)

    def _part(self, tree: object, kind: type[Part], key: str) -> Part:
        try:
            return msgspec.convert(tree, kind)
        except msgspec.ValidationError as problem:
            raise self._told(problem, key, kind) from problem

    def _told(
        self, problem: msgspec.ValidationError, key: str, kind: type[msgspec.Struct]
    ) -> InvalidRequestError:
        text, _, place = str(problem).partition(" - at `$")
        key += place.removesuffix("`")
        kind = ClientLimits if place.startswith(".limits") else kind
        if found := _UNKNOWN.match(text):
            return self._unknown(key, found[1], kind.__struct_fields__)
        if found := _MISSING.match(text):
            return self.wrong(f"{key}.{found[1]}", "it is missing", f"give {found[1]} in [{key}]")
        if found := _EXPECTED.match(text):
            wanted = " or ".join(_WORDS.get(one, one) for one in found[1].split(" | ") if one != "null")
            return self.wrong(key, f"it is {_WORDS.get(found[2], found[2])}, not {wanted}", f"give {wanted}")
        if text.startswith("Invalid enum value"):
            words = " or ".join(f'"{word}"' for word in get_args(WhoLinks))
            return self.wrong(key, "it is none of what there is", f"give {words}")
        return self.wrong(key, text, "see docs/serve.md for what may stand there")

    def _unknown(self, key: str, name: str, known: Iterable[str]) -> InvalidRequestError:
        close = get_close_matches(name, list(known), 1)
        hint = f"did you mean {close[0]}? " if close else ""
        whole = f"{key}.{name}" if key else name
        return self.wrong(whole, "there is no such key", f"{hint}there are: {', '.join(known)}")
