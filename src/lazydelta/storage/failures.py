"""What an obstore exception means: try again, not there, not allowed, or broken for good.

Why: obstore folds every HTTP failure into a few classes whose text carries the rest. The text holds URLs and
bodies of the store, so it is judged here and never repeated; only the status, the store's error code and the
kind of connection failure get out. Callers raise the result outside their `except`, so that no traceback
shows the original either. What the object and its container are called is left out before: names may be any
words, those too by which failures are told apart.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import unquote

from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from lazydelta.errors import AccessDeniedError, LazyDeltaError, StorageError
from lazydelta.storage.connect import credential_options
from lazydelta.storage.denials import DENIAL_CODES, refusal, token_denial
from lazydelta.storage.interface import ObjectNotFoundError, not_a_store, past_end
from lazydelta.storage.object_versions import replaced
from lazydelta.storage.retry import TransientError
from lazydelta.storage.signature_end import has_ended
from lazydelta.storage.throttling import THROTTLED

FAILURES = (BaseError, OSError, ValueError)
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,64})</Code>")
_HTML = re.compile(r"<!doctype html|<html[\s>]|`html`", re.IGNORECASE)
_ODD_MARKS = {
    "NotPartial": "it does not send parts of objects",
    "Header missing from response": "a header is missing",
}
_BARE_REDIRECT = re.compile(r"\binner: BareRedirect\b")  # S3 answers so for a bucket of another region
_REDIRECT = re.compile(r"\bkind: Redirect\b")
_KIND = re.compile(r"\bkind: ([A-Z][A-Za-z]+)")
_CONNECTION_WORDS = {"Connect": "no connection", "Timeout": "timed out"}
_TRANSIENT_STATUSES = frozenset({408, 425, 429})
_HTTP_MARKS = ("HttpError", "reqwest::Error", "hyper", "HTTP error", "body from connection")
_EMPTY_RANGE = 'header: "bytes 0--1/0"'  # how Azurite answers for an empty object
# A page of a listing that ends early is no XML any more.
_CUT_PAGE_MARKS = ("InvalidListResponse", "invalid list response")
_BEFORE_A_NAME = r"(?:(?<=[/=\"'>])|(?<=location )|(?<=path ))"


def judge(
    error: Exception, *, kind: str, where: str, request: str = "get", signature_end: datetime | None = None
) -> TransientError | LazyDeltaError:
    """The lazydelta error for what obstore raised at a request for `where` to a store of that kind."""
    text = _without_names(str(error), where)
    status = _status(text)
    stranger = _not_this_store(text, status, kind=kind, where=where, request=request)
    if stranger is not None:
        return stranger
    if isinstance(error, FileNotFoundError) or status == 404:
        return _not_found(text, where)
    denial = _denial(error, text, kind=kind, where=where, request=request)
    if denial is not None and has_ended(signature_end):
        return _ended(signature_end, text, where)
    final = denial or _refusal(error, text, where, request)
    if final is not None:
        return final
    if _is_transient(status, text):
        return TransientError(f"the store failed ({_short(text)})", where, is_throttled=status in THROTTLED)
    return StorageError(
        f"the store refused the request ({_short(text)})", where, "check the URL and the storage options"
    )


def no_credentials(problem: Exception, *, kind: str, where: str) -> AccessDeniedError:
    """The error for a provider that gave none; its text is `ProviderProblem`'s own."""
    denial = token_denial(f"ProviderProblem: {problem}", f"storage_options {credential_options(kind)}")
    assert denial is not None, "the mark is there"
    return AccessDeniedError(denial.what, where, denial.fix)


def _without_names(text: str, where: str) -> str:
    """obstore's text, decoded, without the key and the container of `where`."""
    authority, _, key = where.partition("://")[2].partition("/")
    plain = unquote(text).replace("+", " ")  # queries have a blank as +
    for name in (unquote(key), unquote(authority).partition("@")[0]):
        if name:
            plain = re.sub(rf"{_BEFORE_A_NAME}{re.escape(name.replace('+', ' '))}(?![\w-])", "", plain)
    return plain


