"""A table of any number of files that follows from its description: every object of it, made when asked for.

Why: a billion files cannot be laid out here, and the reader does not need them: it reads the tail of the
log, the manifest and the parts that a query needs. Contract: the same spec gives the same rows. What is small
(commits, checksums, the checkpoint's top file, the manifest) is written to a folder at once. Parts of the
stats sidecar are made one by one, by the writer that the builders use, and filled up to the size that the
manifest told (`padded`); the newest, and all of a table whose manifest lists its row groups, are made at once
and are as long as they are. Files come at one rate: a table of more files is a longer history, and its last
hour stays as it is. Sums of a huge table's bytes are those of a sample, scaled up. The checkpoint's own files
of adds are told, and not there.
"""

from __future__ import annotations

import copy
import hashlib
import math
import shutil
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from bench.checkpoint import listed_sidecar, sidecar_name, write_top_level
from bench.files import Files
from bench.generate import write_commit_of_checkpoint, write_tail
from bench.history import History, plan
from bench.ladder_tables import answers
from bench.scale.padded import padded
from bench.scale.part_rows import part_rows
from bench.spec import CHECKPOINT_VERSION, TableSpec, compact, metadata, protocol
from bench.totals import FileTotals
from lazydelta import limits
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.protocol.schema import table_schema
from lazydelta.sidecar import (
    LAZY_FOLDER,
    Binding,
    BoundFile,
    Manifest,
    Part,
    PartFacts,
    PartShape,
    SidecarConfig,
    SidecarLayout,
    WrittenPart,
    ZoneBounds,
    assemble,
    encode_manifest,
    layout_of,
    manifest_name,
    part_name,
    write_part,
)
from lazydelta.sidecar.format.layout import configured_stats_paths
from lazydelta.sidecar.format.part_encoding import footer_length
from lazydelta.sidecar.format.part_writer import rows_per_part
from lazydelta.sidecar.format.zones import ZoneGatherer

LOG = "_delta_log"
DEFAULT = SidecarConfig()
FILES_A_DAY = 120_000
_FILES_A_CHECKPOINT_PART = 1_000_000
_CHECKPOINT_PART_BYTES = 128 << 20  # as told; no such file is there
_SAMPLE = 100_000
_HOUR = FILES_A_DAY // 24
_ANSWERED_FILES = 40 * FILES_A_DAY  # the newest: longer than any query asks for
_VALUES = ("100.0", "1000.0")  # no file has less or more
_SLACK = 1.02  # of a part's size over that of the one that was measured
_FOOTER_SLACK_BYTES = 2_048
_HEAD_BYTES = 64 * limits.KIB


def simulated_spec(files: int) -> TableSpec:
    """The table of a size: one rate, a V2 checkpoint, and the tail of the ladder's."""
    return TableSpec(
        files=files,
        event_hour=True,
        date_partition=False,
        time_settings=True,
        stats_width=2,
        checkpoint="v2-parquet",
        checkpoint_parts=math.ceil(files / _FILES_A_CHECKPOINT_PART),
        days=max(1, round(files / FILES_A_DAY)),
        tail_commits=10,
        tail_adds=100,
        tail_removes=20,
        tail_dv_updates=5,
        tail_readds=1,
        tail_minutes=50,
    )


def written_table(spec: TableSpec, folder: Path, *, anew: bool = False) -> SimulatedTable:
    """The table of a spec: what is made at once in the folder, its description, written last, beside it."""
    table = SimulatedTable(spec, folder / _short_name(spec))
    about = folder / f"{_short_name(spec)}.json"
    if anew or not about.exists():
        about.unlink(missing_ok=True)
        shutil.rmtree(table.folder, ignore_errors=True)
        table.write()
        about.write_bytes(msgspec.json.encode(spec))
    return table


def described_tables(folder: Path) -> list[SimulatedTable]:
    """All tables that lie in a folder."""
    specs = [msgspec.json.decode(path.read_bytes(), type=TableSpec) for path in sorted(folder.glob("*.json"))]
    return [SimulatedTable(spec, folder / _short_name(spec)) for spec in specs]


def _short_name(spec: TableSpec) -> str:
    """Of a folder: all that a spec says may be too long for one."""
    return f"files-{spec.files}-{hashlib.sha256(spec.name.encode()).hexdigest()[:12]}"


