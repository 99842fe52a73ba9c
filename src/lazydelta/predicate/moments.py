"""Dates and timestamps as people write them in filters.

Contract: exact or None. Microseconds are the finest there is; a finer text is not a moment.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

_MOMENT = re.compile(
    r"""\s*(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})
    (?:[ Tt](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?
    \s*(?P<zone>[Zz]|UTC|[+-]\d{2}(?::?\d{2})?)?)?\s*\Z""",
    re.VERBOSE,
)


def read_moment(text: str) -> date | datetime | None:
    """A date, or a datetime where the text has a time of day (aware where it has a zone); else None."""
    parts = _MOMENT.match(text)
    if parts is None:
        return None
    fraction = (parts["fraction"] or "0").ljust(9, "0")
    if not fraction.endswith("000"):
        return None
    try:
        if parts["hour"] is None:
            return date(int(parts["year"]), int(parts["month"]), int(parts["day"]))
        return datetime(
            int(parts["year"]),
            int(parts["month"]),
            int(parts["day"]),
            int(parts["hour"]),
            int(parts["minute"]),
            int(parts["second"] or 0),
            int(fraction[:6]),
            tzinfo=_zone(parts["zone"]),
        )
    except ValueError:
        return None


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in ("Z", "z", "UTC"):
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)
