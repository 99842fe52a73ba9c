"""The cache over emulated stores: what a second query asks for, what a restored log gives, who shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add
from tests.support.cached import CACHED, LAZILY, Asked
from tests.support.proxy import HttpProxy
from tests.support.servers import TableServer
from tests.support.sidecar_damage import storage_of
from tests.support.table_builder import TableBuilder

SMALL = SidecarConfig(row_group_rows=10, row_groups_max=4)
LAST = "_event_hour >= '2026021004'"


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    ld.cache.clear()
    yield
    ld.cache.clear()


def hour_file(name: str, hour: int) -> dict[str, object]:
    return add(f"{name}.parquet", partition={"_event_hour": f"20260210{hour:02}"})


def table_in(folder: Path, *, name: str = "part") -> TableBuilder:
    table = TableBuilder(
        folder, schema={"value": "double", "_event_hour": "string"}, partition_columns=("_event_hour",)
    )
    table.commit([hour_file(f"{name}-{number:03}", number // 10) for number in range(60)]).checkpoint()
    build_sidecar(storage_of(table), config=SMALL)
    for number in range(4):
        table.commit([hour_file(f"{name}-tail-{number}", 5)])
    return table


def test_a_second_query_lists_once_and_with_staleness_not_at_all(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    table, url = table_in(tmp_path), remote_store.url()
    remote_store.upload(tmp_path, url)
    options = remote_store.through(remote_proxy)
    first = Asked(url, options=options | CACHED, where=LAST)
    remote_proxy.reset()
    second = Asked(url, options=options | CACHED, where=LAST)
    assert second.files == first.files
    assert second.requests == {"list": 1}
    assert len(remote_proxy.requests) == 1
    remote_proxy.reset()
    assert Asked(url, options=options | LAZILY, where=LAST).files == first.files
    assert remote_proxy.requests == []
    table.commit([hour_file("newest", 5)])
    remote_store.upload(tmp_path, url)
    assert Asked(url, options=options | CACHED).live == table.live()


def test_a_log_written_anew_is_told_by_its_etags(remote_store: TableServer, tmp_path: Path) -> None:
    url = remote_store.url()
    for name in ("aaaa", "bbbb"):
        table = table_in(tmp_path / name, name=name)
        remote_store.upload(table.path, url)
        assert Asked(url, options=remote_store.storage_options | CACHED).live == table.live()


def test_two_tables_share_a_client_and_the_budget(remote_store: TableServer, tmp_path: Path) -> None:
    options = remote_store.storage_options | CACHED
    urls = [remote_store.url(), remote_store.url()]
    table = table_in(tmp_path)
    asked = []
    for url in urls:
        remote_store.upload(table.path, url)
        asked.append(Asked(url, options=options, where=LAST))
    stores = {id(each.table._snapshot.storage._link.store) for each in asked}  # type: ignore[attr-defined]
    assert len(stores) == 1
    both = ld.cache.stats().bytes
    small = both * 2 // 3
    Asked(urls[0], options=options | {"delta.cache.bytes": str(small)})
    assert ld.cache.stats().bytes <= small
