"""Every state of a sidecar on a local folder and on an object store: the same files, the same source."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lazydelta as ld
from lazydelta.scan import ScanReport
from lazydelta.settings import Settings
from lazydelta.upkeep.build import build_sidecar
from tests.support.proxy import Fault, HttpProxy
from tests.support.servers import TableServer
from tests.support.sidecar_damage import numbered_file
from tests.support.sidecar_states import (
    CHECKPOINT,
    SMALL,
    STATES,
    State,
    part_paths,
    table_with_sidecar,
    without_sidecar,
)
from tests.support.table_builder import TableBuilder

CLOCK_SECONDS = 1.1  # a store tells times in whole seconds
LAST_DAY = "date = '2026-02-20'"
Name = tuple[str, str | None]


@pytest.fixture(params=["local_server", "azurite"])
def server(request: pytest.FixtureRequest) -> TableServer:
    found: TableServer = request.getfixturevalue(request.param)
    return found


def no_cache(server: TableServer) -> Settings:
    return msgspec.structs.replace(server.settings, cache_bytes=0)


def uploaded(server: TableServer, table: TableBuilder, *, is_plain_first: bool = False) -> str:
    """The table on the server, its plain sidecar written after the log or well before it."""
    url = server.url("states")
    if server.kind == "local":
        server.upload(table.path, url)
        return url
    files = {str(path.relative_to(table.path)): path for path in table.path.rglob("*") if path.is_file()}
    plain = {name: path for name, path in files.items() if "/_sidecars/v" in name}
    rest: dict[str, Any] = {name: path for name, path in files.items() if name not in plain}
    for bodies in (plain, rest) if is_plain_first else (rest, plain):
        server.put_all(url, dict(bodies))
        if plain:
            time.sleep(CLOCK_SECONDS)
    return url


def scanned(
    server: TableServer, url: str, where: str | None = None, **scan: Any
) -> tuple[set[Name], ScanReport]:
    """The base names and vectors of the files, none of which may come twice, and the report."""
    run = ld.open(url, settings=no_cache(server)).scan(where, **scan)
    found = [(file.path.rpartition("/")[2], file.dv_id) for file in run.files()]
    assert len(found) == len(set(found))
    return set(found), run.explain()


def live(table: TableBuilder) -> set[Name]:
    return {(path.rpartition("/")[2], vector) for path, vector in table.live()}


@pytest.mark.parametrize("name", [name for name in STATES if name != "no folder but a file"])
def test_every_state_gives_the_live_files_from_the_expected_source(
    server: TableServer, tmp_path: Path, name: str
) -> None:
    state: State = STATES[name]
    table = table_with_sidecar(tmp_path)
    state.make(table)
    url = uploaded(server, table, is_plain_first="older than the log" in name)
    for strategy in ("reverse", "forward"):
        found, report = scanned(server, url, strategy=strategy)
        assert found == live(table)
        assert report.source.startswith(state.source), report
        assert len(report.fallbacks) == (state.fallback is not None), report.fallbacks
        assert all(state.fallback in text for text in report.fallbacks if state.fallback)


def test_a_sidecar_built_in_place_is_bound_by_e_tags(azurite: TableServer, tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    without_sidecar(table)
    url = uploaded(azurite, table)
    build_sidecar(azurite.open(url), config=SMALL)
    found, report = scanned(azurite, url, LAST_DAY)
    assert report.source == "sidecar 3 (manifest)"
    assert report.row_groups_read < 4
    assert len(found) >= 2
    # One commit is replaced by another of the same length, as a restore may do it.
    name = f"_delta_log/{CHECKPOINT:020}.json"
    body = (table.path / name).read_bytes()
    azurite.put_all(url, {name: body.replace(b"part-00031", b"part-00099")})
    _, report = scanned(azurite, url, LAST_DAY)
    assert report.source == "checkpoint 3"
    assert "is not the commit it was built from" in report.fallbacks[0]


def test_the_last_day_takes_four_round_trips_from_cold(azurite: TableServer, tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    without_sidecar(table)
    table.crc()
    url = uploaded(azurite, table)
    build_sidecar(azurite.open(url), config=SMALL)
    trips = []
    with HttpProxy(azurite.port, latency_ms=40) as proxy:  # so that what goes side by side is seen to
        options = Settings(storage_options=azurite.through(proxy), cache_bytes=0)
        for _ in range(3):  # a busy machine may still hold one of them back
            run = ld.open(url, settings=options).scan(LAST_DAY)
            assert list(run.files())
            assert run.explain().source == "sidecar 3 (manifest)"
            trips.append(run.explain().round_trips)
    assert min(trips) <= 4, trips


def test_a_store_that_refuses_the_sidecars_folder_serves_by_the_checkpoint(
    azurite: TableServer, tmp_path: Path
) -> None:
    table = table_with_sidecar(tmp_path)
    url = uploaded(azurite, table)
    with HttpProxy(azurite.port) as proxy:
        options = azurite.through(proxy)
        refused = Fault(kind="status", status=403)
        proxy.plan = lambda request: refused if "_lazy" in request.path else None
        run = ld.open(url, settings=Settings(storage_options=options, cache_bytes=0)).scan()
        found = {(file.path.rpartition("/")[2], file.dv_id) for file in run.files()}
    assert found == live(table)
    assert run.explain().source == "checkpoint 3"
    assert any("refused the credentials" in text for text in run.explain().fallbacks)


def test_an_older_sidecar_serves_on_a_store(server: TableServer, tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    table.checkpoint().with_hint({"version": 5, "size": 1, "sizeInBytes": 1 << 30})
    table.commit([numbered_file(70)])
    assert part_paths(table)
    found, report = scanned(server, uploaded(server, table))
    assert found == live(table)
    assert report.source == "sidecar 3 (manifest)"
    assert "2 commits after it" in report.source_reason
