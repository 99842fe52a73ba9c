"""Targets of the stats sidecar: manifests, parts, delta files, plain sidecars.

An input begins with a letter: `d` for damage, which must go unnoticed but for a fallback, and `f` for a
forgery with checksums put right, which may lie but must not do harm.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzz import seeds as good
from fuzz.mutate import bytes_changed, footer_of, json_changed, parquet_changed
from fuzz.reading import ALL, WrongAnswerError, expect_equal, live, names_like, opened
from fuzz.retype import retyped
from fuzz.target import Target
from lazydelta.sidecar.format.footer_seal import sealed

_FILTERS = (None, "value > 3", "date >= '2026-02-05'", "device_id like 'd00%' and count < 8")
_ORDERS = ({"limit": ALL}, {"order": "asc"}, {"order": "desc", "limit": 3}, {"limit": ALL}, {})
DAMAGE, FORGERY = b"d", b"f"


class _SidecarTarget:
    """A file of the sidecar that is exchanged."""

    name: str
    table = "sidecar"
    words: tuple[str, ...]
    damage_share = 0.3
    change = staticmethod(parquet_changed)

    def prepare(self, seeds: Path) -> None:
        """A table, its sidecar, and what it holds by the log alone."""
        self.files = good.load(seeds, self.table)
        self.names = [name for name in names_like(self.files, *self.words) if self.is_mine(name)]
        self.truth = {where: live(opened(dict(self.files)), where) for where in _FILTERS}

    def is_mine(self, name: str) -> bool:
        """Whether the file is one that this target changes."""
        return bool(name)

    def judge(self, files: dict[str, bytes], *, is_damage: bool, number: int) -> None:
        """Damage changes no answer; of a forgery any answer will do."""
        table = opened(files, has_sidecar=True)
        where, how = _FILTERS[number % len(_FILTERS)], _ORDERS[number // 4 % len(_ORDERS)]
        found = live(table, where, may_repeat=not is_damage, **how)
        if is_damage and how.get("limit") in (None, ALL):
            expect_equal(found, self.truth[where])
        elif is_damage and not set(found) <= set(self.truth[where]):
            raise WrongAnswerError(f"{found} are not all live")
        if number % 8 == 0:
            table.get_stats_for_files([path for path, _ in found[:3]], ["value", "device_id", "count"])


class _Manifests(_SidecarTarget):
    """`vN.manifest.json`."""

    name, share, words = "manifest", 1, ("_lazy/", ".manifest.json")
    modules = ("sidecar/format/manifest.py", "sidecar/format/folder.py", "sidecar/format/binding.py")

    def make(self, dice: Random) -> bytes:
        """Bytes as they come, or JSON under a checksum of its own."""
        body = self.files[self.names[0]]
        if dice.random() < 0.3:
            return DAMAGE + bytes_changed(body, dice)
        told = json.loads(body)
        del told["crc32"]
        keys = ("parts", "row_groups", "file", "removed", "bounds", "num_rows", "order_column", "stats_file")
        text = json_changed(told, dice, keys).encode("utf-8", "surrogatepass").removesuffix(b"}")
        return FORGERY + b'%s,"crc32":%d}' % (text, zlib.crc32(text))

    def run(self, body: bytes) -> None:
        """With the rest of the sidecar as it is."""
        files = self.files | {self.names[0]: body[1:]}
        self.judge(files, is_damage=body[:1] == DAMAGE, number=len(body))


class _Parts(_SidecarTarget):
    """`vN-BUILD.PPPPP.parquet`."""

    name, share, words = "part", 1, ("_lazy/", ".parquet")
    modules = (
        "sidecar/format/part_reader.py",
        "sidecar/format/tier_file.py",
        "sidecar/read/footer_pruning.py",
    )

    def is_mine(self, name: str) -> bool:
        """Delta files have a target of their own."""
        return ".delta." not in name

    def make(self, dice: Random) -> bytes:
        """The number of the part, then its bytes; those of a forgery are told in the manifest as they are."""
        at = dice.randrange(len(self.names))
        kind = DAMAGE if dice.random() < self.damage_share else FORGERY
        return kind + bytes([at]) + self.change(self.files[self.names[at]], dice)

    def run(self, body: bytes) -> None:
        """With its manifest, or found without one."""
        name = self.names[body[1] % len(self.names)]
        files = self.files | {name: body[2:]}
        is_damage = body[:1] == DAMAGE
        if not is_damage:
            files = self.forged(files, name)
        self.judge(files, is_damage=is_damage, number=len(body))

    def forged(self, files: dict[str, bytes], name: str) -> dict[str, bytes]:
        """A manifest that vouches for the part, or no manifest at all."""
        (manifest,) = names_like(files, "_lazy/", ".manifest.json")
        body = files[name]
        if len(body) % 4 == 0:
            files[name] = _resealed(body)
            del files[manifest]
            return files
        told = json.loads(files[manifest])
        del told["crc32"]
        for part in told["parts"]:
            if name.endswith(part["file"]):
                length = min(int.from_bytes(body[-8:-4], "little") + 8, len(body))
                part |= {
                    "size_bytes": len(body),
                    "footer_bytes": length,
                    "footer_crc32": zlib.crc32(body[-length:]),
                }
        text = json.dumps(told).encode().removesuffix(b"}")
        files[manifest] = b'%s,"crc32":%d}' % (text, zlib.crc32(text))
        return files


class _DeltaFiles(_SidecarTarget):
    """`vC_V.delta.parquet`."""

    name, share, table, words = "delta-file", 1, "deltas", ("_lazy/", ".delta.parquet")
    modules = ("sidecar/format/delta_file.py", "sidecar/find/delta_chain.py", "sidecar/read/delta_rows.py")

    def make(self, dice: Random) -> bytes:
        """Bytes as they come, or under a seal of their own."""
        changed = self.change(self.files[self.names[0]], dice)
        return DAMAGE + changed if dice.random() < self.damage_share else FORGERY + _resealed(changed)

    def run(self, body: bytes) -> None:
        """In the place of the commits that it stands for."""
        files = self.files | {self.names[0]: body[1:]}
        self.judge(files, is_damage=body[:1] == DAMAGE, number=len(body))


class _PlainSidecars(_SidecarTarget):
    """The seeds' `vN.parquet`, which has no checksum and proves itself by what it says."""

    name, share, table, words = "plain-sidecar", 1, "plain", ("_sidecars/", ".parquet")
    modules = ("sidecar/find/plain.py", "sidecar/format/foreign_part.py", "sidecar/format/footer_ranges.py")

    def make(self, dice: Random) -> bytes:
        """Its bytes."""
        return self.change(self.files[self.names[0]], dice)

    def run(self, body: bytes) -> None:
        """Nobody can tell a lie in it from the truth."""
        self.judge(self.files | {self.names[0]: body}, is_damage=False, number=len(body))


class _PartTypes(_Parts):
    """The same with columns that are something else."""

    name, damage_share, change = "part-types", 0.05, staticmethod(retyped)


class _DeltaTypes(_DeltaFiles):
    """Likewise."""

    name, damage_share, change = "delta-types", 0.05, staticmethod(retyped)


class _PlainTypes(_PlainSidecars):
    """Likewise."""

    name, change = "plain-types", staticmethod(retyped)


def _resealed(body: bytes) -> bytes:
    """The file with a right checksum of its footer, where there is anything to seal."""
    if len(body) < 12 or int.from_bytes(body[-8:-4], "little") + 8 > len(body):
        return body
    pages, _ = footer_of(body)
    return sealed(pages + body[len(pages) :])


TARGETS: tuple[Callable[[], Target], ...] = (
    _Manifests,
    _Parts,
    _DeltaFiles,
    _PlainSidecars,
    _PartTypes,
    _DeltaTypes,
    _PlainTypes,
)
