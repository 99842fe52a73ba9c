"""Reports count every request of an opening and a scan once, also those that came in beside them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.storage import LocalStorage
from tests.support.row_tables import eventually
from tests.support.sidecar_states import table_with_sidecar

SLOW_SECONDS = 0.15


@pytest.fixture(params=["manifest.json", ".parquet"])
def slow_sidecar(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store that is slow with the manifest, or with the parts, so that opening does not wait for them."""

    def slowed(method: str) -> None:
        usual = getattr(LocalStorage, method)

        def slow(self: LocalStorage, name: str, *more: Any) -> Any:
            if "/_lazy/" in name and name.endswith(request.param):
                time.sleep(SLOW_SECONDS)
            return usual(self, name, *more)

        monkeypatch.setattr(LocalStorage, method, slow)

    for method in ("get", "get_range", "get_ranges"):
        slowed(method)
    ld.cache.clear()
    yield
    ld.cache.clear()


def whatever_is_under_way_arrives() -> None:
    """What opening asks for beside the log has threads of its own."""
    assert eventually(lambda: not any("lazydelta-discover" in t.name for t in threading.enumerate()))


@pytest.mark.usefixtures("slow_sidecar")
@pytest.mark.parametrize("cache_bytes", [0, 64 << 20])
@pytest.mark.parametrize(
    "scan", [{}, {"limit": 1}, {"limit": 0}, {"where": "date = '2026-02-20'"}, {"order": "desc"}]
)
def test_a_report_counts_what_opening_asked_for_beside_the_log(
    tmp_path: Path, scan: dict[str, Any], cache_bytes: int
) -> None:
    table = table_with_sidecar(tmp_path).crc()
    opened = ld.open(str(table.path), settings=Settings(cache_bytes=cache_bytes))
    run = opened.scan(**scan)
    for _ in run.files():
        pass
    report = run.explain()
    whatever_is_under_way_arrives()
    truth = opened._snapshot.storage.counters.snapshot()  # all that was asked of the store
    assert report.requests_by_kind == truth.requests_by_kind
    assert (report.requests, report.bytes_read) == (truth.requests, truth.bytes_read)


@pytest.mark.usefixtures("slow_sidecar")
def test_the_second_scan_of_a_table_counts_its_own_requests_and_the_opening(tmp_path: Path) -> None:
    opened = ld.open(str(table_with_sidecar(tmp_path).path), settings=Settings(cache_bytes=0))
    counted = opened._snapshot.storage.counters
    first, second = opened.scan(), opened.scan()
    assert len(list(first.files())) == len(list(second.files()))
    everything = first.explain().requests + second.explain().requests
    whatever_is_under_way_arrives()
    opening = opened._snapshot.opening.snapshot().requests
    assert everything == counted.snapshot().requests + opening
    assert first.explain().requests > opening > 0


def test_reading_the_history_is_no_part_of_a_scan(tmp_path: Path) -> None:
    opened = ld.open(str(table_with_sidecar(tmp_path).path), settings=Settings(cache_bytes=0))
    run = opened.scan()
    assert list(run.files())
    before = run.explain().requests
    assert list(opened.history())
    assert run.explain().requests == before
