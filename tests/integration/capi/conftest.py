"""A probe in C, linked with the library, and tables that have something of everything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.actions import add, inline_dv, relative_dv, stats
from tests.support.capi_library import PROGRAMS, Run, c_environment
from tests.support.compiled_once import c_program
from tests.support.table_builder import TableBuilder

RUN_SECONDS_MAX = 120


@pytest.fixture(scope="session")
def probe() -> Run:
    """Run the probe: an action, a table, further words."""
    program = c_program([PROGRAMS / "probe.c"])

    def run(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(program), *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS_MAX,
            env=c_environment(**environment),
        )

    run.program = program  # type: ignore[attr-defined]  # for who must start it in another way
    return run


@pytest.fixture(scope="session")
def mixed_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint and a tail; deletion vectors, mapped columns, partition values that are odd or null."""
    builder = TableBuilder(
        tmp_path_factory.mktemp("mixed"),
        schema={"kind": "string", "value": "long"},
        partition_columns=("kind",),
        column_mapping="name",
    )
    odd = ["plain", None, "a\0b", "süß", "", "x'y\"z"]
    files = [
        add(f"part-{i}.parquet", partition={"kind": odd[i % len(odd)]}, size=100 + i, stats=stats(i + 1))
        for i in range(12)
    ]
    builder.commit(files[:6]).checkpoint()
    builder.commit([add("with%20space%20and%20ü.parquet", partition={"kind": "other"}), *files[6:]])
    builder.commit(
        [
            add("dv-1.parquet", partition={"kind": "plain"}, deletion_vector=relative_dv(rows=3)),
            add("dv-2.parquet", partition={"kind": "plain"}, deletion_vector=inline_dv()),
        ],
        removes=["part-2.parquet"],
    )
    return builder.path
