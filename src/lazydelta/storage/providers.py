"""Credentials that come from Python: asked for when they are needed, and again before they run out.

A provider is a callable without arguments that returns what obstore's providers return (`token`, `sas_token`
or `access_key` for Azure; `access_key_id`, `secret_access_key` and `token` for S3; with `expires_at`, or
without), an Azure bearer token as text, or an awaitable of either. Objects of azure-identity (`get_token`)
and sessions of boto3 (`get_credentials`) are taken as they are.
Contract: obstore holds what it is given for `limits.CREDENTIAL_LEASE_SECONDS` and then asks here, so that
`renew` (after a store refused) takes effect that soon. The provider itself is asked only when what it gave is
about to run out, or was refused: once, however many requests wait for the answer, and whether it gives one or
raises. What it raises is told by its type alone: the text may hold secrets; what ends a program
(`KeyboardInterrupt`, `SystemExit`) passes as it is. It is asked for by the thread of the request (`prepare`),
not by obstore, which would make an error of that, too; and in a thread of its own, which the end of the
program does not wait for: it may never answer.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.storage.deadline import NEVER, Deadline
from lazydelta.storage.in_time import awaited
from lazydelta.storage.own_thread import OwnThread

_AZURE_SCOPE = "https://storage.azure.com/.default"
_FORMS = {
    "azure": ({"token"}, {"sas_token"}, {"access_key"}),
    "s3": ({"access_key_id", "secret_access_key"},),
}
Ask = Callable[[], Any]  # what a provider returns is checked when it comes

_serials: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_serial = count(1)


class ProviderProblem(Exception):  # noqa: N818 - not raised to users: obstore carries its text to `denials`
    """Why a provider gave no credentials, in words that hold no secret."""


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """Credentials, their end, and when to ask for others. Holds secrets: never shown."""

    credential: dict[str, Any]
    expires_at: datetime
    renew_at: datetime

    def __repr__(self) -> str:
        return f"_Held(until {self.expires_at})"


class RenewingProvider:
    """A provider as obstore calls it."""

    refresh_threshold = timedelta(0)  # read by obstore: the lease is short as it is

    def __init__(self, ask: Ask, *, kind: str) -> None:
        self._ask = ask
        self._kind = kind
        self._lock = threading.Lock()  # of what follows, never held for long
        self._asked: Future[_Held] | None = None  # what the provider was asked last
        self._held: _Held | None = None
        self._renewed_at = -limits.CREDENTIAL_RENEWAL_SECONDS_MIN
        self._renewals = 0

    def __call__(self, deadline: Deadline = NEVER, where: str = "") -> dict[str, Any]:
        """What obstore signs with, until the lease ends."""
        held = self._lasting()
        if isinstance(held, Future):
            held = awaited(held, deadline, where)
        lease = datetime.now(UTC) + timedelta(seconds=limits.CREDENTIAL_LEASE_SECONDS)
        return {**held.credential, "expires_at": min(held.expires_at, lease)}

    def prepare(self, deadline: Deadline = NEVER, where: str = "") -> None:
        """Ask for credentials where none are held that last: this thread gets what is raised."""
        self(deadline, where)

    def __repr__(self) -> str:
        return f"RenewingProvider({self._kind})"

    @property
    def renewals(self) -> int:
        """How often credentials were thrown away; a request remembers it, for `renew`.

        A renewal counts once obstore has forgotten what it had: until then requests go out with that.
        """
        with self._lock:
            is_under_way = time.monotonic() < self._renewed_at + limits.CREDENTIAL_LEASE_SECONDS
            return self._renewals - 1 if is_under_way and self._renewals else self._renewals

    def renew(self, seen: int) -> bool:
        """Throw away what was refused to a request that began at `seen`, and say whether to try once more.

        Waits until obstore has forgotten it, too. A request that is refused right after a renewal is refused
        for another reason than age; one that had no credentials at all, because the provider gave none.
        """
        with self._lock:
            now = time.monotonic()
            if self._renewals == seen:
                is_recent = now - self._renewed_at < limits.CREDENTIAL_RENEWAL_SECONDS_MIN
                if is_recent or self._held is None:
                    return False
                self._held, self._renewed_at = None, now
                self._renewals += 1
            wait_seconds = self._renewed_at + limits.CREDENTIAL_LEASE_SECONDS - now
        time.sleep(max(0.0, wait_seconds))
        return True

    def _lasting(self) -> _Held | Future[_Held]:
        """What is held and need not be renewed yet, or is being asked for."""
        with self._lock:
            if self._held is not None and datetime.now(UTC) < self._held.renew_at:
                return self._held
            if self._asked is None or self._asked.done():
                self._asked = OwnThread("lazydelta-credentials", is_daemon=True).submit(self._fetched)
            return self._asked

    def _fetched(self) -> _Held:
        try:
            answer, problem = _held(*_read(_waited_for(self._ask()), self._kind)), ""
        except Exception as error:  # noqa: BLE001 - a library of the user's: anything
            answer, problem = None, _told(error)
        with self._lock:
            self._held = answer or _to_its_end(self._held)
            held = self._held
        if held is None:
            raise ProviderProblem(problem)
        return held


def provider_of(given: Any, *, kind: str) -> RenewingProvider:  # Any: an object of some other library
    """The provider behind what a caller gave as `credential_provider`."""
    if isinstance(given, RenewingProvider):
        return given
    if kind == "azure" and callable(getattr(given, "get_token", None)):
        return RenewingProvider(lambda: _azure_token(given), kind=kind)
    if kind == "s3" and callable(getattr(given, "get_credentials", None)):
        return RenewingProvider(lambda: _session_keys(given), kind=kind)
    if callable(given):
        return RenewingProvider(given, kind=kind)
    wanted = "an azure-identity credential" if kind == "azure" else "a boto3 session"
    raise InvalidRequestError(
        f"the credential provider is {type(given).__name__!r}, which cannot be asked for credentials",
        "credential_provider",
        f"give a callable that returns a dictionary (docs/storage.md), or {wanted}",
    )


def options_of(given: Any) -> dict[str, Any]:
    """Options that come with what was given: the region of a session, the `config` of obstore's providers."""
    config, region = getattr(given, "config", None), getattr(given, "region_name", None)
    found = dict(config) if isinstance(config, Mapping) else {}
    return {"region": region, **found} if isinstance(region, str) else found


