"""The ladder's store with a network that breaks: `python -m bench.faults_server FOLDER --reset-share 0.05`.

Contract: as `bench.ladder_server`; besides, that share of the requests meets a connection that is reset after
the latency, before the store answers. Which ones follows from the seed and their number. Questions about the
account are spared.
"""

from __future__ import annotations

import argparse
import itertools
import random
import socket
import struct
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

from bench.ladder_server import BucketHandler, make_server, serve_until_ended


class BreakingHandler(BucketHandler):
    """One connection, which may end at any request."""

    reset_share = 0.0
    latency_s = 0.0
    seed = 0
    numbers = itertools.count()  # of all connections; `next` is atomic

    def do_GET(self) -> None:  # noqa: N802 - the name that the standard library calls
        """Answer, or reset the connection."""
        if not self.path.startswith("/-/") and self._is_met():
            time.sleep(self.latency_s)
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        super().do_GET()

    def _is_met(self) -> bool:
        return random.Random(f"{self.seed}:{next(self.numbers)}").random() < self.reset_share

    def finish(self) -> None:
        """Without a farewell: a connection that lingers for no time is reset when it is closed."""
        super().finish()
        self.connection.close()


def make_breaking_server(
    folder: Path, *, latency_ms: float, reset_share: float, seed: int
) -> ThreadingHTTPServer:
    """A server on a free port of this machine; the caller lets it serve."""
    server = make_server(folder, latency_ms)
    served = {"served": server.RequestHandlerClass.served}  # type: ignore[attr-defined]  # of its subclass
    told = {"reset_share": reset_share, "latency_s": latency_ms / 1000, "seed": seed}
    server.RequestHandlerClass = type("Handler", (BreakingHandler,), served | told)
    # Connections are closed without the polite farewell that would let them end in peace.
    server.shutdown_request = server.close_request  # type: ignore[method-assign]
    return server


def main(arguments: list[str] | None = None) -> None:
    """The command line: serve until ended."""
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.faults_server", description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    parser.add_argument("--reset-share", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    server = make_breaking_server(
        options.folder, latency_ms=options.latency_ms, reset_share=options.reset_share, seed=options.seed
    )
    serve_until_ended(server)


if __name__ == "__main__":
    main()
