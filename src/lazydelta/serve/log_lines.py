"""The server's log: one line of JSON for each event, the access log among them.

Contract: every line has `time` (UTC), `level`, `logger` and `message`, lines of the access log have the
call's fields instead of a message. Text is redacted, tracebacks too; tables stand there by their names, and
addresses of stores not at all.
"""

from __future__ import annotations

import datetime as dt
import logging
import sys
from collections.abc import Iterable
from typing import TextIO

import msgspec

from lazydelta.redaction import redacted
from lazydelta.serve.concealment import concealed_line
from lazydelta.serve.config import ServedTable

ACCESS_LOGGER = "lazydelta.access"
_tables: tuple[ServedTable, ...] = ()


class JsonLines(logging.Formatter):
    """A record as a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        fields = getattr(record, "fields", None)
        if record.name == ACCESS_LOGGER and isinstance(fields, dict):
            line |= fields
        else:
            line["message"] = self._shown(record.getMessage())
        if record.exc_info:
            line["exception"] = self._shown(self.formatException(record.exc_info))
        return msgspec.json.encode(line).decode()

    def _shown(self, text: str) -> str:
        return concealed_line(redacted(text), _tables)


def conceal(tables: Iterable[ServedTable]) -> None:
    """From now on these are what is served; lines of before, and of tables that are gone, are not."""
    global _tables  # noqa: PLW0603 - as Python's logging is: of the process
    _tables = tuple(tables)


def log_to(stream: TextIO = sys.stderr, level: int = logging.INFO) -> None:
    """Have everything from that level on written there."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
