"""The `delta-sharing` package for Python, in its own environment and process.

Contract: it is asked for one thing after the other; what it raises comes back as `PeerError` with its text.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.environments import python_of
from lazydelta.serve.sharing import PREFIX
from tests.support.serving import RunningServer

# At the end of a program: the package's own threads were once seen to abort the process as it ended.
AT_ONCE = "\nimport os, sys; sys.stdout.flush(); os._exit(0)\n"

_WORKER = """
import json, sys, contextlib
import delta_sharing
from delta_sharing import SharingClient
from delta_sharing.reader import DeltaSharingReader

def rows(frame):
    return json.loads(frame.to_json(orient="records", date_format="iso"))

def hinted(url, hints, limit=None):
    from delta_sharing.delta_sharing import _parse_url
    from delta_sharing.protocol import DeltaSharingProfile, Table
    from delta_sharing.rest_client import DataSharingRestClient
    profile, share, schema, table = _parse_url(url)
    reader = DeltaSharingReader(
        table=Table(name=table, share=share, schema=schema),
        rest_client=DataSharingRestClient(DeltaSharingProfile.read_from_file(profile), num_retries=0),
        predicateHints=hints, limit=limit)
    return reader.to_pandas()

for line in sys.stdin:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            answer = {"found": eval(json.loads(line))}
    except BaseException as problem:
        answer = {"error": type(problem).__name__ + ": " + str(problem)}
    print(json.dumps(answer, default=str), flush=True)
"""


class PeerError(Exception):
    """What the package raised."""


class SharingPeer:
    """The package, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def profile(self, server: RunningServer, token: str = "none") -> str:
        """A profile file for a server."""
        path = self._folder / f"{server.ports.http}-{len(list(self._folder.iterdir()))}.share"
        told = {
            "shareCredentialsVersion": 1,
            "endpoint": f"{server.http_url}{PREFIX}",
            "bearerToken": token,
        }
        path.write_text(json.dumps(told), "utf-8")
        return str(path)

    def ask(self, expression: str) -> Any:
        """The value of an expression over the package."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(expression) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer["found"]


@contextmanager
def sharing_peer(folder: Path) -> Iterator[SharingPeer]:
    """The package for as long as the block takes."""
    command = [str(python_of("delta-sharing")), "-c", _WORKER]
    with (folder / "peer.log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
        )
        try:
            yield SharingPeer(process, folder)
        finally:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
            process.wait(30)
            process.stdout.close()