def _denial(error: Exception, text: str, *, kind: str, where: str, request: str) -> AccessDeniedError | None:
    options, found = f"storage_options {credential_options(kind)}", _CODE.search(text)
    denial, code = token_denial(text, options), None if found is None else found[1]
    is_refused = isinstance(error, (PermissionDeniedError, UnauthenticatedError))
    if denial is None and (is_refused or _status(text) in (401, 403) or code in DENIAL_CODES):
        short = _short(text)
        denial = refusal(code, text, kind=kind, request=request, short=short, options=options)
    return None if denial is None else AccessDeniedError(denial.what, where, denial.fix)


def _ended(end: datetime | None, text: str, where: str) -> AccessDeniedError:
    assert end is not None, "only a signature that says it has an end"
    return AccessDeniedError(
        f"the signature (sas_token) ended on {end.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({_short(text)})",
        where,
        "get a new one and open the table again; where scans outlast signatures, give a credential_provider",
    )


def _not_this_store(
    text: str, status: int | None, *, kind: str, where: str, request: str
) -> StorageError | None:
    """What came from something else than a store, or from one that has the objects elsewhere."""
    odd = _odd_answer(text, status, request)
    if odd is not None:
        return not_a_store(odd, where)
    if _BARE_REDIRECT.search(text):
        region = "set the storage option region to the bucket's own, and check endpoint, where it is set"
        return StorageError(
            "the store says that this is kept elsewhere (a redirect without an address)",
            where,
            region if kind == "s3" else "check the endpoint and the account in the URL",
        )
    if _REDIRECT.search(text):  # others are followed by obstore
        return StorageError(
            "what answers redirects without an end, or to plain http", where, "check the endpoint"
        )
    return None


def _odd_answer(text: str, status: int | None, request: str) -> str | None:
    """What came that a store does not send; None where nothing did.

    Gateways before a store send web pages when it is overloaded, and may do so where an object is not.
    """
    if _HTML.search(text) and (status is None or (status < 500 and (status != 404 or request == "list"))):
        return "a web page" if status is None else f"a web page, HTTP {status}"
    return next((words for mark, words in _ODD_MARKS.items() if mark in text), None)


def _refusal(error: Exception, text: str, where: str, request: str) -> StorageError | None:
    """What is wrong with the request itself, so that another attempt would fail alike."""
    if isinstance(error, PreconditionError):
        return replaced(where)
    if isinstance(error, (InvalidPathError, ValueError)) and request == "list":
        return StorageError(
            "an object below here has a name that cannot be asked for: with an empty part, '.' or '..' as a "
            "part, or a line break",
            where,
            "find it by a listing of the store's own tools, and delete it or give it another name",
        )
    if isinstance(error, (InvalidPathError, ValueError)):
        return StorageError("the store cannot hold an object of that name", where, "check who wrote the log")
    if _status(text) == 416 or "InvalidRangeRequest" in text or _EMPTY_RANGE in text:
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
    return any(mark in text for mark in (*_HTTP_MARKS, *_CUT_PAGE_MARKS))


def _short(text: str) -> str:
    """Status, error code and connection failure: what helps, without URLs or bodies."""
    status, code = _status(text), _CODE.search(text)
    words = [] if status is None else [f"HTTP {status}"]
    if code is not None:
        words.append(code.group(1))
    if not words and any(mark in text for mark in _CUT_PAGE_MARKS):
        words.append("a page of the listing is not whole")
    if not words:
        kind = _KIND.search(text)
        other = "the connection broke off" if _is_transient(None, text) else "its answer cannot be read"
        words.append(_CONNECTION_WORDS.get(kind.group(1) if kind else "", other))
    return ", ".join(words)


def _not_found(text: str, where: str) -> ObjectNotFoundError:
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        return ObjectNotFoundError(
            "the bucket or container does not exist", where, "check the table's URL and the account"
        )
    return ObjectNotFoundError("there is no such object", where, "check the table's URL")
