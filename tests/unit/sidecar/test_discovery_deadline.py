"""A scan that begins while the opening still waits for the sidecar ends at its own deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lazydelta.errors import StorageError
from lazydelta.log import open_snapshot
from lazydelta.scan import FileScan, LazyScanConfig
from lazydelta.sidecar import SidecarAwareProvider, SidecarReading, TakenOnce
from lazydelta.storage import Deadline
from tests.support.faulty_storage import FaultyStorage, Kind, faulty
from tests.support.sidecar_damage import storage_of
from tests.support.sidecar_states import table_with_sidecar

SILENT = [".manifest.json", ".parquet"]  # of the sidecar
PATIENCE_SECONDS = 60.0  # of the store: far more than a deadline of these tests


class SilentAhead(FaultyStorage):
    """Holds some requests of the opening until it is told to answer; those of scans it does not."""

    silent = ""
    answers: threading.Event

    def scoped(self, deadline: Deadline | None = None) -> FaultyStorage:
        return faulty(self._inner.scoped(deadline), self._plan)

    def _before(self, method: str, name: str) -> Kind | None:
        if "/_lazy/" in name and name.endswith(self.silent):
            self.answers.wait(PATIENCE_SECONDS)
        return super()._before(method, name)


@pytest.fixture
def answers() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()  # threads of the opening end with the test


def opened(tmp_path: Path, silent: str, answers: threading.Event) -> SidecarAwareProvider:
    """A table whose state is known by its checksum, so that opening it needs no manifest."""
    table = table_with_sidecar(tmp_path).crc()
    inner = faulty(storage_of(table), lambda _: None)
    storage = SilentAhead(inner._inner, inner._plan, inner.log)
    storage.silent, storage.answers = silent, answers
    return SidecarAwareProvider(storage, SidecarReading(), TakenOnce())


def scan_of(provider: SidecarAwareProvider, timeout_seconds: float) -> FileScan:
    snapshot = open_snapshot(provider._storage, parallelism=4, companion=provider)
    provider.opened(snapshot.state.metadata)
    return FileScan(snapshot, LazyScanConfig(scan_timeout_seconds=timeout_seconds), provider)


@pytest.mark.parametrize("silent", SILENT)
def test_a_scan_waits_for_the_opening_until_its_deadline(
    tmp_path: Path, silent: str, answers: threading.Event
) -> None:
    scan = scan_of(opened(tmp_path, silent, answers), 0.3)
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"deadline of 0\.3 s passed"):
        list(scan.batches())
    assert 0.25 < time.monotonic() - began < PATIENCE_SECONDS


@pytest.mark.parametrize("silent", SILENT)
def test_what_comes_before_the_deadline_is_used(
    tmp_path: Path, silent: str, answers: threading.Event
) -> None:
    scan = scan_of(opened(tmp_path, silent, answers), PATIENCE_SECONDS)
    threading.Timer(0.1, answers.set).start()
    assert sum(batch.num_rows for batch in scan.batches()) > 0
    assert scan.report().source == "sidecar 3 (manifest)"


def test_a_scan_waits_for_another_ones_search_until_its_deadline(
    tmp_path: Path, answers: threading.Event
) -> None:
    provider = opened(tmp_path, ".parquet", answers)
    scan = scan_of(provider, 0.3)
    other = threading.Thread(target=provider.discover)
    other.start()
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"deadline of 0\.3 s passed"):
        list(scan.batches())
    assert time.monotonic() - began < PATIENCE_SECONDS
    answers.set()
    other.join()
