"""Where spans go: as the environment variables of OpenTelemetry say, where its SDK is installed.

Contract: nothing without `OTEL_TRACES_EXPORTER` or an endpoint of OTLP, and nothing where somebody chose a
provider before (`opentelemetry-instrument` does). An exporter that is not installed is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from lazydelta.errors import InvalidRequestError

_EXPORTERS = "opentelemetry_traces_exporter"  # the group of entry points that OpenTelemetry's packages fill
_SWITCH = "OTEL_TRACES_EXPORTER"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_OTLP = ("otlp", "otlp_proto_http", "otlp_proto_grpc")


def export_as(environment: Mapping[str, str]) -> None:
    """Send spans there from now on."""
    asked = environment.get(_SWITCH, "").strip()
    if not asked and any(environment.get(name) for name in _ENDPOINTS):
        asked = "otlp"
    if asked in ("", "none"):
        return
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as problem:
        raise _missing(asked) from problem
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    service = environment.get("OTEL_SERVICE_NAME") or "lazydelta"
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: service}))
    for name in asked.split(","):
        provider.add_span_processor(BatchSpanProcessor(_exporter(name.strip())))
    trace.set_tracer_provider(provider)


def _exporter(name: str) -> Any:  # Any: OpenTelemetry is optional
    for known in _OTLP if name == "otlp" else (name,):
        for found in entry_points(group=_EXPORTERS, name=known):
            return found.load()()
    raise _missing(name)


def _missing(name: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"spans are to go by {name!r}, and no such exporter is installed",
        _SWITCH,
        "pip install opentelemetry-sdk and the exporter's package, or unset it",
    )
