"""What the server refuses that no table is to blame for; protocols turn them into their own statuses."""

from __future__ import annotations

from lazydelta.errors import LazyDeltaError


class UnauthenticatedError(LazyDeltaError):
    """Nobody signed in, or not as anyone who may."""


class LimitReachedError(LazyDeltaError):
    """A limit of the server or of this client; the text says which."""


class StalledError(LimitReachedError):
    """A request whose body does not come."""


class UnavailableError(LazyDeltaError):
    """The server is going down, or was told to stop this scan; another try may do better."""


class CancelledError(LazyDeltaError):
    """The client told the scan to stop, by another call."""


class ForbiddenError(LazyDeltaError):
    """A link that was altered, has expired, or is for a file that its client may not read any more."""


class TooLargeError(LazyDeltaError):
    """A request that is larger than the server reads."""
