"""Targets in the log: commits, the hint, checksums, schemas, checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec

from fuzz import seeds as good
from fuzz.memory_storage import MemoryStorage
from fuzz.mutate import bytes_changed, json_changed, parquet_changed
from fuzz.reading import ALL, WrongAnswerError, expect_equal, live, names_like, opened
from fuzz.retype import retyped
from fuzz.target import Target
from lazydelta.log import find_segment
from lazydelta.protocol.schema import arrow_schema, parse_schema

Change = Callable[[bytes, Random], bytes]
_FILTERS = ("value > 3", "date = '2026-02-05'", "device_id like 'd00%' and count < 8", "ts is null")
_KEYS = ("add", "remove", "metaData", "protocol", "commitInfo", "sidecar", "path", "size", "stats", "version")


class _Commits:
    """One commit of three, by bytes or line by line."""

    name, share = "commits", 3
    modules = (
        "log/commits.py",
        "log/lines.py",
        "log/file_rows.py",
        "protocol/actions.py",
        "protocol/paths.py",
    )

    def prepare(self, seeds: Path) -> None:
        """Every commit is a seed; each stands in for its own place."""
        self.files = good.load(seeds, "commits")
        self.names = names_like(self.files, ".json")

    def make(self, dice: Random) -> bytes:
        """The number of the commit, then its text."""
        number = dice.randrange(len(self.names))
        body = self.files[self.names[number]]
        if dice.random() < 0.4:
            return bytes([number]) + bytes_changed(body, dice)
        lines = body.decode().splitlines()
        at = dice.randrange(len(lines))
        lines[at] = json_changed(json.loads(lines[at]), dice, _KEYS)
        return bytes([number]) + "\n".join(lines).encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """Whatever the order of reading, the same files."""
        files = self.files | {self.names[body[0] % len(self.names)]: body[1:]}
        table = opened({name: text for name, text in files.items() if body[-1] % 2 or ".crc" not in name})
        _ = table.schema
        found = live(table, strategy="reverse", limit=ALL)
        if len(body) % 4 == 1:
            expect_equal(live(table, strategy="forward"), found)
        if len(body) % 4 == 2 and not set(live(table, _FILTERS[len(body) // 4 % 4], limit=ALL)) <= set(found):
            raise WrongAnswerError("a filter found more")
        if len(body) % 16 == 0:
            list(table.history())
            table.get_stats_for_files([path for path, _ in found[:2]], ["value", "device_id"])


class _Hint:
    """`_last_checkpoint`, which may say anything and changes nothing."""

    name, share = "hint", 30
    modules = ("log/segment.py", "protocol/names.py")

    def prepare(self, seeds: Path) -> None:
        """A table with a checkpoint."""
        self.files = good.load(seeds, "checkpoint-v1")
        self.truth = live(opened(dict(self.files)))
        self.segment = find_segment(MemoryStorage(dict(self.files)))
        self.hint = self.files["_delta_log/_last_checkpoint"]

    def make(self, dice: Random) -> bytes:
        """JSON, or something like it."""
        if dice.random() < 0.4:
            return bytes_changed(self.hint, dice)
        about = json.loads(self.hint) | {"parts": 2, "checksum": "x", "v2Checkpoint": {"path": "a"}}
        return json_changed(about, dice, ("version", "size")).encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """The same segment as ever, and so the same files."""
        files = self.files | {"_delta_log/_last_checkpoint": body}
        found = find_segment(MemoryStorage(files))
        expect_equal(msgspec.structs.replace(found, hint=self.segment.hint), self.segment)
        if len(body) % 32 == 0:
            expect_equal(live(opened(files), limit=ALL), self.truth)


class _Checksum:
    """A `.crc`, which tells protocol and metadata where it can be believed."""

    name, share = "crc", 3
    modules = ("log/state.py", "protocol/features.py")

    def prepare(self, seeds: Path) -> None:
        """A table with one."""
        self.files = good.load(seeds, "checkpoint-v1")
        (self.crc,) = names_like(self.files, ".crc")
        self.truth = live(opened(dict(self.files)))

    def make(self, dice: Random) -> bytes:
        """JSON, or something like it."""
        if dice.random() < 0.4:
            return bytes_changed(self.files[self.crc], dice)
        return json_changed(json.loads(self.files[self.crc]), dice, _KEYS).encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """It may change what the columns are, never which files there are."""
        table = opened(self.files | {self.crc: body})
        _ = table.schema, table.info()
        if len(body) % 16 == 0:
            expect_equal(live(table, limit=ALL), self.truth)


class _Schemas:
    """`schemaString`, which every filter and every row goes by."""

    name, share = "schema", 90
    modules = ("protocol/schema.py",)

    def prepare(self, seeds: Path) -> None:
        """A schema with every kind of type in it."""
        del seeds
        kinds = ["long", "string", "decimal(10,2)", "timestamp_ntz", "void", "variant"]
        nested = {"type": "struct", "fields": [_field("a", "double"), _field("b.c", "binary")]}
        types = [*kinds, nested, {"type": "array", "elementType": nested, "containsNull": True}]
        types.append({"type": "map", "keyType": "string", "valueType": nested, "valueContainsNull": False})
        self.schema = {"type": "struct", "fields": [_field(f"c{at}", kind) for at, kind in enumerate(types)]}

    def make(self, dice: Random) -> bytes:
        """JSON, or something like it."""
        if dice.random() < 0.3:
            return bytes_changed(json.dumps(self.schema).encode(), dice)
        keys = ("type", "fields", "elementType", "keyType", "metadata", "name", "nullable")
        return json_changed(self.schema, dice, keys).encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """A schema that is taken has Arrow's types, and its fields can be asked for."""
        parsed = parse_schema(body.decode("utf-8", "replace"), "the fuzzer")
        arrow_schema(parsed)
        for path, leaf in parsed.leaves():
            _ = path, leaf.physical_name, leaf.is_collated, leaf.was_float


