"""A folder as a bucket behind a faulty line: `python -m bench.soak_store FOLDER`. Prints its port.

Contract: read-only, loopback only; ends when standard input does. One request in twenty goes wrong: it is
reset, cut, truncated, throttled or stalled for a moment.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from bench.ladder_server import make_server
from tests.support.proxy import Fault, HttpProxy, by_seed

FAULTS = (
    Fault(kind="reset"),
    Fault(kind="cut", after_bytes=1000),
    Fault(kind="truncate", after_bytes=100),
    Fault(kind="status", status=503),
    Fault(kind="status", status=429, retry_after=0),
    Fault(kind="stall", seconds=0.3),
)
_SHARE = 0.05


def main(folder: str) -> None:
    """Until standard input ends."""
    server = make_server(Path(folder), 1.0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with HttpProxy(server.server_port) as proxy:
        proxy.plan = by_seed(1, _SHARE, *FAULTS)
        print(proxy.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