class SimulatedTable:
    """The objects of a table; `folder` gets those that are made at once."""

    def __init__(self, spec: TableSpec, folder: Path, config: SidecarConfig = DEFAULT) -> None:
        self.spec = spec
        self.folder = folder
        self.config = config
        self.build = hashlib.sha256(spec.name.encode()).hexdigest()[:16]

    @property
    def path(self) -> Path:
        """Where it lies, as far as it does."""
        return self.folder

    @cached_property
    def answers(self) -> dict[str, int]:
        """How many files each query must find."""
        newest = self.spec.files + self.spec.tail_commits * self.spec.tail_adds
        numbers = np.arange(max(0, self.spec.files - _ANSWERED_FILES), newest)
        return answers(self.spec, numbers[~np.isin(numbers, list(self.history.removed))])

    @cached_property
    def history(self) -> History:
        """What the tail does."""
        return plan(self.spec)

    @cached_property
    def layout(self) -> SidecarLayout:
        """Of the parts."""
        schema = table_schema(self._metadata, "simulated")
        paths = configured_stats_paths(self._metadata, schema)
        return layout_of(self._metadata, schema, stats_paths=paths, time_column=None)

    @cached_property
    def part_count(self) -> int:
        """How many parts the stats sidecar has."""
        return math.ceil(self.spec.files / self._shape.rows)

    def part_name(self, number: int) -> str:
        """The name of a part, below the table."""
        return f"{LAZY_FOLDER}/{part_name(CHECKPOINT_VERSION, self.build, number, None)}"

    def write(self) -> None:
        """Write what is made at once into the folder; the manifest comes last."""
        log = self.folder / LOG
        (self.folder / LAZY_FOLDER).mkdir(parents=True, exist_ok=True)
        write_commit_of_checkpoint(self.spec, log)
        write_tail(self.spec, log, self.history, copy.deepcopy(self._totals))
        self._write_checkpoint(log)
        written = {n: self._store(n) for n in range(len(self.parts_to_make), self.part_count)}
        self._manifest_path.write_bytes(encode_manifest(self._manifest(written)))

    def part_body(self, number: int) -> bytes:
        """The bytes of a part that the manifest tells the size of before it is made."""
        assert number in self.parts_to_make
        return padded(self._written(number).body, size=self.made_size, footer_bytes=self._footer_bytes)

    @cached_property
    def parts_to_make(self) -> range:
        """The numbers of the parts that are made when they are asked for."""
        group_count = math.ceil(self.spec.files / self.config.row_group_rows)
        return range(0 if group_count <= limits.MANIFEST_ROW_GROUPS_MAX else self.part_count - 1)

    @property
    def made_size(self) -> int:
        """The size of each of them."""
        return int(self._measured[0] * _SLACK) + 2 * _FOOTER_SLACK_BYTES

    @property
    def manifest_bytes(self) -> int:
        """The size of the manifest, as it lies."""
        return self._manifest_path.stat().st_size

    @property
    def _manifest_path(self) -> Path:
        return self.folder / LAZY_FOLDER / manifest_name(CHECKPOINT_VERSION)

    def _write_checkpoint(self, log: Path) -> None:
        listed = [
            listed_sidecar(sidecar_name(self.spec, part), _CHECKPOINT_PART_BYTES)
            for part in range(self.spec.checkpoint_parts)
        ]
        top = write_top_level(self.spec, log, listed, actions=self.spec.files)
        size = self.spec.files + len(listed) + 3
        hint = {"version": CHECKPOINT_VERSION, "size": size, "sizeInBytes": top["sizeInBytes"]}
        # Delta leaves the list of files out of the hint where it is long.
        hint |= {"numOfAddFiles": self.spec.files, "v2Checkpoint": top | {"sidecarFiles": None}}
        (log / "_last_checkpoint").write_text(compact(hint))

    def _manifest(self, written: dict[int, WrittenPart]) -> Manifest:
        made = [(written[number].part, written[number].row_groups) for number in written]
        return assemble(
            version=CHECKPOINT_VERSION,
            build=self.build,
            layout=self.layout,
            parts=[*((self._entry(number), ()) for number in self.parts_to_make), *made],
            protocol=msgspec.convert(protocol(self.spec), Protocol),
            metadata=self._metadata,
            binding=self._binding,
        )

    # --- parts ----------------------------------------------------------------------------------------------

    def _numbers(self, number: int) -> np.ndarray:
        first = number * self._shape.rows
        return np.arange(first, min(first + self._shape.rows, self.spec.files))

    def _written(self, number: int) -> WrittenPart:
        facts = PartFacts(
            version=CHECKPOINT_VERSION,
            build=self.build,
            number=number,
            num_files=self.spec.files,
            table_id=self._metadata.id,
            binding=self._binding,
            parts=self.part_count,
            is_whole_build=True,
        )
        rows = part_rows(self.spec, self._numbers(number), self.layout)
        return write_part(
            rows.to_batches(), layout=self.layout, facts=facts, config=self.config, shape=self._shape
        )

    def _store(self, number: int) -> WrittenPart:
        made = self._written(number)
        (self.folder / self.part_name(number)).write_bytes(made.body)
        return made

    def _entry(self, number: int) -> Part:
        """A part that is not made yet: what bounds its rows follows from the first and the last of them."""
        numbers = self._numbers(number)
        zones = ZoneGatherer(self.layout)
        zones.add(part_rows(self.spec, np.concatenate([numbers[:1], numbers[-_HOUR:]]), self.layout))
        order = zones.part_range()
        return Part(
            file=part_name(CHECKPOINT_VERSION, self.build, number, None),
            build=self.build,
            size_bytes=self.made_size,
            footer_bytes=self._footer_bytes,
            schema_hash=self.layout.schema_hash,
            num_rows=len(numbers),
            num_row_groups=math.ceil(len(numbers) / self.config.row_group_rows),
            order_min=order.min,
            order_max=order.max,
            bounds=tuple(map(_with_values, zones.zone_bounds())),
            total_bytes=self._totals.size_bytes * len(numbers) // self.spec.files,
        )

    @cached_property
    def _shape(self) -> PartShape:
        numbers = np.arange(min(self.spec.files, self.config.row_group_rows))
        sample = part_rows(self.spec, numbers, self.layout)
        return rows_per_part(self.layout, sample.combine_chunks().to_batches()[0], self.config)

    @cached_property
    def _measured(self) -> tuple[int, int]:
        """Size and footer of a part like those that are not made yet."""
        body = self._written(self.part_count // 2).body
        return len(body), footer_length(body)

    @property
    def _footer_bytes(self) -> int:
        return self._measured[1] + _FOOTER_SLACK_BYTES

    # --- what binds it to the log ---------------------------------------------------------------------------

    @cached_property
    def _metadata(self) -> Metadata:
        return msgspec.convert(metadata(self.spec), Metadata)

    @cached_property
    def _binding(self) -> Binding:
        log = self.folder / LOG
        commit = log / f"{CHECKPOINT_VERSION:020d}.json"
        (top,) = log.glob(f"{CHECKPOINT_VERSION:020d}.checkpoint.*.parquet")
        return Binding(
            commit=_bound(commit),
            checkpoint=(_bound(top),),
            num_files=self.spec.files,
            total_bytes=self._totals.size_bytes,
        )

    @cached_property
    def _totals(self) -> FileTotals:
        """Sums at the checkpoint; of more files than a sample has, scaled up."""
        totals = FileTotals()
        step = max(1, self.spec.files // _SAMPLE)
        sample = Files(self.spec, np.arange(0, self.spec.files, step))
        totals.count(sample)
        times = self.spec.files / len(sample)
        totals.bin_files = (totals.bin_files * times).astype(np.int64)
        totals.bin_bytes = (totals.bin_bytes * times).astype(np.int64)
        totals.files = self.spec.files
        return totals


def _bound(path: Path) -> BoundFile:
    body = path.read_bytes()
    digest = hashlib.sha256(body[:_HEAD_BYTES]).hexdigest()
    return BoundFile(name=path.name, size_bytes=len(body), head_sha256=digest)


def _with_values(bounds: ZoneBounds) -> ZoneBounds:
    if bounds.path != ("value",):
        return bounds
    return msgspec.structs.replace(bounds, min=_VALUES[0], max=_VALUES[1])
