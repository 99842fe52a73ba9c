"""The C# client with the tests' driver, compiled by mono, and what it is tried on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.actions import add, inline_dv, relative_dv
from tests.support.capi_library import Run, c_environment, library_folder
from tests.support.mono import mono
from tests.support.sharing_stub import SharingStub, sharing_stub
from tests.support.table_builder import TableBuilder

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "clients" / "csharp"
REFERENCES = ("-r:System.Net.Http.dll", "-r:System.Core.dll")


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client as a library, with the documentation that its comments make."""
    target = tmp_path_factory.mktemp("client") / "LazyDelta.dll"
    sources = sorted((CLIENT / "src").glob("*.cs"))
    documentation = f"-doc:{target.with_suffix('.xml')}"
    return mono().compiled(sources, target, "-target:library", "-unsafe", documentation, *REFERENCES)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the driver, or start it: an action and further words."""
    sources = [*sorted((CLIENT / "src").glob("*.cs")), Path(__file__).parent / "Driver.cs"]
    target = tmp_path_factory.mktemp("driver") / "Driver.exe"
    program = mono().compiled(sources, target, "-unsafe", *REFERENCES)
    command = [*mono().command, "--debug", str(program)]
    environment = {**mono().environment, **c_environment(LD_LIBRARY_PATH=str(library_folder()))}
    if "MONO_CFG_DIR" in mono().environment:
        environment["MONO_CFG_DIR"] = mono().environment["MONO_CFG_DIR"]

    def run(*words: object, given: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *map(str, words)],
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=120,
            env={**environment, **more},
        )

    def start(*words: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*command, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment,
        )

    run.start = start  # type: ignore[attr-defined]  # for who talks with it
    return run


@pytest.fixture(scope="session")
def shared_table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint and a tail, mapped columns, odd partition values, deletion vectors."""
    builder = TableBuilder(
        tmp_path_factory.mktemp("shared"),
        schema={"kind": "string", "value": "long"},
        partition_columns=("kind",),
        column_mapping="name",
    )
    kinds = ["plain", None, "süß 😀", "", "x'y\"z\\"]
    files = [add(f"p{i}.parquet", partition={"kind": kinds[i % 5]}, size=10 + i) for i in range(17)]
    builder.commit(files[:8]).checkpoint()
    builder.commit(files[8:], removes=["p1.parquet"])
    builder.commit(
        [
            add("dv-1.parquet", partition={"kind": "plain"}, deletion_vector=relative_dv(rows=3)),
            add("dv-2.parquet", partition={"kind": "plain"}, deletion_vector=inline_dv()),
        ]
    )
    return str(builder.path)


@pytest.fixture
def stub(shared_table: str) -> Iterator[SharingStub]:
    with sharing_stub(shared_table) as running:
        yield running
