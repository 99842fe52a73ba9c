"""OpenTelemetry's own exporters, kept in memory: what a collector would get of this process's metrics."""

from __future__ import annotations

import io
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    InMemoryMetricReader,
    PeriodicExportingMetricReader,
)


class MetricExporter:
    """What OpenTelemetry would send to a collector, by two of its exporters."""

    def __init__(self) -> None:
        self._text = io.StringIO()
        self._memory = InMemoryMetricReader()
        console = PeriodicExportingMetricReader(
            ConsoleMetricExporter(out=self._text), export_interval_millis=3_600_000
        )
        self._provider = MeterProvider(metric_readers=[self._memory, console])

    def get_meter(self, name: str) -> Any:
        """As `opentelemetry.metrics` does."""
        return self._provider.get_meter(name)

    def said(self) -> list[str]:
        """Everything so far; the numbers of scans must be among it."""
        self._provider.force_flush()
        said = [self._text.getvalue(), repr(self._memory.get_metrics_data())]
        assert all("delta.lazy.files_emitted" in text and "delta.lazy.requests" in text for text in said)
        return said

    def close(self) -> None:
        """Stop its thread."""
        self._provider.shutdown()
