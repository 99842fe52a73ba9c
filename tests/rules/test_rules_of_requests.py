"""Which requests a store gets, and what holds when its objects or its answers change under way."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.storage import ObjectReplacedError, open_storage
from tests.support.actions import add
from tests.support.proxy import Fault, HttpProxy, Request, at
from tests.support.reading import keys
from tests.support.servers import TableServer
from tests.support.table_builder import TableBuilder

MEET_SECONDS_MAX = 20.0  # for two requests that are made side by side
WAYS: list[dict[str, Any]] = [
    {"strategy": "reverse"},
    {"strategy": "forward"},
    {"order": "asc"},
    {"limit": 3},
]


@pytest.fixture
def proxy(s3_server: TableServer) -> Iterator[HttpProxy]:
    with HttpProxy(s3_server.port) as made:
        yield made


@pytest.fixture
def stored(s3_server: TableServer, proxy: HttpProxy, tmp_path: Path) -> Callable[[], ld.Table]:
    """Opens the table of the test's folder, stored now; what the proxy counts begins here."""

    def opened() -> ld.Table:
        url = s3_server.url()
        s3_server.upload(tmp_path, url)
        return ld.open(url, storage_options=s3_server.through(proxy))

    return opened


def tail_of_eight(folder: Path) -> TableBuilder:
    table = TableBuilder(folder).commit([f"old-{number}" for number in range(5)]).checkpoint()
    for number in range(8):
        table.commit([f"new-{number}"], [f"old-{number}"] if number < 2 else [])
    return table


# --- what is asked for ----------------------------------------------------------


def test_the_manifest_is_asked_for_beside_the_listing(
    stored: Callable[[], ld.Table], proxy: HttpProxy, tmp_path: Path
) -> None:
    tail_of_eight(tmp_path)
    both = threading.Barrier(2)
    met: list[Request] = []

    def meet(request: Request) -> None:
        is_listing = "_delta_log%2F&" in request.path
        if is_listing or request.path.endswith(".manifest.json"):
            both.wait(MEET_SECONDS_MAX)  # neither is answered before the other has come
            met.append(request)

    proxy.plan = meet
    assert len(list(stored().scan(limit=1).files())) == 1
    assert len(met) == 2


@pytest.mark.parametrize("has_checksum", [False, True], ids=["no .crc", ".crc"])
@pytest.mark.parametrize("how", WAYS, ids=str)
def test_no_commit_of_usual_size_is_read_twice(
    stored: Callable[[], ld.Table],
    proxy: HttpProxy,
    tmp_path: Path,
    how: dict[str, Any],
    has_checksum: bool,
) -> None:
    """One of more than 4 MiB is not kept, but streamed as often as it is needed."""
    table = tail_of_eight(tmp_path)
    if has_checksum:
        table.crc()
    found = keys(stored().scan(**how).files())
    assert len(found) == how.get("limit", len(table.live()))
    asked = Counter(
        match[0] for request in proxy.requests if (match := re.search(r"\d{20}\.json", request.path))
    )
    assert set(asked.values()) == {1}
    assert len(asked) == (8 if not has_checksum or "limit" not in how else 3)
    manifests = [request for request in proxy.requests if request.path.endswith(".manifest.json")]
    assert len(manifests) == 1


# --- a limit on rows ------------------------------------------------------------


def one_row_a_commit(folder: Path, commits: int) -> TableBuilder:
    """A tail above a checkpoint; without statistics each file must be opened to know whether it matches."""
    table = TableBuilder(folder, schema={"value": "long"}, partition_columns=())
    table.commit([add("below.parquet", partition={})]).checkpoint()
    for number in range(commits):
        path = folder / f"part-{number}.parquet"
        pq.write_table(pa.table({"value": [commits - number]}), path)
        table.commit([add(path.name, partition={}, size=path.stat().st_size)])
    return table.crc()


def test_a_limit_on_rows_reads_one_commit_then_twice_as_many_as_before(tmp_path: Path) -> None:
    one_row_a_commit(tmp_path, 27)
    table = ld.open(tmp_path)
    needed = (1, 2, 3, 5, 10, 27)
    fetched = []
    for depth in needed:
        scan = table.scan(f"value = {depth}", limit=1, commit_read_parallelism=64)
        assert scan.batches(prefetch_size=0).read_all()["value"].to_pylist() == [depth]
        assert scan.explain().commits_read == depth
        assert scan.explain().source == "none", "the checkpoint is not looked at"
        fetched.append(scan.explain().requests_by_kind["get"] - 3)  # the hint, the manifest, the `.crc`
    assert fetched[0] == 1
    assert all(need <= got <= 3 * need for need, got in zip(needed, fetched, strict=True)), fetched


def test_a_limit_on_rows_that_needs_many_commits_takes_few_round_trips(
    stored: Callable[[], ld.Table], tmp_path: Path
) -> None:
    one_row_a_commit(tmp_path, 27)
    scan = stored().scan("value = 27", limit=1, commit_read_parallelism=64)
    assert scan.batches(["value"], prefetch_size=0).read_all().num_rows == 1
    assert scan.explain().commits_read == 27
    assert scan.explain().round_trips <= 3 + 6  # the hint, the listing, the `.crc`; 1, 2, 4, … commits


