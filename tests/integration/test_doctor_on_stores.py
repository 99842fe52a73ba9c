"""The doctor and the ladder on object stores: the same findings as in a folder, within the same bounds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import lazydelta as ld
from lazydelta.ladder.climb import climb
from lazydelta.ladder.rungs import RungName
from lazydelta.sample.make import SampleSpec, make_sample
from tests.support.servers import TableServer


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores") / "telemetry"
    make_sample(folder, SampleSpec(files=150, hours=30, rows=10))
    return folder


def test_findings_are_those_of_a_folder(table_store: TableServer, sample: Path) -> None:
    url = table_store.url("doctored")
    table_store.upload(sample, url)
    settings = msgspec.structs.replace(table_store.settings, cache_bytes=0)
    where = "value > 1000 and city = 'Oslo'"
    told = ld.open(url, settings=settings).doctor(where)
    here = ld.open(sample).doctor(where)
    assert [(f.code, f.severity, f.facts) for f in told.findings] == [
        (f.code, f.severity, f.facts) for f in here.findings
    ]
    assert {finding.code for finding in told.findings} == {"small_files", "filter_effect"}
    assert told.examined is not None
    assert told.examined.files_sampled == 150
    assert told.examined.requests <= 20
    assert told.examined.bytes_read <= 200_000


@pytest.mark.parametrize(
    "store", ["azurite", pytest.param("s3_server", marks=pytest.mark.long("another store; eight processes"))]
)
def test_the_ladder_is_climbed_on_a_store(store: str, sample: Path, request: pytest.FixtureRequest) -> None:
    server: TableServer = request.getfixturevalue(store)
    url = server.url("climbed")
    server.upload(sample, url)
    options = {**server.settings.storage_options, "delta.cache.bytes": "10000000"}
    report = climb(url, storage_options=options, seconds=120)
    runs = {result.name: result.run for result in report.rungs}
    assert [run.error for run in runs.values() if run is not None] == [None] * len(RungName)
    again, first = runs[RungName.FILTER_AGAIN], runs[RungName.FILTER_SIDECAR]
    assert again is not None and first is not None
    assert again.count == first.count == 5
    assert again.requests < first.requests
