"""Simulated tables served as a bucket: `python -m bench.scale.server FOLDER --latency-ms 30`.

Contract: as `bench.ladder_server`; serves every table that lies in the folder beside its description.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.ladder_server import make_server, serve_until_ended
from bench.scale.bucket import SimulatedBucket
from bench.scale.simulated import described_tables


def main(arguments: list[str] | None = None) -> None:
    """The command line: serve until ended."""
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.scale.server", description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    options = parser.parse_args(arguments)
    bucket = SimulatedBucket(options.folder, described_tables(options.folder))
    server = make_server(bucket, options.latency_ms)
    serve_until_ended(server)


if __name__ == "__main__":
    main()
