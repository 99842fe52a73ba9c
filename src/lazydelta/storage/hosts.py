"""What every table and scan of the process shares about one host: the gate, and what the host said of pauses.

Contract: kept as long as somebody has it, so that a process which opens many hosts holds only those in use. A
forked child begins with empty gates: what was under way was its parent's.
"""

from __future__ import annotations

import os
import threading
from weakref import WeakValueDictionary

import msgspec

from lazydelta.storage.host_gate import HostGate
from lazydelta.storage.throttling import HostPause


class Host(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """One host, or one account of a store."""

    gate: HostGate
    pause: HostPause


def host_named(name: str) -> Host:
    """The host, by any name that tells hosts apart."""
    with _lock:
        host = _hosts.get(name)
        if host is None:
            gate = HostGate()
            host = _hosts[name] = Host(gate, HostPause(gate))
        return host


def host_of(root: str) -> str:
    """The name of a table's host where it has no endpoint of its own: its account, or its bucket on S3.

    A bucket of S3 has a host name of its own.
    """
    scheme, _, rest = root.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"


_hosts: WeakValueDictionary[str, Host] = WeakValueDictionary()
_lock = threading.Lock()


def _start_anew() -> None:
    global _lock  # noqa: PLW0603 - another thread may have held it at the fork
    _lock = threading.Lock()
    for host in list(_hosts.values()):
        host.gate.start_anew()
        host.pause.start_anew()


os.register_at_fork(after_in_child=_start_anew)
