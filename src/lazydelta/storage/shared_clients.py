"""Clients that tables share: one for each container and each way of signing in.

Why: a client has the connections. The next table of the same container, or the same table opened again, need
not shake hands once more.
Contract: two openings share a client only where the account, the container, every option, every variable that
a client may look at and the timeouts are the same. Few clients are held; one that is let go lives on in the
tables that have it. A forked child begins with none: connections do not survive a fork.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping

from lazydelta import limits
from lazydelta.settings import Settings
from lazydelta.storage.access import access_digest
from lazydelta.storage.address import TableAddress
from lazydelta.storage.connect import Client, connected

_clients: OrderedDict[Hashable, Client] = OrderedDict()
_lock = threading.Lock()


def shared_client(address: TableAddress, settings: Settings, environment: Mapping[str, str]) -> Client:
    """A client for the address's container, new or known."""
    key = (
        address.kind,
        address.account,
        address.container,
        address.azure_suffix,
        address.region,
        access_digest(settings, environment),
        settings.request_timeout_seconds,
        settings.request_attempts_max,
    )
    with _lock:
        client = _clients.pop(key, None) or connected(address, settings, environment)
        _clients[key] = client
        while len(_clients) > limits.CLIENTS_KEPT_MAX:
            _clients.popitem(last=False)
        return client


def _start_anew() -> None:
    global _lock  # noqa: PLW0603 - another thread may have held it at the fork
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=_start_anew)
