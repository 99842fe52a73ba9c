"""Telemetry as sensors send it: folders of JSON lines, one folder for each batch, with late and bad rows.

Why: the demo shows the pipeline on rows that a newcomer can read with `head`. Contract: the same spec gives
the same bytes; folders are kept in the project's cache, and what they hold is written beside them, last, so
that a half-made source is made again. Late rows come from some hours of earlier batches; bad rows have no
time, a time that is none, or are cut off in the middle.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

FIRST_HOUR = "2026-02-06T00"
CITIES = ("Accra", "Bergen", "Cusco", "Dakar", "Hanoi", "Izmir", "Lagos", "Oslo", "Porto", "Quito")
PLACES = ("indoor", "outdoor", "rooftop", "cellar")
_HOUR_MS = 3_600_000


class TelemetrySpec(msgspec.Struct, frozen=True, kw_only=True):
    """How much is sent."""

    batches: int = 10
    hours_per_batch: int = 12
    rows_per_batch: int = 250_000
    late_rows: int = 600  # of each batch but the first
    late_hours: int = 15  # that they come from
    bad_rows: int = 40  # of each batch
    files_per_batch: int = 4
    devices: int = 2_000
    seed: int = 1

    @property
    def name(self) -> str:
        """A name that differs wherever two specs do."""
        return "-".join(["telemetry", *(str(value) for value in msgspec.structs.astuple(self))])


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """One folder of the source, and what it holds."""

    name: str  # of the folder below the source's
    rows: int
    late_rows: int
    bad_rows: int
    source_bytes: int


def make_telemetry(spec: TelemetrySpec, where: Path) -> tuple[Path, list[Batch]]:
    """The source's folder below `where` and its batches, made if they are not there yet."""
    source, about = where / spec.name, where / f"{spec.name}.json"
    if about.exists():
        return source, msgspec.json.decode(about.read_bytes(), type=list[Batch])
    shutil.rmtree(source, ignore_errors=True)
    batches = [_write_batch(spec, source, number) for number in range(spec.batches)]
    about.write_bytes(msgspec.json.encode(batches))
    return source, batches


def newest_hour(spec: TelemetrySpec) -> str:
    """The last hour that rows come from, as the pipeline spells it."""
    last = np.datetime64(FIRST_HOUR, "h") + spec.batches * spec.hours_per_batch - 1
    return str(last).replace("-", "").replace("T", "")


def _write_batch(spec: TelemetrySpec, where: Path, number: int) -> Batch:
    folder = where / f"batch-{number + 1:02d}"
    folder.mkdir(parents=True)
    rng = np.random.default_rng([spec.seed, number])
    late = spec.late_rows if number else 0
    times = _times(spec, rng, number, late)
    lines = _lines(spec, rng, times)
    cuts = np.linspace(0, len(lines), spec.files_per_batch + 1).astype(int)
    for part in range(spec.files_per_batch):
        body = lines.slice(cuts[part], cuts[part + 1] - cuts[part])
        (folder / f"part-{part:05d}.json").write_bytes(_glued(body))
    size = sum(path.stat().st_size for path in folder.iterdir())
    return Batch(name=folder.name, rows=len(lines), late_rows=late, bad_rows=spec.bad_rows, source_bytes=size)


def _times(spec: TelemetrySpec, rng: np.random.Generator, number: int, late: int) -> pa.Array:
    """Event times as text, in the order rows arrive; those of bad rows are null or no time."""
    first = int(np.datetime64(FIRST_HOUR, "ms").astype(np.int64))
    start = first + number * spec.hours_per_batch * _HOUR_MS
    on_time = np.sort(rng.integers(spec.hours_per_batch * _HOUR_MS, size=spec.rows_per_batch - late))
    hours = rng.choice(max(number, 1) * spec.hours_per_batch, size=spec.late_hours)
    old = rng.choice(hours, size=late) * _HOUR_MS + rng.integers(_HOUR_MS, size=late)
    moments = np.concatenate([start + on_time, first + old])
    # Late rows arrive anywhere among the others.
    order = np.argsort(np.concatenate([np.arange(len(on_time)), rng.uniform(0, len(on_time), size=late)]))
    text = pa.array(np.datetime_as_string(moments[order].view("datetime64[ms]"), timezone="UTC"))
    return pc.replace_with_mask(text, _mask(spec, rng, len(text)), _bad_times(spec))


def _mask(spec: TelemetrySpec, rng: np.random.Generator, count: int) -> pa.Array:
    mask = np.zeros(count, dtype=bool)
    mask[rng.choice(count, size=spec.bad_rows, replace=False)] = True
    return pa.array(mask)


def _bad_times(spec: TelemetrySpec) -> pa.Array:
    """Null, words, and a mark for rows that are cut off."""
    kinds = (None, "yesterday", "2026-02-31T25:00:00Z", "#")
    return pa.array([kinds[number % len(kinds)] for number in range(spec.bad_rows)], pa.string())


def _lines(spec: TelemetrySpec, rng: np.random.Generator, times: pa.Array) -> pa.Array:
    """JSON of each row."""
    count = len(times)
    quoted = pc.if_else(
        pc.is_null(times), "null", pc.binary_join_element_wise('"', pc.fill_null(times, ""), '"', "")
    )
    device = pa.array(rng.integers(spec.devices, size=count))
    value = pa.array(np.round(rng.normal(21.0, 6.0, size=count), 2))
    city = pa.array(CITIES).take(pa.array(rng.integers(len(CITIES), size=count)))
    place = pa.array(PLACES).take(pa.array(rng.integers(len(PLACES), size=count)))
    floor = pa.array(rng.integers(9, size=count))
    text = pa.string()
    lines = pc.binary_join_element_wise(
        '{"device_id":"sensor-',
        pc.utf8_lpad(device.cast(text), 5, "0"),
        '","timestamp":',
        quoted,
        ',"value":',
        value.cast(text),
        ',"city":"',
        city,
        '","tags":["',
        place,
        '","floor-',
        floor.cast(text),
        '"]}',
        "",
    )
    is_cut = pc.fill_null(pc.equal(times, "#"), fill_value=False)
    return pc.if_else(is_cut, pc.utf8_slice_codeunits(lines, 0, 40), lines)


def _glued(lines: pa.Array) -> bytes:
    """The lines of a file, each ended."""
    ended = pc.binary_join_element_wise(lines, "", "\n")
    data = ended.buffers()[2]
    offsets = np.frombuffer(ended.buffers()[1], np.int32)[ended.offset : ended.offset + len(ended) + 1]
    return bytes(memoryview(data)[int(offsets[0]) : int(offsets[-1])])
