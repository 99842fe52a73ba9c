"""Metrics as plain numbers always, and through OpenTelemetry where it is installed; logs at debug.

The five names of the seeds are kept: `delta.lazy.commits_scanned`, `files_emitted`, `fallback_triggered`,
`remove_set_size`, `time_to_first_file_ms`; requests, bytes and skipped files stand beside them.
Contract: recording never raises and never needs a network; without OpenTelemetry it costs a dictionary. What
a log says is redacted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any

from lazydelta.redaction import redacted

try:  # here and not at the first scan, which would pay for the import
    from opentelemetry import metrics as otel
except ImportError:
    otel = None  # type: ignore[assignment]  # it is optional

LOGGER = logging.getLogger("lazydelta")
PREFIX = "delta.lazy."
FALLBACKS = "fallback_triggered"  # by reason, too: `delta.lazy.fallback_triggered.sidecar_damaged`
COUNTERS = (
    "commits_scanned",
    "files_emitted",
    FALLBACKS,
    "files_skipped",
    "row_groups_read",
    "row_groups_skipped",
    "unknown_actions",
    "requests",
    "bytes_read",
    "round_trips",
    "floors_read",
    "sidecar_hits",
    "memory_waits",
    "memory_wait_ms",
)
GAUGES = ("remove_set_size", "time_to_first_file_ms")

_lock = threading.Lock()
_totals: dict[str, float] = {}


def record_scan(values: Mapping[str, float | None], *, fallbacks: Mapping[str, int] | None = None) -> None:
    """Add one scan's numbers to the totals; gauges keep the latest value. `fallbacks` are told by kind."""
    present = {name: value for name, value in values.items() if value is not None}
    unknown = set(present) - {*COUNTERS, *GAUGES}
    assert not unknown, unknown
    with _lock:
        for name, value in present.items():
            key = PREFIX + name
            _totals[key] = value if name in GAUGES else _totals.get(key, 0) + value
        for kind, count in (fallbacks or {}).items():
            key = f"{PREFIX}{FALLBACKS}.{kind}"
            _totals[key] = _totals.get(key, 0) + count
    for name, value in present.items():
        instrument = _instruments().get(name)
        if instrument is None:
            continue
        if name == FALLBACKS and fallbacks:
            for kind, count in fallbacks.items():
                instrument.add(count, {"reason": kind})
        else:
            (instrument.record if name in GAUGES else instrument.add)(value)


def metrics() -> dict[str, float]:
    """The numbers of this process so far, by their full names."""
    with _lock:
        return dict(_totals)


def reset() -> None:
    """Forget the plain numbers (OpenTelemetry keeps its own)."""
    with _lock:
        _totals.clear()


def log_event(event: str, **fields: object) -> None:
    """One structured line at debug: an event and its fields."""
    if LOGGER.isEnabledFor(logging.DEBUG):
        shown = {name: _shown(value) for name, value in fields.items()}
        text = " ".join(f"{name}={value!r}" for name, value in shown.items())
        LOGGER.debug("%s %s", event, text, extra={"event": event, "fields": shown})


def _shown(value: object) -> object:
    """Numbers as they are, everything else as text without secrets."""
    if value is None or isinstance(value, int | float):
        return value
    return redacted(value if isinstance(value, str) else repr(value))


@cache
def _instruments() -> dict[str, Any]:  # Any: OpenTelemetry is optional and publishes no types we can rely on
    if not otel:
        return {}
    meter = otel.get_meter("lazydelta")
    counters = {name: meter.create_counter(PREFIX + name) for name in COUNTERS}
    return counters | {name: meter.create_histogram(PREFIX + name) for name in GAUGES}
