"""The web page on a table of ten million files in a store: what it shows at once costs parts of the index."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from bench.ladder_server import BUCKET, make_server
from bench.ladder_tables import HOUR
from bench.scale.bucket import SimulatedBucket
from bench.scale.simulated import SimulatedTable, simulated_spec
from lazydelta.sidecar import SidecarConfig
from tests.support.page_views import opened, type_query
from tests.support.row_tables import eventually
from tests.support.serving import RunningServer, running_server

FILES = 10_000_000
# So many row groups that the manifest lists parts alone: all but the newest are made when they are asked for.
SMALL_GROUPS = SidecarConfig(row_group_rows=4_000)
BYTES = """() => performance.getEntriesByType("resource").filter(one => one.name.includes("/api/"))
    .reduce((sum, one) => sum + one.transferSize, 0)"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> SimulatedTable:
    found = SimulatedTable(
        simulated_spec(FILES), tmp_path_factory.mktemp("bucket") / "telemetry", SMALL_GROUPS
    )
    found.write()
    return found


@pytest.fixture(scope="module")
def server(table: SimulatedTable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    store = make_server(SimulatedBucket(table.folder.parent, [table]), 0.0)
    threading.Thread(target=store.serve_forever, daemon=True).start()
    options = {
        "endpoint": f"http://127.0.0.1:{store.server_port}",
        "region": "us-east-1",
        "allow_http": "true",
        "skip_signature": "true",
    }
    told = ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
    served = f'[tables.telemetry]\nurl = "s3://{BUCKET}/telemetry"\nstorage_options = {{ {told} }}\n'
    try:
        with running_server(tmp_path_factory.mktemp("served"), {}, served) as running:
            yield running
    finally:
        store.shutdown()
        store.server_close()


def test_the_newest_files_and_what_a_query_reads_are_shown_long_before_all_files_are(
    browser: Browser, server: RunningServer, table: SimulatedTable
) -> None:
    with opened(browser, f"{server.http_url}/ui/#query=select+1") as page:
        expect(page.locator("#facts")).to_contain_text(re.compile(r"10,00\d,\d{3}"))
        expect(page.locator("#map-state")).to_have_text(re.compile(r"[1-9][\d,]* .*so far"))
        type_query(page, f"select * from telemetry where {HOUR.where()}")
        expect(page.locator("#map-state")).to_contain_text(f"the query reads {table.answers['hour']:,}")
        expect(page.locator("#groups-state")).to_contain_text("row groups and skips")
        assert page.evaluate(BYTES) < 400_000
        assert page.locator("*").count() < 1500
    assert eventually(lambda: not server.process.served.admission.running()), "whoever leaves ends the scans"
