"""The rows of a part of the stats sidecar, for files by number.

Contract: pure. The columns are the layout's, the values those that a builder reads off the checkpoint of a
generated table; sorted as parts are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from bench.actions import dv_size_bytes
from bench.files import Files, as_double
from bench.fixed_text import Ints, strings
from bench.spec import TableSpec
from lazydelta.sidecar import SidecarLayout
from lazydelta.sidecar.format.layout import sort_keys


def part_rows(spec: TableSpec, numbers: Ints, layout: SidecarLayout) -> pa.Table:
    """The rows of these files."""
    files = Files(spec, numbers)
    made = {**_plain(files), **_vectors(files), **_statistics(files)}
    columns = [
        made[field.name]().cast(field.type) if field.name in made else pa.nulls(len(files), field.type)
        for field in layout.schema
    ]
    return pa.Table.from_arrays(columns, schema=layout.schema).sort_by(sort_keys(layout))


def _plain(files: Files) -> dict[str, Callable[[], pa.Array]]:
    return {
        "path": lambda: strings(files.path_text()),
        "size": lambda: pa.array(files.size),
        "modification_time": lambda: pa.array(files.modified_ms),
        "_event_hour": lambda: strings(files.hour_text()),
        "num_records": lambda: pa.array(files.num_records),
        "tight_bounds": lambda: pa.array(files.base_generation == 0),
    }


def _vectors(files: Files) -> dict[str, Callable[[], pa.Array]]:
    absent = files.base_generation == 0
    count = len(files)
    return {
        "dv.storageType": lambda: pa.array(np.full(count, "u"), mask=absent),
        "dv.pathOrInlineDv": lambda: pa.array(
            strings(files.dv_text(files.base_generation)).to_numpy(zero_copy_only=False), mask=absent
        ),
        "dv.offset": lambda: pa.array(np.ones(count, np.int32), mask=absent),
        "dv.sizeInBytes": lambda: pa.array(np.full(count, dv_size_bytes(1), np.int32), mask=absent),
        "dv.cardinality": lambda: pa.array(files.base_generation, mask=absent),
    }


def _statistics(files: Files) -> dict[str, Callable[[], pa.Array]]:
    zero = pa.array(np.zeros(len(files), np.int64))
    return {
        "min.event_time": lambda: _instants(files.event_min_ms),
        "max.event_time": lambda: _instants(files.event_max_ms),
        "null_count.event_time": lambda: zero,
        "min.value": lambda: pa.array(as_double(files.value_min)),
        "max.value": lambda: pa.array(as_double(files.value_max)),
        "null_count.value": lambda: zero,
    }


def _instants(milliseconds: Ints) -> pa.Array:
    return pa.array(milliseconds * 1000).cast(pa.timestamp("us", "UTC"))
