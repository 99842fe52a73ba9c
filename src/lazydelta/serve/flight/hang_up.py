"""Connections of a port, ended from this side.

Why: Flight waits for every call when it shuts down, and a call whose client has stopped reading never ends by
itself; Arrow offers no way to end it. Contract: the connections that this process accepted on the port are
shut down, so that their calls end as if the client had gone away; the port and other sockets are left alone.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

_OPEN_FILES = Path("/dev/fd")


def hang_up(port: int) -> int:
    """End them; how many there were."""
    return sum(_hung_up(int(path.name), port) for path in list(_OPEN_FILES.iterdir()))


def _hung_up(number: int, port: int) -> bool:
    """Whether an open file is such a connection, which is shut down then."""
    try:
        copy = os.dup(number)
    except OSError:  # closed meanwhile
        return False
    try:
        connection = socket.socket(fileno=copy)
    except OSError:  # no socket
        os.close(copy)
        return False
    with connection, suppress(OSError):  # not connected
        is_tcp = connection.family in (socket.AF_INET, socket.AF_INET6)
        if is_tcp and connection.getsockname()[1] == port and connection.getpeername():
            connection.shutdown(socket.SHUT_RDWR)
            return True
    return False
