"""Addresses to listen at, and why one cannot.

Contract: an error names the key of the configuration, the address and what the system said.
"""

from __future__ import annotations

import socket

import msgspec

from lazydelta.errors import InvalidRequestError

_BACKLOG = 2048


class Listening(msgspec.Struct, frozen=True):
    """One address, and the key that gave it."""

    host: str
    port: int
    key: str
    path: str  # of the configuration

    def refused(self, problem: BaseException) -> InvalidRequestError:
        """The error where it cannot be had."""
        told = problem.strerror if isinstance(problem, OSError) else str(problem)
        return InvalidRequestError(
            f"{self.key}: {self.host} port {self.port} cannot be listened at: {told}",
            self.path,
            "choose another port or host, or end what listens there",
        )


def bound(place: Listening) -> socket.socket:
    """A socket that listens there: from here on nobody is turned away."""
    found = _bound(place)
    found.listen(_BACKLOG)
    return found


def check_free(place: Listening) -> None:
    """Raise where the address cannot be had: gRPC does not say why."""
    _bound(place).close()


def _bound(place: Listening) -> socket.socket:
    try:
        found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
    except OSError as problem:
        raise place.refused(problem) from problem
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as problem:
        made.close()
        raise place.refused(problem) from problem
    made.set_inheritable(False)
    return made
