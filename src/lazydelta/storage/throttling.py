"""How long a store that throttles wants to be left alone: its `Retry-After`, asked for once for a host.

Why: obstore (0.12) hands out the status and the body of a failed request and keeps the headers to itself. So
after a throttling answer one small request to the same object is made with the standard library, by an
address that obstore signs, and only its headers are looked at.
Contract: at most one such request is under way for a host; what it learns holds for every scan of the
process (`HostGate.hold_back`). Where the store does not say, or cannot be asked that way (a SAS is not given
out for signing), it is not asked again for a while and the longer pauses of `retry.py` stand. The address
has a signature: it is never kept, logged or shown. Record: docs/adr/0017-retry-after-by-a-signed-request.md.
"""

from __future__ import annotations

import email.utils
import http.client
import math
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.message import Message

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, S3Store

from lazydelta import limits
from lazydelta.storage.host_gate import HostGate
from lazydelta.storage.panics import is_panic

THROTTLED = frozenset({429, 503})
_MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")  # Azure's own


class HostPause:
    """What one host said about pauses; shared by whoever asks it."""

    def __init__(self, gate: HostGate) -> None:
        self._gate = gate
        self.start_anew()

    def start_anew(self) -> None:
        """After a fork somebody else may have been asking."""
        self._lock = threading.Lock()
        self._silent_until = -math.inf

    def seconds(self, ask: Callable[[], float | None], *, timeout_seconds: float) -> float:
        """How long to wait after a throttling answer; `ask` is called if nobody knows."""
        if not self._lock.acquire(timeout=timeout_seconds):
            return self._gate.pause_seconds()
        try:
            known = self._gate.pause_seconds()
            if known > 0 or time.monotonic() < self._silent_until:
                return known
            asked = ask()
            if asked is None:
                self._silent_until = time.monotonic() + limits.RETRY_AFTER_SILENT_SECONDS
                return 0.0
            self._gate.hold_back(asked)
            return asked
        finally:
            self._lock.release()


def signed_address(store: AzureStore | S3Store, key: str) -> str | None:
    """Where the object can be asked for without credentials, for a minute; None where these do not sign."""
    try:
        return obstore.sign(store, "GET", key, timedelta(seconds=60))
    except BaseError:
        return None
    except BaseException as error:
        if not is_panic(error):
            raise
        return None


def ask_retry_after(address: str, *, timeout_seconds: float, now: datetime | None = None) -> float | None:
    """Seconds that the store asks to wait, 0 if it no longer throttles, None if it does not say."""
    try:
        request = urllib.request.Request(address, headers={"Range": "bytes=0-0"})
        with _OPENER.open(request, timeout=timeout_seconds):
            return 0.0
    except urllib.error.HTTPError as answer:
        with answer:
            return pause_of(answer.headers, now) if answer.code in THROTTLED else 0.0
    except (OSError, ValueError, http.client.HTTPException):
        return None  # no answer: nothing is learnt


def pause_of(headers: Message, now: datetime | None = None) -> float | None:
    """Seconds by `Retry-After`, a number or a date, or by Azure's milliseconds; None without any.

    At most `limits.RETRY_AFTER_SECONDS_MAX`.
    """
    for name in _MILLISECONDS:
        told = headers.get(name, "").strip()
        if told.isascii() and told.isdigit():
            return _bounded(float(told) / 1000)
    told = headers.get("retry-after", "").strip()
    if told.isascii() and told.isdigit():
        return _bounded(float(told))
    at = _date(told)
    if at is None:
        return None
    # By the store's own clock where it tells it.
    return _bounded((at - (_date(headers.get("date", "")) or now or datetime.now(UTC))).total_seconds())


def _bounded(seconds: float) -> float:
    """One answer holds up every scan of the process: not for longer than this, however large its number."""
    return min(max(0.0, seconds), limits.RETRY_AFTER_SECONDS_MAX)


def _date(text: str) -> datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """A signature is for one address."""


_OPENER = urllib.request.build_opener(_NoRedirect)
