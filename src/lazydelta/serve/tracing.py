"""A span for each request, with what it did below: by OpenTelemetry where it is installed, else nothing.

Why: who calls a server that calls a store wants to see both in one picture.
Contract: recording never raises. A request's span is below the caller's (`traceparent`), and current in the
thread that answers while it answers; where an answer is pulled piece by piece, it is made current for each
pull, never across them. No span holds a filter, an address or a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

try:
    from opentelemetry import context as otel_context
    from opentelemetry import propagate, trace

    _IS_THERE = True
except ImportError:
    _IS_THERE = False

Item = TypeVar("Item")
_PARENT = "traceparent"
Value = str | int | float | bool


class Trace:
    """One span."""

    def __init__(self, span: Any = None) -> None:  # Any: OpenTelemetry is optional
        self._span = span

    @property
    def id(self) -> str:
        """Of the whole trace; empty where there is none."""
        told = None if self._span is None else self._span.get_span_context()
        return f"{told.trace_id:032x}" if told is not None and told.is_valid else ""

    @property
    def is_recording(self) -> bool:
        """Whether anybody will see it."""
        return self._span is not None and bool(self._span.is_recording())

    @contextmanager
    def active(self) -> Iterator[None]:
        """Spans that begin in here, in this thread, are below it."""
        if self._span is None:
            yield
            return
        token = otel_context.attach(trace.set_span_in_context(self._span))
        try:
            yield
        finally:
            otel_context.detach(token)

    def pulled(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same items; it is current while each of them is made."""
        while True:
            with self.active():
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    def note(self, **values: Value) -> None:
        """Attributes, by `lazydelta.` and their names."""
        if self.is_recording:
            self._span.set_attributes({f"lazydelta.{name}": value for name, value in values.items()})

    def rename(self, name: str) -> None:
        """Once it is known what was asked."""
        if self.is_recording:
            self._span.update_name(name)

    def end(self, *, failed_by: str = "") -> None:
        """It is over; `failed_by`: the kind of the error."""
        if self._span is not None:
            if failed_by and self._span.is_recording():
                self._span.set_status(trace.Status(trace.StatusCode.ERROR, failed_by))
            self._span.end()


NO_TRACE = Trace()


def is_recorded() -> bool:
    """Whether anybody takes spans: without, they are not made, since that takes its time, too."""
    return _IS_THERE and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def current_trace() -> Trace:
    """The one that is active."""
    return Trace(trace.get_current_span()) if _IS_THERE else NO_TRACE


def request_trace(name: str, headers: Mapping[str, str]) -> Trace:
    """The span of a request, below the one that its headers tell of."""
    if not _IS_THERE or not (is_recorded() or _PARENT in headers):
        return NO_TRACE
    parent = propagate.extract(headers)
    return Trace(_tracer().start_span(name, context=parent, kind=trace.SpanKind.SERVER))


@contextmanager
def part(name: str) -> Iterator[Trace]:
    """A span below the current one, for as long as the block takes; it is current in there."""
    with part_across(name) as found, found.active():
        yield found


@contextmanager
def part_across(name: str) -> Iterator[Trace]:
    """The same for a generator, which other threads may pull: it is not current."""
    found = Trace(_tracer().start_span(name)) if is_recorded() else NO_TRACE
    failed_by = ""
    try:
        yield found
    except GeneratorExit:
        failed_by = "cancelled"
        raise
    except BaseException as error:
        failed_by = type(error).__name__.removesuffix("Error")
        raise
    finally:
        found.end(failed_by=failed_by)


@cache
def _tracer() -> Any:  # Any: as above
    return trace.get_tracer("lazydelta")
