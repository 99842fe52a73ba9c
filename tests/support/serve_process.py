"""`lazydelta serve` as a process of its own: what it prints, what it logs, the signals it gets, how it ends.

Contract: `serving(...)` is there when the ports are told, and killed at the end where it still runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import flight

ROOT = Path(__file__).resolve().parents[2]
SECONDS_MAX = 60.0  # a busy machine takes its time


class ServeProcess:
    """One run of the command."""

    def __init__(self, config: Path, environment: Mapping[str, str]) -> None:
        self.config = config
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lazydelta", "serve", "--config", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths, **environment},
            text=True,
        )
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self._readers = [
            threading.Thread(target=_collect, args=(stream, into), daemon=True)
            for stream, into in ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def ports(self) -> dict[str, int]:
        """Once they are told."""
        assert self.eventually(lambda: bool(self.stdout) or self._process.poll() is not None)
        assert self.stdout, "".join(self.stderr)
        found: dict[str, int] = json.loads(self.stdout[0])
        return found

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of stderr, each of which must be JSON."""
        return [json.loads(line) for line in list(self.stderr)]

    @property
    def calls(self) -> dict[str, dict[str, Any]]:
        """The lines of the access log, by id."""
        return {line["id"]: line for line in self.log if line["logger"] == "lazydelta.access"}

    def says(self, text: str) -> bool:
        """Whether the log does, soon."""
        return self.eventually(lambda: any(text in line.get("message", "") for line in self.log))

    def flight(self) -> flight.FlightClient:
        """A client of Flight."""
        return flight.connect(f"grpc://127.0.0.1:{self.ports['flight']}")

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, str], str]:
        """Status, headers, body."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports['http']}{path}", headers=dict(headers or {})
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, _lower(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, _lower(refused.headers), refused.read().decode()

    def signal(self, number: signal.Signals) -> None:
        """Send it."""
        self._process.send_signal(number)

    def ended(self, seconds: float = SECONDS_MAX) -> int:
        """The exit code, once it has ended; everything it wrote is read then."""
        code = self._process.wait(seconds)
        for reader in self._readers:
            reader.join()
        return code

    def close(self) -> None:
        """End it, whatever it is at."""
        if self._process.poll() is None:
            self._process.kill()
        self.ended()

    def eventually(self, is_so: Callable[[], bool], seconds: float = SECONDS_MAX) -> bool:
        """Whether it becomes so in time."""
        until = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True


@contextmanager
def serving(
    folder: Path, tables: Mapping[str, str], more: str = "", environment: Mapping[str, str] | None = None
) -> Iterator[ServeProcess]:
    """Serve these tables (name to URL) by both protocols; `more` is further TOML, `[server]` first."""
    config = folder / "serve.toml"
    config.write_text(config_text(tables, more), "utf-8")
    process = ServeProcess(config, environment or {})
    try:
        assert process.ports
        yield process
    finally:
        process.close()


def config_text(tables: Mapping[str, str], more: str = "") -> str:
    """A file that serves them."""
    named = "".join(f"[tables.{name}]\nurl = {json.dumps(url)}\n" for name, url in tables.items())
    return f"[server]\nflight_port = 0\nhttp_port = 0\n{more}\n{named}"


def _collect(stream: Any, into: list[str]) -> None:
    with stream:
        for line in stream:
            into.append(line)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
