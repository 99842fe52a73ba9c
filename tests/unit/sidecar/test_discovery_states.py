"""Every state of a sidecar: the right files, the expected source, a fallback counted and told once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta import telemetry
from tests.support.sidecar_states import NO_CACHE, STATES, copy_with_sidecar, scanned

FALLBACKS = "delta.lazy.fallback_triggered"
STRATEGIES = ("auto", "reverse", "forward")


@pytest.mark.parametrize("name", STATES)
def test_every_state_gives_the_live_files_from_the_expected_source(tmp_path: Path, name: str) -> None:
    state = STATES[name]
    table = copy_with_sidecar(tmp_path)
    state.make(table)
    for strategy in STRATEGIES:
        report = scanned(table, strategy=strategy)
        assert report.source.startswith(state.source), report
        assert len(report.fallbacks) == (state.fallback is not None), report.fallbacks
        assert all(state.fallback in text for text in report.fallbacks if state.fallback)


@pytest.mark.parametrize("name", STATES)
def test_every_state_keeps_the_files_that_the_checkpoint_would_keep(tmp_path: Path, name: str) -> None:
    STATES[name].make(copy_with_sidecar(tmp_path))

    def found(where: str, **options: str) -> set[tuple[object, ...]]:
        files = ld.open(str(tmp_path), storage_options={"cache_bytes": "0", **options}).scan(where).files()
        return {(f.path, f.dv_id, f.size, f.modification_time, *f.partition_values.items()) for f in files}

    for where in ("date >= '2026-02-19'", "count < 4", "device_id = 'd0030'", "date is null"):
        assert found(where) == found(where, **{"delta.sidecar.enabled": "false"}), where


@pytest.mark.parametrize("name", [name for name, state in STATES.items() if state.fallback is not None])
def test_a_fallback_is_counted_logged_once_and_shown(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    state = STATES[name]
    assert state.fallback is not None
    table = copy_with_sidecar(tmp_path)
    state.make(table)
    opened = ld.open(str(tmp_path), settings=NO_CACHE)
    before = telemetry.metrics().get(FALLBACKS, 0)
    with caplog.at_level(logging.DEBUG, logger="lazydelta"):
        scan = ld.open(str(tmp_path), settings=NO_CACHE).scan()
        list(scan.files())
    logged = [r.getMessage() for r in caplog.records if getattr(r, "event", "") == "fallback"]
    assert len([text for text in logged if state.fallback in text]) == 1, logged
    assert telemetry.metrics()[FALLBACKS] - before == len(scan.explain().fallbacks)
    assert state.fallback in str(scan.explain())
    assert opened.version == table.version


def test_a_table_without_a_sidecar_tells_no_fallback(tmp_path: Path) -> None:
    table = copy_with_sidecar(tmp_path)
    STATES["no sidecar"].make(table)
    assert scanned(table).fallbacks == ()
