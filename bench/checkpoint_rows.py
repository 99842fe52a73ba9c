"""Checkpoint rows as Arrow, with the schema that Delta on Spark gives its checkpoints.

Contract: pure. A chunk holds the adds of some files in order, the tombstones that a table of that age has,
and nothing twice. The types are in `checkpoint_types`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from bench.actions import dv_size_bytes
from bench.checkpoint_types import DV, REMOVE, add_type, partition_type, stats_type
from bench.files import Files, as_double
from bench.fixed_text import Ints, digits, joined, strings
from bench.spec import DEAD_FILES_FROM, TODAY_US, TableSpec, metadata, protocol

# One tombstone for that many files: what a few days of retention leave in a table of this kind.
FILES_PER_TOMBSTONE = 1_000


def file_rows(spec: TableSpec, numbers: Ints, into: pa.Schema) -> pa.Table:
    """Rows of these files: each add, and behind some of them a tombstone."""
    files = Files(spec, numbers)
    adds = rows_with(into, add=add_array(files))
    # Where a file has a deletion vector, its key without one was removed.
    replaced = np.flatnonzero(files.base_generation)
    retired = np.flatnonzero(numbers % FILES_PER_TOMBSTONE == 0)
    dead = np.concatenate([numbers[replaced], numbers[retired] + DEAD_FILES_FROM])
    if not len(dead):
        return adds
    tombstones = rows_with(into, remove=remove_array(Files(spec, dead)))
    place = np.concatenate([np.arange(len(numbers)), replaced, retired])
    return pa.concat_tables([adds, tombstones]).take(np.argsort(place, kind="stable"))


def table_rows(spec: TableSpec, into: pa.Schema) -> pa.Table:
    """The protocol's and the metadata's row."""
    rows = [{"protocol": protocol(spec)}, {"metaData": _as_pairs(metadata(spec))}]
    return pa.Table.from_pylist(rows, schema=into)


def add_array(files: Files) -> pa.StructArray:
    """The struct column `add`."""
    kind, count = add_type(files.spec), len(files)
    made: dict[str, pa.Array] = {
        "path": strings(files.path_text()),
        "partitionValues": _partition_map(files),
        "size": pa.array(files.size),
        "modificationTime": pa.array(files.modified_ms),
        "dataChange": pa.array(np.zeros(count, dtype=bool)),
        "deletionVector": _dv_array(files),
    }
    if files.spec.stats != "parsed":
        made["stats"] = _stats_strings(files)
    if files.spec.stats != "json":
        made["partitionValues_parsed"] = _partitions_parsed(files)
        made["stats_parsed"] = _stats_parsed(files)
    arrays = [made[field.name] if field.name in made else pa.nulls(count, field.type) for field in kind]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def remove_array(files: Files) -> pa.StructArray:
    """The struct column `remove`."""
    count = len(files)
    made: dict[str, pa.Array] = {
        "path": strings(files.path_text()),
        "deletionTimestamp": pa.array(np.full(count, TODAY_US // 1000)),
        "dataChange": pa.array(np.zeros(count, dtype=bool)),
        "extendedFileMetadata": pa.array(np.ones(count, dtype=bool)),
        "partitionValues": _partition_map(files),
        "size": pa.array(files.size),
    }
    arrays = [made[field.name] if field.name in made else pa.nulls(count, field.type) for field in REMOVE]
    return pa.StructArray.from_arrays(arrays, fields=list(REMOVE))


def rows_with(into: pa.Schema, **given: pa.Array) -> pa.Table:
    """Rows with the given struct columns; the others are null."""
    count = len(next(iter(given.values())))
    columns = [given[f.name] if f.name in given else pa.nulls(count, f.type) for f in into]
    return pa.Table.from_arrays(columns, schema=into)


def _partition_map(files: Files) -> pa.MapArray:
    names = files.spec.partition_columns
    texts = {"date": files.date_text, "_event_hour": files.hour_text}
    offsets = pa.array(np.arange(len(files) + 1, dtype=np.int32) * np.int32(len(names)))
    if not names:
        return pa.MapArray.from_arrays(offsets, pa.array([], pa.string()), pa.array([], pa.string()))
    keys = pa.DictionaryArray.from_arrays(np.tile(np.arange(len(names), dtype=np.int32), len(files)), names)
    wide = joined([texts[name]() for name in names], len(files))
    assert wide.shape[1] == 10 * len(names), "both partition columns are ten characters wide"
    return pa.MapArray.from_arrays(offsets, keys.cast(pa.string()), strings(wide.reshape(-1, 10)))


def _dv_array(files: Files) -> pa.StructArray:
    generation = files.base_generation
    absent = pa.array(generation == 0)
    count = len(files)
    arrays = [
        pa.array(np.full(count, "u")),
        strings(files.dv_text(generation)),
        pa.array(np.ones(count, dtype=np.int32)),
        pa.array(dv_size_bytes(1) * np.ones(count, dtype=np.int32)),
        pa.array(generation),
        pa.nulls(count, pa.int64()),
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(DV), mask=absent)


def _stats_strings(files: Files) -> pa.Array:
    loose = np.flatnonzero(files.base_generation)
    texts = strings(files.stats_text())
    if not len(loose):
        return texts
    wide = strings(Files(files.spec, files.numbers[loose]).stats_text(tight=False))
    order = np.arange(len(files))
    order[loose] = len(files) + np.arange(len(loose))
    return pa.concat_arrays([texts, wide]).take(pa.array(order))


def _stats_parsed(files: Files) -> pa.StructArray:
    kind = stats_type(files.spec)
    zero = pa.array(np.zeros(len(files), dtype=np.int64))
    arrays = [
        pa.array(files.num_records),
        _bounds(files, files.device_min, files.event_min_ms, files.value_min, files.reading_min),
        _bounds(files, files.device_max, files.event_max_ms, files.value_max, files.reading_max),
        pa.StructArray.from_arrays([zero] * files.spec.stats_width, names=list(files.spec.stats_columns)),
    ]
    if files.spec.has_dv:
        arrays.append(pa.array(files.base_generation == 0))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _bounds(
    files: Files, device: Ints, time_ms: Ints, value: Ints, reading: Callable[[int], Ints]
) -> pa.StructArray:
    made = {
        "device_id": lambda: strings(joined([b"sensor-", digits(device, 5)], len(device))),
        "event_time": lambda: pa.array(time_ms * 1000).cast(pa.timestamp("us")),
        "value": lambda: pa.array(as_double(value)),
    }
    known = [made[name]() for name in files.spec.stats_columns if name in made]
    further = [pa.array(reading(number).astype(np.int32)) for number in range(len(files.spec.readings))]
    return pa.StructArray.from_arrays([*known, *further], names=list(files.spec.stats_columns))


def _partitions_parsed(files: Files) -> pa.StructArray:
    made: dict[str, Any] = {"date": lambda: pa.array(files.days.astype(np.int32)).cast(pa.date32())}
    made["_event_hour"] = lambda: strings(files.hour_text())
    kind = partition_type(files.spec)
    return pa.StructArray.from_arrays([made[field.name]() for field in kind], fields=list(kind))


def _as_pairs(action: dict[str, Any]) -> dict[str, Any]:
    """Maps as lists of pairs, which is how Arrow takes them."""
    as_pairs = {"configuration": list(action["configuration"].items())}
    return action | as_pairs | {"format": {"provider": "parquet", "options": []}}
