"""Parts that a build of the same plan left behind when it was killed: checked, and taken over.

Why: at tens of millions of files a build takes long, and executors and drivers die. Contract: parts carry an
id that follows from the plan (checkpoint, layout, configuration, ranges), so those found under it are of the
same plan. A part is taken over only where it is the whole of its range: its footer says so, every page
matches its checksum, its rows and their bytes are as many as the checkpoint has there. Parts are read by
Spark's tasks. What is damaged, cut short, or so old that the cleaner may take it is written anew.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lazydelta.errors import LazyDeltaError
from lazydelta.sidecar.format.folder import ListedFile, list_sidecars
from lazydelta.sidecar.format.footer_seal import TRAILER_BYTES, is_intact, sealed_length
from lazydelta.sidecar.format.names import Tier, part_name
from lazydelta.sidecar.format.part_writer import FACTS_KEY, PartFacts, WrittenPart, written_part
from lazydelta.sidecar.format.zones import ZoneGatherer
from lazydelta.spark.sidecar_ranges import RANGE, Boundary
from lazydelta.spark.sidecar_task import REPORT_COLUMN, PartReport, PartTask
from lazydelta.storage import Storage, open_storage
from lazydelta.upkeep.build_plan import BuildPlan
from lazydelta.upkeep.clean import GRACE_HOURS
from lazydelta.upkeep.clean_plan import HOUR_MS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBER = "number"
_AGE_MAX_MS = GRACE_HOURS * HOUR_MS / 2  # after the whole of it parts that no manifest names may go


def work_id(plan: BuildPlan, task: PartTask, firsts: Sequence[Boundary]) -> str:
    """The id of the parts: the same for the same plan, another where a sidecar is to be replaced."""
    facts = msgspec.structs.replace(task.facts, build="")
    what = [facts, task.layout.schema_hash, task.layout.order_column, task.config, task.shape, firsts]
    return hashlib.sha256(msgspec.json.encode([*what, plan.stale_build])).hexdigest()[:16]


def parts_left_behind(storage: Storage, task: PartTask) -> list[int]:
    """Numbers of the parts that lie there under this id."""
    oldest = time.time() * 1000 - _AGE_MAX_MS
    files = [
        file
        for file in list_sidecars(storage, task.config.folder).parts.values()
        if file.parsed.build == task.facts.build and file.info.modified_ms > oldest
    ]
    tiers = [Tier.INDEX, Tier.STATS] if task.shape.is_tiered else [None]
    return sorted(number for number in {_number(file) for file in files} if _has(files, number, tiers))


def taken_over(
    spark: SparkSession, rows: DataFrame, task: PartTask, numbers: Sequence[int]
) -> dict[int, PartReport]:
    """By range those of these parts that need not be written again; `rows` know their range."""
    from pyspark.sql import functions as fn

    counted = rows.groupBy(RANGE).agg(fn.count("*").alias("n"), fn.sum("size").alias("bytes")).collect()
    wanted = {row[RANGE]: (row["n"], row["bytes"]) for row in counted}

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = open_storage(task.url, task.settings)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                report = checked_part(storage, task, number)
                if report is not None:
                    told = msgspec.json.encode(report).decode()
                    yield pa.RecordBatch.from_pydict({_NUMBER: [number], REPORT_COLUMN: [told]})

    schema = f"{_NUMBER} bigint, {REPORT_COLUMN} string"
    frame = spark.createDataFrame([(number,) for number in numbers], f"{_NUMBER} bigint")
    found = frame.repartition(len(numbers)).mapInArrow(check, schema).collect()
    return whole_ranges(
        {row[0]: msgspec.json.decode(row[1], type=PartReport) for row in found}, wanted, task.task_count
    )


def whole_ranges(
    found: Mapping[int, PartReport], wanted: Mapping[int, tuple[int, int]], range_count: int
) -> dict[int, PartReport]:
    """Of parts by their numbers those that are all of their range, one for each."""
    kept: dict[int, PartReport] = {}
    for number, report in sorted(found.items()):
        part, of_range = report.part, number % range_count
        if of_range not in kept and wanted.get(of_range) == (part.num_rows, part.total_bytes):
            kept[of_range] = report
    return kept


def checked_part(storage: Storage, task: PartTask, number: int) -> PartReport | None:
    """The part as its writer reported it, or None where it is not what it must be."""
    try:
        made = _read_back(storage, task, number)
    except (LazyDeltaError, OSError, pa.ArrowException, msgspec.DecodeError, KeyError, ValueError):
        return None
    return PartReport(part=made.part, row_groups=tuple(made.row_groups))


def _read_back(storage: Storage, task: PartTask, number: int) -> WrittenPart:
    facts, layout = msgspec.structs.replace(task.facts, number=number), task.layout
    tiers = [Tier.INDEX, Tier.STATS] if task.shape.is_tiered else [None]
    names = [part_name(facts.version, facts.build, number, tier) for tier in tiers]
    bodies = [storage.get(f"{task.config.folder}/{name}") for name in names]
    files = [_opened(body, facts, task) for body in bodies]
    zones, total_bytes = ZoneGatherer(layout), 0
    for at in range(files[0].num_row_groups):
        halves = [file.read_row_group(at) for file in files]
        columns = {name: half.column(name) for half in halves for name in half.schema.names}
        rows = pa.Table.from_arrays([columns[name] for name in layout.schema.names], schema=layout.schema)
        zones.add(rows)
        total_bytes += pc.sum(rows.column("size"), min_count=0).as_py()
    return written_part(names, bodies, facts=facts, layout=layout, zones=zones, total_bytes=total_bytes)


def _opened(body: bytes, facts: PartFacts, task: PartTask) -> pq.ParquetFile:
    length = sealed_length(body[-TRAILER_BYTES:], len(body))
    if length is None or not is_intact(body[-length:]):
        raise ValueError("the footer is not as written")
    file = pq.ParquetFile(pa.BufferReader(body), page_checksum_verification=True)
    told = msgspec.json.decode(file.metadata.metadata[FACTS_KEY], type=PartFacts)
    wanted = msgspec.structs.replace(
        facts, schema_hash=task.layout.schema_hash, order_column=task.layout.order_column
    )
    if told != wanted:
        raise ValueError("the part is of another plan")
    return file


def _number(file: ListedFile) -> int:
    assert file.parsed.number is not None, "the name of a part has a number"
    return file.parsed.number


def _has(files: Sequence[ListedFile], number: int, tiers: Sequence[Tier | None]) -> bool:
    return {file.parsed.tier for file in files if file.parsed.number == number} == set(tiers)