# --- one version of an object ---------------------------------------------------


class Replaced:
    """A plan: the object is replaced when its n-th request has come, before the store hears of that."""

    def __init__(self, name: str, before: int, replace: Callable[[], None]) -> None:
        self.requests = 0
        self._name, self._before, self._replace = name, before, replace
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> None:
        if request.path.endswith(self._name):
            with self._lock:
                self.requests += 1
                if self.requests == self._before:
                    self._replace()


def data_file(path: Path, value: int) -> Path:
    """Three row groups of one value, too large for one request."""
    rows = pa.table({name: pa.array([value] * 120_000, pa.int64()) for name in "ab"})
    pq.write_table(rows, path, row_group_size=40_000, compression="none", use_dictionary=False)
    return path


@pytest.mark.parametrize("prefetch_size", [0, 2])
def test_rows_are_of_one_version_of_a_data_file_whenever_it_is_replaced(
    s3_server: TableServer, proxy: HttpProxy, tmp_path: Path, prefetch_size: int
) -> None:
    (tmp_path / "table").mkdir()
    first = data_file(tmp_path / "table" / "part.parquet", 1)
    other = data_file(tmp_path / "other.parquet", 2)
    size = first.stat().st_size
    assert other.stat().st_size == size
    table = TableBuilder(tmp_path / "table", schema={"a": "long", "b": "long"}, partition_columns=())
    table.commit([add("part.parquet", partition={}, size=size)])
    url = s3_server.url()
    s3_server.upload(table.path, url)

    def read(before: int) -> tuple[int, set[int], ObjectReplacedError | None]:
        """Requests and values of a file that is replaced before its n-th request, and what ended them."""
        s3_server.put_all(url, {"part.parquet": first})
        proxy.plan = plan = Replaced(
            "part.parquet", before, lambda: s3_server.put_all(url, {"part.parquet": other})
        )
        found: set[int] = set()
        batches = (
            ld.open(url, storage_options=s3_server.through(proxy)).scan().batches(prefetch_size=prefetch_size)
        )
        try:
            for rows in batches:
                found.update(*(pc.unique(rows[name]).to_pylist() for name in "ab"))
        except ObjectReplacedError as error:
            return plan.requests, found, error
        return plan.requests, found, None

    count, found, error = read(0)
    assert count >= 4, "the footer, and each row group"
    assert (found, error) == ({1}, None)
    assert read(1)[1:] == ({2}, None), "nothing was read of the first version"
    for before in range(2, count + 1):
        _, found, error = read(before)
        assert found <= {1}, f"replaced before request {before}"
        assert error is not None, f"replaced before request {before}"
        assert error.where.endswith("part.parquet")


def test_files_are_of_one_version_of_a_checkpoint_whenever_it_is_replaced(
    s3_server: TableServer, proxy: HttpProxy, tmp_path: Path
) -> None:
    name = f"_delta_log/{0:020}.checkpoint.parquet"
    tables = []
    for letter in "ab":
        dice = random.Random(letter)
        names = [f"{letter}-{dice.getrandbits(512):0128x}.parquet" for _ in range(2_000)]
        table = TableBuilder(tmp_path / letter, partition_columns=()).commit(names)
        tables.append(table.checkpoint(row_group_rows=500).commit(["new"]).crc())
    first, other = ({path for path, _ in table.live()} for table in tables)
    url = s3_server.url()
    s3_server.upload(tables[0].path, url)

    def read(before: int) -> tuple[int, list[str]]:
        s3_server.put_all(url, {name: tables[0].path / name})
        proxy.plan = plan = Replaced(
            name, before, lambda: s3_server.put_all(url, {name: tables[1].path / name})
        )
        found: list[str] = []
        scan = ld.open(url, storage_options=s3_server.through(proxy)).scan(checkpoint_row_groups_per_batch=1)
        try:
            for rows in scan.file_batches(["path"]):
                found += rows["path"].to_pylist()
        except ObjectReplacedError as error:
            assert error.where.endswith(name)
            return plan.requests, found
        assert set(found) in (first, other), f"replaced before request {before}"
        return plan.requests, found

    count, found = read(0)
    assert set(found) == first
    assert count >= 3, "the footer, then row groups"
    for before in range(1, count + 1):
        _, found = read(before)
        assert len(set(found)) == len(found)
        assert set(found) <= first or set(found) <= other, f"replaced before request {before}"


# --- a conditional put ----------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [Fault(kind="lose"), Fault(kind="status", status=503), Fault(kind="reset")],
    ids=lambda fault: fault.kind,
)
def test_a_conditional_put_whose_answer_was_lost_is_known_to_be_ours(
    remote_store: TableServer, remote_proxy: HttpProxy, fault: Fault
) -> None:
    storage = open_storage(
        remote_store.url(),
        ld.Settings(storage_options=remote_store.through(remote_proxy), backoff_first_seconds=0.01),
    )
    remote_proxy.plan = at({1: fault})
    assert storage.put_if_absent("m.json", b"ours")
    assert sum(request.method == "PUT" for request in remote_proxy.requests) == 2
    remote_proxy.reset()
    remote_proxy.plan = at({1: fault})
    assert not storage.put_if_absent("m.json", b"theirs")
    assert storage.get("m.json") == b"ours"
