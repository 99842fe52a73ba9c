"""A faulty line to a store: `python -m bench.chaos.proxy PORT SEED EVENTS`. Prints its port.

Contract: most requests pass after a short wait; a few are reset, cut, stalled, lost, throttled or
truncated. No fault hits so often that a request with its retries must fail.
"""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path

from bench.chaos.events import Events
from tests.support.proxy import Fault, HttpProxy, Request

LATENCY_MS = 2.0
FAULTS = (
    ("reset", 0.005),
    ("cut", 0.003),
    ("lose", 0.002),
    ("status", 0.004),
    ("truncate", 0.003),
    ("stall", 0.001),
)


def main(port: str, seed: str, events_path: str) -> None:
    """Until standard input ends."""
    dice, events, lock = random.Random(seed), Events(Path(events_path)), threading.Lock()

    def plan(request: Request) -> Fault | None:
        with lock:
            fault = _fault(dice)
        if fault is not None:
            events.tell(fault=fault.kind, request=f"{request.method} {request.path}"[:200])
        return fault

    with HttpProxy(int(port), latency_ms=LATENCY_MS) as proxy:
        proxy.plan = plan
        print(proxy.port, flush=True)
        sys.stdin.read()


def _fault(dice: random.Random) -> Fault | None:
    at = dice.random()
    for kind, share in FAULTS:
        if at < share:
            return _made(kind, dice)
        at -= share
    return None


def _made(kind: str, dice: random.Random) -> Fault:
    if kind == "status":
        return Fault(
            kind="status", status=dice.choice([503, 429, 500]), retry_after=dice.choice([None, 0, 1])
        )
    if kind == "cut":
        return Fault(kind="cut", after_bytes=dice.choice([0, 10, 1000, 20000]))
    if kind == "truncate":
        return Fault(kind="truncate", after_bytes=dice.choice([1, 100, 5000]))
    if kind == "stall":
        return Fault(kind="stall", seconds=dice.choice([0.5, 2.0, 8.0]))
    return Fault(kind="lose") if kind == "lose" else Fault(kind="reset")


if __name__ == "__main__":
    main(*sys.argv[1:])
