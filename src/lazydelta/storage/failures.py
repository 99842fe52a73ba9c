"""What an obstore exception means: try again, not there, not allowed, or broken for good.

Why: obstore folds every HTTP failure into a few classes whose text carries the rest. The text holds URLs and
bodies of the store, so it is judged here and never repeated; only the status, the store's error code and the
kind of connection failure get out. Callers raise the result outside their `except`, so that no traceback
shows the original either.
"""

from __future__ import annotations

import re

from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from lazydelta.errors import AccessDeniedError, LazyDeltaError, StorageError
from lazydelta.storage.connect import credential_options
from lazydelta.storage.interface import ObjectNotFoundError, past_end
from lazydelta.storage.retry import TransientError

FAILURES = (BaseError, OSError, ValueError)
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,64})</Code>")
_KIND = re.compile(r"\bkind: ([A-Z][A-Za-z]+)")
_CONNECTION_WORDS = {"Connect": "no connection", "Timeout": "timed out"}
_TRANSIENT_STATUSES = frozenset({408, 425, 429})
_HTTP_MARKS = ("HttpError", "reqwest::Error", "hyper", "HTTP error", "body from connection")
# Where obstore looks for credentials of its own accord, when the options give none.
_CREDENTIAL_MARKS = ("169.254.169.254", "169.254.170.2", "token request", "TokenRequest")


def judge(error: Exception, *, kind: str, where: str) -> TransientError | LazyDeltaError:
    """The lazydelta error for what obstore raised while asking a store of that kind for `where`."""
    text = str(error)
    status = _status(text)
    if isinstance(error, FileNotFoundError) or status == 404:
        return _not_found(text, where)
    final = _denial(error, text, kind=kind, where=where) or _refusal(error, text, where)
    if final is not None:
        return final
    if _is_transient(status, text):
        return TransientError(f"the store failed ({_short(text)})", where)
    return StorageError(
        f"the store refused the request ({_short(text)})", where, "check the URL and the storage options"
    )


def replaced(where: str) -> StorageError:
    """The object changed between two reads that belong together."""
    return StorageError(
        "the object was replaced while it was being read",
        where,
        "read again; objects of a Delta log must never change, so check who writes there",
    )


def _denial(error: Exception, text: str, *, kind: str, where: str) -> AccessDeniedError | None:
    fix = f"set storage_options {credential_options(kind)}; check that they may read this path"
    if any(mark in text for mark in _CREDENTIAL_MARKS):
        return AccessDeniedError("no credentials were given, and none were found", where, fix)
    if isinstance(error, (PermissionDeniedError, UnauthenticatedError)) or _status(text) in (401, 403):
        return AccessDeniedError(f"the store refused the credentials ({_short(text)})", where, fix)
    return None


def _refusal(error: Exception, text: str, where: str) -> StorageError | None:
    """What is wrong with the request itself, so that another attempt would fail alike."""
    if isinstance(error, PreconditionError):
        return replaced(where)
    if isinstance(error, (InvalidPathError, ValueError)):
        return StorageError("the store cannot hold an object of that name", where, "check who wrote the log")
    if _status(text) == 416 or "InvalidRangeRequest" in text:
        return past_end(where)
    if "BadScheme" in text:
        return StorageError(
            "the endpoint is plain http", where, "set the storage option allow_http=true, or use https"
        )
    return None


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return None if found is None else int(found.group(1))


def _is_transient(status: int | None, text: str) -> bool:
    if status is not None:
        return status >= 500 or status in _TRANSIENT_STATUSES
    return any(mark in text for mark in _HTTP_MARKS)


def _short(text: str) -> str:
    """Status, error code and connection failure: what helps, without URLs or bodies."""
    status, code = _status(text), _CODE.search(text)
    words = [] if status is None else [f"HTTP {status}"]
    if code is not None:
        words.append(code.group(1))
    if not words:
        kind = _KIND.search(text)
        words.append(_CONNECTION_WORDS.get(kind.group(1) if kind else "", "the connection broke off"))
    return ", ".join(words)


def _not_found(text: str, where: str) -> ObjectNotFoundError:
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        return ObjectNotFoundError(
            "the bucket or container does not exist", where, "check the table's URL and the account"
        )
    return ObjectNotFoundError("there is no such object", where, "check the table's URL")
