"""Values as people read them, one line each."""

from __future__ import annotations

import datetime as dt
import re
import textwrap

# A control character in a path could break a line or drive the terminal: it is shown as an escape.
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
}
_LABEL = re.compile(r"\S+(?: \S+)*  +")  # and what keeps it off its text
_FOLDED_MIN = 40  # columns of a terminal: in fewer nothing can be read anyway
_UNITS = ("KB", "MB", "GB", "TB", "PB", "EB")


def one_line(text: str) -> str:
    """The text with control characters as escapes."""
    return text.translate(_ESCAPES)


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # not for `--help`

    return cell_len(text)


def cut(text: str, width: int, *, in_middle: bool = False) -> str:
    """The text in as many columns at most, with … for what was left out: the end, or the middle of it."""
    if cells(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    if not in_middle:
        return f"{_beginning_of(text, width - 1).rstrip()}…"
    kept = width // 3
    return f"{_beginning_of(text, kept)}…{_end_of(text, width - 1 - kept)}"


def folded(line: str, width: int) -> str:
    """`label  text` in as many columns: what is too long goes on below the text's beginning.

    Words are never broken: an address or a command can still be copied.
    """
    label = _LABEL.match(line)
    if label is None or cells(line) <= width:
        return line
    return textwrap.fill(
        line[label.end() :],
        width=max(width, _FOLDED_MIN),
        initial_indent=label[0],
        subsequent_indent=" " * label.end(),
        break_on_hyphens=False,
        break_long_words=False,
    )


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


def _beginning_of(text: str, width: int) -> str:
    """As much of its beginning as fits."""
    end = min(len(text), width)
    while cells(text[:end]) > width:
        end -= 1
    return text[:end]


def _end_of(text: str, width: int) -> str:
    """As much of its end as fits."""
    at = max(0, len(text) - width)
    while cells(text[at:]) > width:
        at += 1
    return text[at:]