class _Checkpoints:
    """The Parquet files of a checkpoint, and JSON where its top level is."""

    def __init__(
        self, name: str, kinds: tuple[str, ...], share: int, change: Change = parquet_changed
    ) -> None:
        """`kinds`: of the checkpoint writer's."""
        self.name, self.share, self.kinds, self.change = name, share, kinds, change
        self.modules = (
            "log/checkpoint.py",
            "log/parquet_part.py",
            "log/footer_bounds.py",
            "log/file_rows.py",
        )

    def prepare(self, seeds: Path) -> None:
        """A table for each kind; the files of its checkpoint are what changes."""
        self.tables = [good.load(seeds, f"checkpoint-{kind}") for kind in self.kinds]
        self.places = [
            (number, name)
            for number, files in enumerate(self.tables)
            for name in names_like(files, ".checkpoint.")
        ]

    def make(self, dice: Random) -> bytes:
        """The number of the file, then its bytes."""
        at = dice.randrange(len(self.places))
        number, name = self.places[at]
        body = self.tables[number][name]
        if name.endswith(".parquet"):
            return bytes([at]) + self.change(body, dice)
        lines = body.decode().splitlines()
        line = dice.randrange(len(lines))
        lines[line] = json_changed(json.loads(lines[line]), dice, _KEYS)
        return bytes([at]) + "\n".join(lines).encode("utf-8", "surrogatepass")

    def run(self, body: bytes) -> None:
        """With its statistics and without; protocol and metadata out of it, too."""
        number, name = self.places[body[0] % len(self.places)]
        files = self.tables[number] | {name: body[1:]}
        table = opened({name: text for name, text in files.items() if len(body) % 3 or ".crc" not in name})
        where = (None, *_FILTERS)[len(body) % 5]
        found = live(table, where, may_repeat=True, limit=ALL if len(body) % 8 else None)
        if len(body) % 16 == 0:
            table.get_stats_for_files([path for path, _ in found[:3]], ["value", "device_id", "count"])


def _field(name: str, kind: object) -> dict[str, object]:
    mapping = {"delta.columnMapping.physicalName": f"p-{name}", "delta.columnMapping.id": 1}
    changes = [{"fromType": "float", "toType": "double"}]
    return {
        "name": name,
        "type": kind,
        "nullable": True,
        "metadata": mapping | {"delta.typeChanges": changes},
    }


TARGETS: tuple[Callable[[], Target], ...] = (
    _Commits,
    _Hint,
    _Checksum,
    _Schemas,
    lambda: _Checkpoints("checkpoint-v1", ("v1", "v1-multipart"), 1),
    lambda: _Checkpoints("checkpoint-v2", ("v2-parquet", "v2-json", "classic-named-v2"), 1),
    lambda: _Checkpoints("checkpoint-types", ("v1", "v1-multipart", "v2-parquet"), 1, retyped),
)