def profile_session(profile: str) -> Any:
    """A session of boto3 for a profile of the AWS command line; None where boto3 is not installed."""
    try:
        import boto3  # type: ignore[import-untyped]  # it has no types
        from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]  # likewise
    except ImportError:
        return None
    try:
        return boto3.Session(profile_name=profile or None)
    except BotoCoreError as problem:
        raise InvalidRequestError(
            f"the profile {profile or 'default'!r} of the AWS command line cannot be used: "
            f"{type(problem).__name__}",
            "storage option profile, or AWS_PROFILE",
            "check ~/.aws/config and ~/.aws/credentials, or name another profile",
        ) from None


def provider_serial(provider: Any) -> int:
    """A number that no other provider of this process has; 0 for none."""
    if provider is None:
        return 0
    try:
        return _serials.setdefault(provider, next(_serial))
    except TypeError:  # cannot be hashed or referenced weakly: never the same as another
        return next(_serial)


def _azure_token(credential: Any) -> dict[str, Any]:
    found = credential.get_token(_AZURE_SCOPE)
    if inspect.isawaitable(found):
        found = _waited_for(found)
    return {"token": found.token, "expires_at": datetime.fromtimestamp(found.expires_on, UTC)}


def _session_keys(session: Any) -> dict[str, Any]:
    credentials = session.get_credentials()
    if credentials is None:
        raise ProviderProblem("the session has no credentials")
    keys = credentials.get_frozen_credentials()
    return {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "token": keys.token,
        "expires_at": datetime.now(UTC) + timedelta(seconds=limits.CREDENTIAL_SESSION_SECONDS),
    }


def _waited_for(answer: Any) -> Any:
    async def wait(awaitable: Awaitable[Any]) -> Any:
        return await awaitable

    return asyncio.run(wait(answer)) if inspect.isawaitable(answer) else answer


def _read(answer: Any, kind: str) -> tuple[dict[str, Any], datetime | None]:
    """The credential and its end, or a `ProviderProblem`."""
    if isinstance(answer, str) and kind == "azure":
        answer = {"token": answer.removeprefix("Bearer ")}
    if not isinstance(answer, Mapping):
        raise ProviderProblem(f"the provider returned {type(answer).__name__}, not a dictionary")
    form = next((form for form in _FORMS[kind] if form <= set(answer)), None)
    if form is None:
        wanted = " or ".join(" with ".join(sorted(form)) for form in _FORMS[kind])
        raise ProviderProblem(f"the provider's dictionary lacks {wanted}")
    credential = {name: answer[name] for name in form}
    session = answer.get("token") or answer.get("session_token") or None
    if kind == "s3" and session is not None:
        credential["token"] = session
    _check_text(credential)
    return {"token": None, **credential} if kind == "s3" else credential, _end(answer.get("expires_at"))


def _check_text(credential: Mapping[str, Any]) -> None:
    names = " or ".join(sorted(credential))
    if not all(isinstance(value, str) and value for value in credential.values()):
        raise ProviderProblem(f"the provider's {names} is not text, or empty")
    if not all(value.isprintable() and value.isascii() for value in credential.values()):
        raise ProviderProblem(f"the provider's {names} has a line break or the like in it")


def _end(given: Any) -> datetime | None:
    """When credentials end, by what a provider says of it."""
    if isinstance(given, int | float):
        try:
            return datetime.fromtimestamp(given, UTC)
        except (ValueError, OverflowError, OSError):
            raise ProviderProblem("the provider's expires_at is no time in seconds since 1970") from None
    if given is not None and not isinstance(given, datetime):
        raise ProviderProblem("the provider's expires_at is not a datetime")
    return given if given is None or given.tzinfo is not None else given.replace(tzinfo=UTC)


def _held(credential: dict[str, Any], expires_at: datetime | None) -> _Held:
    """An answer, from now on: a provider may have taken its time."""
    if expires_at is None:
        never = datetime.max.replace(tzinfo=UTC)
        return _Held(credential=credential, expires_at=never, renew_at=never)
    lifetime = (expires_at - datetime.now(UTC)).total_seconds()
    margin = min(limits.CREDENTIAL_MARGIN_SECONDS_MAX, lifetime / 2)
    if lifetime <= 0:  # whether the store takes it shows; one request does not ask for it twice
        margin = lifetime - limits.CREDENTIAL_LEASE_SECONDS
    return _Held(
        credential=credential, expires_at=expires_at, renew_at=expires_at - timedelta(seconds=margin)
    )


def _to_its_end(held: _Held | None) -> _Held | None:
    """What serves until its end, where the provider fails meanwhile; it is asked again in a while."""
    now = datetime.now(UTC)
    if held is None or now >= held.expires_at:
        return None
    later = now + timedelta(seconds=limits.CREDENTIAL_RENEWAL_SECONDS_MIN)
    return msgspec.structs.replace(held, renew_at=min(held.expires_at, later))


def _told(problem: Exception) -> str:
    if isinstance(problem, ProviderProblem):
        return str(problem)
    return f"the provider raised {type(problem).__name__}"
