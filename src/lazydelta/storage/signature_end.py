"""Until when a shared access signature holds, by its own words.

Why: stores answer to one that has ended as to one that is wrong, some without saying why.
Contract: pure; a signature that does not say, or in no way that is understood, has no end.
"""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qs


def end_of(signature: str | None) -> datetime | None:
    """The moment in its parameter `se`."""
    try:
        found = datetime.fromisoformat(parse_qs((signature or "").lstrip("?"))["se"][-1])
    except (KeyError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def has_ended(end: datetime | None) -> bool:
    """Whether that moment has passed."""
    return end is not None and end <= datetime.now(UTC)
