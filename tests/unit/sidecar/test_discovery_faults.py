"""A store that refuses or fails while a sidecar is looked for or read: the right files, a fallback told."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from lazydelta.errors import AccessDeniedError, CorruptLogError, LazyDeltaError
from lazydelta.scan import FileScan
from lazydelta.storage import Deadline, Storage
from tests.support.faulty_storage import CallLog, FaultyStorage, Kind, _error, fail_at, faulty
from tests.support.keys import FileKey
from tests.support.plain_sidecar import write_plain
from tests.support.sidecar_damage import storage_of
from tests.support.sidecar_states import CHECKPOINT, table_with_sidecar, without_manifest, without_sidecar
from tests.support.table_builder import TableBuilder
from tests.unit.sidecar.test_discovery_tiers import scan_of

Refused = Callable[[str, str], bool]  # by method and name


class RefusingStorage(FaultyStorage):
    """Fails what it is told to, as long as it is told to."""

    def __init__(self, inner: Storage, refused: Refused, kind: Kind, log: CallLog) -> None:
        super().__init__(inner, lambda _: None, log)
        self.refused = refused
        self.kind: Kind = kind
        self.parent: RefusingStorage | None = None

    def scoped(self, deadline: Deadline | None = None) -> RefusingStorage:
        found = RefusingStorage(self._inner.scoped(deadline), self.refused, self.kind, self.log)
        found.parent = self.parent or self
        return found

    def _before(self, method: str, name: str) -> Kind | None:
        super()._before(method, name)
        if (self.parent or self).refused(method, name):
            raise _error(self.kind, name)
        return None


def refusing(table: TableBuilder, refused: Refused, kind: Kind = "denied") -> RefusingStorage:
    return RefusingStorage(storage_of(table), refused, kind, CallLog())


def found_by(run: FileScan) -> set[FileKey]:
    """The keys of the files of a run, none of which may come twice."""
    found: list[FileKey] = []
    for batch in run.batches():
        vectors = batch.column("deletion_vector").to_pylist()
        found += zip(batch.column("path").to_pylist(), map(_vector_id, vectors), strict=True)
    assert len(found) == len(set(found))
    return set(found)


def _vector_id(vector: dict[str, object] | None) -> str | None:
    if vector is None:
        return None
    offset = "" if vector["offset"] is None else f"@{vector['offset']}"
    return f"{vector['storage_type']}{vector['path_or_inline_dv']}{offset}"


def of_sidecar(method: str, name: str) -> bool:
    return "/_lazy" in name or "/_sidecars" in name


def of_parts(method: str, name: str) -> bool:
    return "/_lazy/" in name and name.endswith(".parquet")


@pytest.mark.parametrize("kind", ["denied", "permanent", "cut"])
def test_a_sidecar_that_the_store_does_not_give_is_a_fallback(tmp_path: Path, kind: Kind) -> None:
    table = table_with_sidecar(tmp_path)
    run = scan_of(refusing(table, of_sidecar, kind))
    assert found_by(run) == table.live()
    report = run.report()
    assert report.source == "checkpoint 3"
    assert len(report.fallbacks) == 3  # the manifest and two folders
    assert all("fault of the test" in text for text in report.fallbacks)


@pytest.mark.parametrize("kind", ["denied", "permanent", "cut", "not_found"])
def test_parts_that_the_store_does_not_give_are_a_fallback(tmp_path: Path, kind: Kind) -> None:
    table = table_with_sidecar(tmp_path)
    run = scan_of(refusing(table, of_parts, kind))
    assert found_by(run) == table.live()
    assert run.report().source == "checkpoint 3"
    assert len(run.report().fallbacks) == 1


def test_footers_that_the_store_does_not_give_are_a_fallback(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    without_manifest(table)
    run = scan_of(refusing(table, of_parts))
    assert found_by(run) == table.live()
    assert "the parts at checkpoint 3 cannot be used" in run.report().fallbacks[0]


@pytest.mark.parametrize("has_manifest", [True, False])
def test_a_store_that_recovers_is_asked_again_by_the_next_scan(tmp_path: Path, has_manifest: bool) -> None:
    table = table_with_sidecar(tmp_path)
    if not has_manifest:
        without_manifest(table)
    storage = refusing(table, of_sidecar, "permanent")
    first = scan_of(storage)
    assert found_by(first) == table.live()
    assert first.report().source == "checkpoint 3"
    storage.refused = lambda _method, _name: False
    again = FileScan(first.snapshot, first.config, first.sidecar)
    assert found_by(again) == table.live()
    assert again.report().source == f"sidecar 3 ({'manifest' if has_manifest else 'footers'})"
    assert again.report().fallbacks == ()


@pytest.mark.parametrize("seen", [1, 3, 7])
@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("not_found", CorruptLogError, "the sidecar was lost while it was read"),
        ("denied", AccessDeniedError, "a fault of the test"),
    ],
)
def test_parts_that_are_all_lost_half_way_are_an_error_that_says_so(
    tmp_path: Path, seen: int, kind: Kind, error: type[LazyDeltaError], words: str
) -> None:
    """What went out is read again to mask it; where that is impossible nothing may come twice."""
    table = table_with_sidecar(tmp_path, tail=False)
    storage = refusing(table, lambda _method, _name: False, kind)
    run = scan_of(storage, batch_size=1)
    batches = run.batches()
    found = [next(batches) for _ in range(seen)]
    storage.refused = of_parts
    with pytest.raises(error, match=words):
        found += list(batches)
    paths = [batch.column("path")[0].as_py() for batch in found]
    assert len(paths) == len(set(paths))


def test_one_part_lost_half_way_is_made_good_by_the_checkpoint(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path, tail=False)
    opened: list[str] = []

    def newest_part_only(method: str, name: str) -> bool:
        if of_parts(method, name) and name not in opened:
            opened.append(name)
        return of_parts(method, name) and name in opened[1:]

    run = scan_of(refusing(table, newest_part_only))
    assert found_by(run) == table.live()
    assert run.report().source == "checkpoint 3"
    assert "is out of reach" in run.report().fallbacks[0]


@pytest.mark.parametrize("state", ["manifest", "footers", "plain", "older"])
def test_any_one_fault_gives_the_right_files_or_an_error(tmp_path: Path, state: str) -> None:
    table = table_with_sidecar(tmp_path)
    if state == "footers":
        without_manifest(table)
    if state == "plain":
        without_sidecar(table)
        write_plain(table, version=CHECKPOINT)
    if state == "older":
        table.checkpoint().with_hint({"version": 5, "size": 1, "sizeInBytes": 1 << 30})
    healthy = faulty(storage_of(table), lambda _: None)
    assert found_by(scan_of(healthy)) == table.live()
    right = 0
    for number in range(1, len(healthy.log.calls) + 2):
        for kind in ("permanent", "not_found"):
            try:
                found = found_by(scan_of(faulty(storage_of(table), fail_at(number, kind))))
            except LazyDeltaError:
                continue
            assert found == table.live(), f"call {number}, {kind}"
            right += 1
    assert right > len(healthy.log.calls) / 2  # most of them concern the sidecar, and are made good


def test_faults_of_the_sidecar_alone_are_never_errors(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    calls = itertools.count()
    total = _calls_of_sidecar(table)
    for number in range(total):
        calls = itertools.count()

        def refused(
            method: str, name: str, number: int = number, calls: itertools.count[int] = calls
        ) -> bool:
            return of_sidecar(method, name) and next(calls) == number

        assert found_by(scan_of(refusing(table, refused))) == table.live()


def _calls_of_sidecar(table: TableBuilder) -> int:
    storage = faulty(storage_of(table), lambda _: None)
    found_by(scan_of(storage))
    return sum(of_sidecar(method, name) for method, name in storage.log.calls)
