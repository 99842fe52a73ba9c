"""Endpoints: tickets that tell when they expire."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import flight

_NANOSECONDS = pa.timestamp("ns", "UTC")


def endpoint(ticket: bytes, expires_at: float) -> flight.FlightEndpoint:
    """An endpoint of this very server; `expires_at` in seconds since 1970."""
    when = pa.scalar(int(expires_at) * 1_000_000_000, _NANOSECONDS)  # as pyarrow would cast it
    return flight.FlightEndpoint(ticket, [], when)
