"""Time zones as Spark spells them, and moments that are told without one.

Why: a session of Spark may have an offset for a zone (`+02:00`, `GMT+2`), our filters know zones by name.
What Spark's users write without a zone, they mean in the session's.
"""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lazydelta.errors import InvalidRequestError

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d))?")


def zone_name(text: str, where: str) -> str:
    """The zone by a name that there is; offsets of whole hours have one."""
    stripped = text.strip()
    name = _of_offset(stripped) or stripped
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidRequestError(
            f"there is no time zone {text!r}",
            where,
            "name one as in Europe/Berlin, or an offset of whole hours (spark.sql.session.timeZone, for "
            "read(); the option timeZone otherwise)",
        ) from None
    return name


def moment(timestamp: str | None, zone: str) -> dt.datetime | str | None:
    """A time of time travel, in this zone where it tells none; what is no time is left to be refused."""
    try:
        found = dt.datetime.fromisoformat(timestamp or "")
    except ValueError:
        return timestamp
    return found if found.tzinfo is not None else found.replace(tzinfo=ZoneInfo(zone))


def _of_offset(text: str) -> str | None:
    found = _OFFSET.fullmatch(text)
    if text == "Z" or (found is not None and int(found[2]) == int(found[3] or 0) == 0):
        return "UTC"
    if found is None or int(found[3] or 0):
        return None
    towards = {"+": "-", "-": "+"}[found[1]]  # POSIX counts westwards
    return f"Etc/GMT{towards}{int(found[2])}"
