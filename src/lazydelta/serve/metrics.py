"""The numbers of the server, as Prometheus reads them.

Contract: counters only ever grow; labels are of small, fixed sets (protocol, method, status), tables only by
the names of the configuration, and only to who may read them. docs/serve.md lists every name.
Spec: Prometheus, "Text-based format", version 0.0.4.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable
from importlib.metadata import version as installed_version
from pathlib import Path

from lazydelta import telemetry
from lazydelta.memory_budget import PROCESS_MEMORY
from lazydelta.serve.admission import Admission
from lazydelta.serve.exposition import Exposition, Labels

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.025, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0)  # bounds of the histogram
_PAGE_BYTES = 4096
_BEGAN_AT = time.time()


class ServeMetrics:
    """What was asked and answered so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[Labels] = Counter()
        self._seconds: dict[Labels, float] = {}
        self._buckets: dict[Labels, list[int]] = {}
        self._rows: Counter[Labels] = Counter()
        self._limits: Counter[Labels] = Counter()
        self._reloads: Counter[Labels] = Counter({(("result", "taken"),): 0, (("result", "refused"),): 0})
        self._is_config_taken = True
        self._config_at = time.time()

    def ended(
        self, *, protocol: str, method: str, status: str, seconds: float, table: str, rows: int
    ) -> None:
        """A call is over."""
        of_call = (("protocol", protocol), ("method", method), ("status", status))
        timed = of_call[:2]
        with self._lock:
            self._calls[of_call] += 1
            self._seconds[timed] = self._seconds.get(timed, 0.0) + seconds
            buckets = self._buckets.setdefault(timed, [0] * (len(SECONDS) + 1))
            buckets[bisect_left(SECONDS, seconds)] += 1
            if table:
                self._rows[(("protocol", protocol), ("table", table))] += rows

    def limit_reached(self, limit: str) -> None:
        """Somebody was refused, by the name of the limit."""
        with self._lock:
            self._limits[(("limit", limit),)] += 1

    def reloaded(self, *, is_taken: bool) -> None:
        """The configuration was read anew."""
        with self._lock:
            self._reloads[(("result", "taken" if is_taken else "refused"),)] += 1
            self._is_config_taken = is_taken
            if is_taken:
                self._config_at = time.time()

    def exposition(self, admission: Admission, tables: Collection[str] | None = None) -> str:
        """All of it as text; rows of these tables only, None: of all."""
        out = Exposition()
        with self._lock:
            out.counter("lazydelta_calls_total", "Calls that have ended.", self._calls)
            out.histogram(
                "lazydelta_call_seconds", "How long calls took.", SECONDS, self._buckets, self._seconds
            )
            rows = {
                labels: count
                for labels, count in self._rows.items()
                if tables is None or dict(labels)["table"] in tables
            }
            out.counter("lazydelta_rows_total", "Rows, or files of a list, that went out.", rows)
            out.counter("lazydelta_limit_refusals_total", "Calls refused by a limit.", self._limits)
            out.counter("lazydelta_config_reloads_total", "Times the file was read anew.", self._reloads)
            out.gauge(
                "lazydelta_config_is_current",
                "Whether the file as it was last read is in force.",
                int(self._is_config_taken),
            )
            out.gauge(
                "lazydelta_config_taken_timestamp_seconds",
                "When the configuration in force was read.",
                self._config_at,
            )
        _tell_server(out, admission)
        _tell_scans(out)
        return out.text()


def _tell_server(out: Exposition, admission: Admission) -> None:
    version = ((("version", installed_version("lazydelta")),), 1.0)
    out.gauges("lazydelta_build_info", "The version that runs.", [version])
    out.gauge("lazydelta_ready", "Whether requests are taken.", int(admission.is_ready))
    out.gauge("lazydelta_scans_running", "Scans that run.", len(admission.running()))
    out.gauge("lazydelta_scans_waiting", "Scans that wait for a place.", admission.waiting)
    memory = PROCESS_MEMORY.use()
    out.gauge("lazydelta_memory_held_bytes", "Memory that scans and the cache hold.", memory.held_bytes)
    out.gauge("lazydelta_memory_limit_bytes", "What they may hold.", memory.limit_bytes)
    out.gauge("lazydelta_memory_waiting", "Who waits for memory.", memory.waiting)
    out.gauge("lazydelta_threads", "Threads of the process, those of Arrow and DuckDB included.", _threads())
    out.gauge("process_start_time_seconds", "When the process began.", _BEGAN_AT)
    if (resident := _resident_bytes()) is not None:
        out.gauge("process_resident_memory_bytes", "Memory that the system gave it.", resident)


def _tell_scans(out: Exposition) -> None:
    """What the scans of the process did so far, under the names that `telemetry.py` has for it."""
    totals = telemetry.metrics()
    for name in telemetry.COUNTERS:
        value = totals.get(telemetry.PREFIX + name, 0)
        out.counter(f"{_plain(name)}_total", f"{telemetry.PREFIX}{name} of all scans.", {(): value})
    for name in telemetry.GAUGES:
        if (latest := totals.get(telemetry.PREFIX + name)) is not None:
            out.gauge(_plain(name), f"{telemetry.PREFIX}{name} of the latest scan.", latest)
    start = f"{telemetry.PREFIX}{telemetry.FALLBACKS}."
    reasons = _by_reason(start, totals.items())
    out.counter("delta_lazy_fallbacks_by_reason_total", "Scans that went another way, and why.", reasons)


def _by_reason(start: str, totals: Iterable[tuple[str, float]]) -> dict[Labels, float]:
    return {
        (("reason", name.removeprefix(start)),): total for name, total in totals if name.startswith(start)
    }


def _plain(name: str) -> str:
    return (telemetry.PREFIX + name).replace(".", "_")


def _threads() -> int:
    """By the system: Python also counts threads of Arrow's that have ended, once they have called it."""
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    except OSError:  # no Linux
        return threading.active_count()


def _resident_bytes() -> int | None:
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):  # no Linux
        return None
