"""Values as people read them, one line each."""

from __future__ import annotations

import datetime as dt

# A control character in a path could break a line or drive the terminal: it is shown as an escape.
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
}
_UNITS = ("KB", "MB", "GB", "TB", "PB", "EB")


def one_line(text: str) -> str:
    """The text with control characters as escapes."""
    return text.translate(_ESCAPES)


def human_bytes(byte_count: int) -> str:
    """`3.1 MB`: decimal units, one digit after the point."""
    if byte_count < 1000:
        return f"{byte_count} B"
    amount = float(byte_count)
    for unit in _UNITS:
        amount /= 1000
        if amount < 999.95 or unit == _UNITS[-1]:
            break
    return f"{amount:,.1f} {unit}"


def human_time(ms: int) -> str:
    """Milliseconds since 1970 as `2026-02-08 12:30:00`, UTC; the number itself where no calendar has it."""
    try:
        return f"{dt.datetime.fromtimestamp(ms / 1000, dt.UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, OSError, ValueError):
        return str(ms)
