"""What scoped copies of one opened table share: the client, the host's gate, the policy."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import TypeVar

from obstore.store import AzureStore, S3Store

from lazydelta.errors import AccessDeniedError
from lazydelta.storage.deadline import Deadline
from lazydelta.storage.hosts import host_named, host_of
from lazydelta.storage.places import Places
from lazydelta.storage.providers import RenewingProvider
from lazydelta.storage.retry import RetryPolicy

T = TypeVar("T")


class RemoteLink:
    """One client, one place in its container, and the host that all tables there share."""

    def __init__(
        self,
        *,
        store: AzureStore | S3Store,
        kind: str,
        root: str,
        prefix: str,
        policy: RetryPolicy,
        lists_from_offset: bool = True,
        host: str | None = None,
        provider: RenewingProvider | None = None,
        signature_end: datetime | None = None,
        places: Places | None = None,
    ) -> None:
        self.store = store
        self.kind = kind
        self.root = root
        self.prefix = prefix
        self.policy = policy
        self.lists_from_offset = lists_from_offset
        self.signature_end = signature_end  # where the client signs in with one that says it
        self.provider = provider  # of credentials that may have to be renewed
        self.places = places  # what may be read outside the table's root
        self.host = host_named(host or host_of(root))

    def at(self, prefix: str, root: str) -> RemoteLink:
        """Another place in the same container; the host is the same."""
        other = copy(self)
        other.prefix, other.root = prefix, root
        return other

    def with_renewal(self, attempt: Callable[[], T]) -> T:
        """The attempt's answer; where credentials were refused that can be renewed, of a second attempt."""
        provider = self.provider
        if provider is None:
            return attempt()
        seen = provider.renewals
        try:
            return attempt()
        except AccessDeniedError:
            if not provider.renew(seen):
                raise
        return attempt()

    def prepare(self, deadline: Deadline, where: str) -> None:
        """See to it that obstore finds credentials, where they come from Python."""
        if self.provider is not None:
            self.provider.prepare(deadline, where)

    def key(self, name: str) -> str:
        """The object's key in the container."""
        return f"{self.prefix}/{name}" if self.prefix else name
