"""Who asks: by a bearer token, by a certificate, or anyone where nobody has to sign in.

Contract: tokens are known by their SHA-256 alone; they are long and random (`new_token`), so that nothing
slower is needed. Without clients in the configuration everyone is `ANYONE`, which `config.py` allows on
loopback only.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

import msgspec

from lazydelta.serve.config import ANYONE_NAME
from lazydelta.serve.config_parts import ClientLimits, ClientPart
from lazydelta.serve.refusals import UnauthenticatedError


class Client(msgspec.Struct, frozen=True):
    """Somebody who signed in."""

    name: str
    roles: frozenset[str] = frozenset()
    limits: ClientLimits = ClientLimits()

    def may_read(self, readers: frozenset[str] | None) -> bool:
        """Whether one of the names that may read is this client's, or a role of it."""
        return readers is None or self.name in readers or bool(self.roles & readers)


ANYONE = Client(ANYONE_NAME)


class SignIn:
    """The clients of one configuration."""

    def __init__(self, clients: Iterable[ClientPart]) -> None:
        known = [(part, Client(part.name, frozenset(part.roles), part.limits)) for part in clients]
        self._by_name = {client.name: client for _, client in known}
        self._by_token = {part.token_sha256: client for part, client in known if part.token_sha256}
        self._by_certificate = {part.certificate: client for part, client in known if part.certificate}

    @property
    def is_open(self) -> bool:
        """Whether nobody has to sign in."""
        return not self._by_token and not self._by_certificate

    @property
    def has_certificates(self) -> bool:
        """Whether some sign in by a certificate."""
        return bool(self._by_certificate)

    def named(self, name: str) -> Client | None:
        """The client of that name, as it is today."""
        return ANYONE if self.is_open and name == ANYONE.name else self._by_name.get(name)

    def client(self, *, token: str | None = None, certificate_name: str | None = None) -> Client:
        """Who that is; a token comes before a certificate, and a wrong one is not overlooked."""
        if self.is_open:
            return ANYONE
        found = None
        if token is not None:
            found = self._by_token.get(token_digest(token))
        elif certificate_name is not None:
            found = self._by_certificate.get(certificate_name)
        if found is None:
            told = (
                "nobody signed in" if token is None and certificate_name is None else "the sign-in is wrong"
            )
            raise UnauthenticatedError(told, "authorization", "send `Authorization: Bearer TOKEN`")
        return found


def bearer_token(header: str | None) -> str | None:
    """The token of an `Authorization` header, or None."""
    kind, _, token = (header or "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None


def token_digest(token: str) -> str:
    """As the configuration has it."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)
