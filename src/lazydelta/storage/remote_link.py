"""What scoped copies of one opened table share: the client, the gate, the policy."""

from __future__ import annotations

import threading
from copy import copy

from obstore.store import AzureStore, S3Store

from lazydelta import limits
from lazydelta.storage.retry import RetryPolicy


class RemoteLink:
    """One client, one place in its container, and at most `limits.CONNECTIONS_MAX` requests at once."""

    def __init__(
        self,
        *,
        store: AzureStore | S3Store,
        kind: str,
        root: str,
        prefix: str,
        policy: RetryPolicy,
        lists_from_offset: bool = True,
    ) -> None:
        self.store = store
        self.kind = kind
        self.root = root
        self.prefix = prefix
        self.policy = policy
        self.lists_from_offset = lists_from_offset
        self.gate = threading.BoundedSemaphore(limits.CONNECTIONS_MAX)

    def at(self, prefix: str, root: str) -> RemoteLink:
        """Another place in the same container; the gate is shared."""
        other = copy(self)
        other.prefix, other.root = prefix, root
        return other

    def key(self, name: str) -> str:
        """The object's key in the container."""
        return f"{self.prefix}/{name}" if self.prefix else name
