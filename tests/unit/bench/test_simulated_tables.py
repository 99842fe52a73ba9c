"""Tables that are made up while they are read: the reader must find in them what their plan says."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from bench.files import Files
from bench.history import live_count, live_keys
from bench.ladder_runs import Place
from bench.ladder_server import BUCKET, make_server
from bench.ladder_tables import EVENT, HOUR, TAKE, Query
from bench.scale.bucket import SimulatedBucket
from bench.scale.next_checkpoint import checkpoint_cost, grown_spec, write_next_checkpoint
from bench.scale.padded import padded
from bench.scale.simulated import SimulatedTable, simulated_spec
from lazydelta.sidecar import LAZY_FOLDER, SidecarConfig, decode_manifest, manifest_name

# So many row groups that the manifest lists parts alone, as it does for more than twenty million files.
SMALL = SidecarConfig(row_group_rows=20, row_groups_max=64)
FILES = 50_000


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> SimulatedTable:
    spec = simulated_spec(FILES)
    table = SimulatedTable(spec, tmp_path_factory.mktemp("simulated") / spec.name, SMALL)
    table.write()
    return table


@pytest.fixture(scope="module")
def url(simulated: SimulatedTable) -> Iterator[tuple[str, dict[str, str]]]:
    server = make_server(SimulatedBucket(simulated.folder.parent, [simulated]), 0.0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {"endpoint": f"http://127.0.0.1:{server.server_port}", "region": "us-east-1"}
    yield (
        f"s3://{BUCKET}/{simulated.folder.name}",
        options | {"allow_http": "true", "skip_signature": "true"},
    )
    server.shutdown()
    server.server_close()


@pytest.mark.long("reads every part; queries read some in the default suite")
def test_parts_are_made_while_they_are_read(
    simulated: SimulatedTable, url: tuple[str, dict[str, str]]
) -> None:
    assert len(simulated.parts_to_make) > 10
    assert not (simulated.folder / simulated.part_name(0)).exists()
    found = [(file.path, file.size) for file in ld.open(url[0], storage_options=url[1]).scan().files()]
    numbers, _ = live_keys(simulated.spec, simulated.history)
    files = Files(simulated.spec, numbers)
    paths = files.path_text().view(f"S{files.path_text().shape[1]}").ravel().astype(str)
    assert sorted(found) == sorted(zip(paths.tolist(), files.size.tolist(), strict=True))


@pytest.mark.parametrize("query", [HOUR, EVENT, TAKE], ids=lambda query: query.name)
def test_queries_find_what_the_plan_says(
    simulated: SimulatedTable, url: tuple[str, dict[str, str]], query: Query
) -> None:
    scan = ld.open(url[0], storage_options=url[1]).scan(where=query.where(), limit=query.limit)
    assert sum(1 for _ in scan.files()) == simulated.answers[query.name]
    told = scan.explain()
    assert told.fallbacks == ()
    if query is not TAKE:
        assert told.source == "sidecar 1000 (manifest)"
        assert told.parts_read <= 2 < told.parts_total


def test_the_same_description_gives_the_same_bytes(simulated: SimulatedTable, tmp_path: Path) -> None:
    again = SimulatedTable(simulated.spec, tmp_path / simulated.spec.name, SMALL)
    again.write()
    manifest = "_delta_log/_lazy/v00000000000000001000.manifest.json"
    assert (again.folder / manifest).read_bytes() == (simulated.folder / manifest).read_bytes()
    assert again.part_body(3) == simulated.part_body(3)
    assert len(again.part_body(3)) == again.made_size


def test_a_listing_tells_of_parts_that_are_not_made(simulated: SimulatedTable) -> None:
    bucket = SimulatedBucket(simulated.folder.parent, [simulated])
    prefix = f"{simulated.folder.name}/_delta_log/_lazy/"
    listed = list(bucket.after(prefix, ""))
    names = [told.name.removeprefix(f"{simulated.folder.name}/") for told in listed]
    assert names == sorted(names)
    assert {simulated.part_name(number) for number in range(simulated.part_count)} < set(names)
    assert [told.name for told in bucket.after(prefix, listed[4].name)] == [told.name for told in listed[5:]]
    for told in listed[:3]:
        again, file = bucket.opened(told.name)
        assert (again, len(file.read())) == (told, told.size)


def footer_length(body: bytes) -> int:
    """The bytes of a Parquet file from where its footer begins to its end."""
    return int.from_bytes(body[-8:-4], "little") + 8


def test_a_file_is_filled_up_and_reads_as_before() -> None:
    sink = pa.BufferOutputStream()
    rows = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
    pq.write_table(rows, sink, store_schema=False)
    body = sink.getvalue().to_pybytes()
    filled = padded(body, size=9_000, footer_bytes=4_000)
    assert (len(filled), footer_length(filled)) == (9_000, 4_000)
    assert pq.read_table(io.BytesIO(filled)).equals(rows)
    for size, footer in ((9_000, footer_length(body)), (len(body), 4_000)):
        with pytest.raises(AssertionError):
            padded(body, size=size, footer_bytes=footer)


@pytest.mark.long("what a build references is tested with the sidecar; here it is what a benchmark counts")
def test_the_sidecar_of_one_more_checkpoint_references_what_did_not_change(tmp_path: Path) -> None:
    table = SimulatedTable(grown_spec(FILES), tmp_path / "grown", SMALL)
    table.write()
    write_next_checkpoint(table)
    server = make_server(SimulatedBucket(tmp_path, [table]), 0.0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        cost = checkpoint_cost(table, Place(name="store", account=f"http://127.0.0.1:{server.server_port}"))
    finally:
        server.shutdown()
        server.server_close()
    assert (cost.failure, cost.changes) == (None, 1_020)
    assert cost.parts_written < 4 < table.part_count - 4 < cost.parts_referenced
    manifest = table.folder / LAZY_FOLDER / manifest_name(table.spec.version)
    assert decode_manifest(manifest.read_bytes()).num_files == live_count(table.spec, table.history)
