"""The C# client with the tests' driver, compiled by mono, and what it is tried on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.actions import add, inline_dv, relative_dv
from tests.support.csharp import Driver, compiled_client, compiled_driver
from tests.support.sharing_stub import SharingStub, sharing_stub
from tests.support.table_builder import TableBuilder


@pytest.fixture(scope="session")
def client() -> Path:
    """The client as a library, with the documentation that its comments make."""
    return compiled_client()


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    running = Driver(compiled_driver())
    yield running
    running.close()


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
