"""Statistics looked up by path over emulated stores: the same answer, and few requests."""

from __future__ import annotations

from pathlib import Path

import lazydelta as ld
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, stats
from tests.support.proxy import HttpProxy
from tests.support.servers import TableServer
from tests.support.sidecar_damage import storage_of
from tests.support.table_builder import TableBuilder

UNCACHED = {"delta.cache.bytes": "0"}


def path_of(number: int) -> str:
    return f"_event_hour=20260210{number // 10:02}/part {number:03}.parquet"


def table_in(folder: Path) -> TableBuilder:
    """Sixty files, ten an hour, in a sidecar of three parts; one is removed and one added since."""

    def file(number: int) -> dict[str, object]:
        told = stats(10, low={"value": number}, high={"value": number + 1}, nulls={"value": 0})
        partition = {"_event_hour": f"20260210{number // 10:02}"}
        return add(path_of(number).replace(" ", "%20"), partition=partition, stats=told)

    table = TableBuilder(
        folder, schema={"value": "double", "_event_hour": "string"}, partition_columns=("_event_hour",)
    )
    table.commit([file(number) for number in range(60)]).checkpoint().crc()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=10, row_groups_max=2))
    return table.commit([file(60)], [path_of(7).replace(" ", "%20")]).crc()


def test_a_path_below_the_stores_address_costs_one_row_group(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    table_in(tmp_path)
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    table = ld.open(url, storage_options=remote_store.through(remote_proxy) | UNCACHED)
    remote_proxy.reset()
    found = table.get_stats_for_files([f"{table.url}/{path_of(23)}"], ["value"])
    assert found.column("min.value").to_pylist() == [23.0]
    # The commit after the checkpoint; a footer and a row group, each of which may take two ranges.
    assert len(remote_proxy.requests) <= 5


def test_the_answer_over_a_store_is_that_of_the_folder(table_store: TableServer, tmp_path: Path) -> None:
    table_in(tmp_path)
    url = table_store.url()
    table_store.upload(tmp_path, url)
    asked = [path_of(number) for number in (60, 7, 0, 59, 99)]
    answers = [
        ld.open(url, storage_options=table_store.storage_options | more).get_stats_for_files(asked, ["value"])
        for more in (UNCACHED, {"delta.sidecar.enabled": "false"})
    ]
    here = ld.open(str(tmp_path)).get_stats_for_files(asked, ["value"])
    assert here.column("live").to_pylist() == [True, False, True, True, False]
    assert all(answer.equals(here) for answer in answers)
