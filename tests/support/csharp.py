"""The C# client and the program that tries it, both compiled by mono once for their sources."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.support.capi_library import c_environment, library_folder
from tests.support.compiled_once import compiled_once
from tests.support.mono import mono

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "csharp"
_DRIVER = ROOT / "tests" / "integration" / "csharp" / "Driver.cs"
_REFERENCES = ("-r:System.Net.Http.dll", "-r:System.Core.dll")


def compiled_client() -> Path:
    """`LazyDelta.dll`, with the documentation that its comments make beside it."""
    sources = _sources()

    def make(folder: Path) -> None:
        documentation = f"-doc:{folder / 'LazyDelta.xml'}"
        flags = ("-target:library", "-unsafe", documentation, *_REFERENCES)
        mono().compiled(sources, folder / "LazyDelta.dll", *flags)

    return compiled_once("csharp-client", [*sources, *mono().command], make) / "LazyDelta.dll"


def compiled_driver() -> Path:
    """The program of the tests, with the client's sources within it."""
    sources = [*_sources(), _DRIVER]

    def make(folder: Path) -> None:
        mono().compiled(sources, folder / "Driver.exe", "-unsafe", *_REFERENCES)

    return compiled_once("csharp-driver", [*sources, *mono().command], make) / "Driver.exe"


class Driver:
    """Runs an action of the program: in a process that stays, or in one of its own."""

    def __init__(self, program: Path) -> None:
        self._command = [*mono().command, "--debug", str(program)]
        self._environment = csharp_environment()
        self._resident: subprocess.Popen[str] | None = None

    def __call__(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run it in the process that stays."""
        if self._resident is None:
            self._resident = self.start("resident")
        assert self._resident.stdin is not None and self._resident.stdout is not None
        self._resident.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self._resident.stdin.flush()
        line = self._resident.stdout.readline()
        if not line:
            with self._resident as ended:
                code = ended.wait()
            self._resident = None
            raise AssertionError(f"the driver ended with {code} at {words}")
        told = json.loads(line)
        return subprocess.CompletedProcess(list(words), told["code"], told["out"], told["err"])

    def alone(
        self, *words: object, given: str | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run it in a process of its own, with this input and this environment."""
        return subprocess.run(
            [*self._command, *map(str, words)],
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=120,
            env={**self._environment, **more},
        )

    def start(self, *words: object) -> subprocess.Popen[str]:
        """Begin it in a process of its own, to talk with it."""
        return subprocess.Popen(
            [*self._command, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=self._environment,
        )

    def close(self) -> None:
        """End the process that stays, which must end by itself with its input."""
        if self._resident is not None:
            with self._resident as process:
                assert process.stdin is not None
                process.stdin.close()
                assert process.wait(60) == 0
            self._resident = None


def csharp_environment() -> dict[str, str]:
    """What a program of mono's needs to find the library as this process does."""
    environment = {**mono().environment, **c_environment(LD_LIBRARY_PATH=str(library_folder()))}
    kept = {name: mono().environment[name] for name in ("MONO_CFG_DIR",) if name in mono().environment}
    return {**environment, **kept}


def _sources() -> list[Path]:
    return sorted((CLIENT / "src").glob("*.cs"))
