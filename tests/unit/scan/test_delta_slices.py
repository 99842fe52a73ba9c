"""A long tail through delta files: the same files by far fewer requests, and by commits where none serves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.actions import relative_dv
from tests.support.long_tail import UNCACHED, changed, delta_files, grow, long_tail, scanned
from tests.support.reading import STRATEGIES
from tests.support.sidecar_damage import sealed
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import file_at, removed, storage_of, telemetry


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Two hundred commits, 188 of them in three delta files, with a `.crc`. Copy it before you change it."""
    return long_tail(tmp_path_factory.mktemp("long")).crc()


@pytest.fixture
def table(made: TableBuilder, tmp_path: Path) -> TableBuilder:
    """A copy of it to be changed; its live keys are those of the copy."""
    copy = telemetry(tmp_path / "table")
    shutil.copytree(made.path, copy.path, dirs_exist_ok=True)
    copy.states = made.states
    return copy


def live(table: TableBuilder, made: TableBuilder) -> set[Any]:
    return {(path.replace(str(made.path), str(table.path)), vector) for path, vector in made.live()}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_long_tail_comes_by_delta_files_and_the_newest_commits(made: TableBuilder, strategy: str) -> None:
    found, report = scanned(made, strategy=strategy)
    assert (len(found), set(found)) == (len(made.live()), made.live())
    assert (report.commits_read, report.commits_by_delta, report.delta_files) == (12, 188, 3)
    assert "12 of 200 commits read, 188 by 3 delta files" in str(report)
    assert report.fallbacks == ()
    # Hint, manifest, `.crc`, 12 commits, the checkpoint; of each delta file its footer, its rows (twice where
    # the tail is a mask first), and the head of its last commit, because a disk has no e-tags.
    assert report.requests - report.requests_by_kind["list"] <= 30


def test_a_plain_walk_of_the_same_tail_reads_every_commit(table: TableBuilder, made: TableBuilder) -> None:
    shutil.rmtree(table.path / "_delta_log" / "_lazy")
    found, report = scanned(table)
    assert set(found) == live(table, made)
    assert (report.commits_read, report.delta_files) == (200, 0)
    assert report.requests > 200


def test_files_come_in_the_order_of_a_plain_walk_of_commits(table: TableBuilder, made: TableBuilder) -> None:
    by_delta, _ = scanned(made, strategy="reverse")
    shutil.rmtree(table.path / "_delta_log" / "_lazy")
    by_commits, _ = scanned(table, strategy="reverse")
    names = [[Path(path).name for path, _ in found] for found in (by_delta, by_commits)]
    assert names[0] == names[1]


def test_a_short_tail_does_not_look_for_delta_files(tmp_path: Path) -> None:
    table = telemetry(tmp_path).commit([file_at(0, "first")]).checkpoint()
    grow(table, limits.SIDECAR_DELTA_COMMITS - 1)
    write_delta_files(storage_of(table), config=SidecarConfig(delta_commits_min=1))
    found, report = scanned(table.crc())
    assert set(found) == table.live()
    assert (report.delta_files, report.commits_read) == (0, limits.SIDECAR_DELTA_COMMITS - 1)


def test_a_limit_that_the_newest_commits_satisfy_does_not_look_for_delta_files(made: TableBuilder) -> None:
    found, report = scanned(made, limit=5)
    assert len(found) == 5
    assert (report.delta_files, report.requests_by_kind["list"]) == (0, 1)


def test_a_limit_within_a_delta_file_opens_only_that_one(made: TableBuilder) -> None:
    found, report = scanned(made, limit=40)
    assert len(set(found)) == 40
    assert (report.delta_files, report.commits_by_delta) == (1, 58)


def test_an_older_version_is_read_with_the_files_that_end_before_it(made: TableBuilder) -> None:
    found, report = scanned(made, version=140)
    assert set(found) == made.live(140)
    assert (report.commits_read, report.commits_by_delta, report.delta_files) == (10, 130, 2)


def test_a_file_that_reaches_into_the_commits_read_first_serves_for_the_rest(tmp_path: Path) -> None:
    table = long_tail(tmp_path, stretches=(80,), rest=0).crc()
    found, report = scanned(table)
    assert set(found) == table.live()
    assert (report.commits_read, report.commits_by_delta) == (10, 70)


@pytest.mark.parametrize("scan", [{"strict": True}, {}], ids=["strict", "statistics as JSON"])
def test_scans_that_need_the_commits_themselves_read_them(made: TableBuilder, scan: dict[str, Any]) -> None:
    run = ld.open(str(made.path), settings=UNCACHED).scan(**scan)
    files = list(run.files(with_stats=not scan))
    assert len(files) == len(made.live())
    assert run.explain().delta_files == 0


def test_a_predicate_on_statistics_drops_rows_of_delta_files(made: TableBuilder) -> None:
    found, report = scanned(made, where="value <= 101.5", strategy="reverse")
    # Not `>=`: a float's maximum excludes nothing, because NaN is the greatest.
    assert {Path(path).parent.name for path, _ in found} == {f"_event_hour={n:010}" for n in range(102)}
    assert report.delta_files == 3


def test_a_predicate_on_the_partition_drops_rows_of_delta_files(made: TableBuilder) -> None:
    found, _ = scanned(made, where=f"_event_hour = '{100:010}'", strategy="reverse")
    assert {Path(path).name for path, _ in found} == {"g100.parquet"}


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def footer_changed(path: Path) -> None:
    changed(path, lambda body: body.__setitem__(-40, body[-40] ^ 1))


def rows_changed(path: Path) -> None:
    changed(path, lambda body: body.__setitem__(60, body[60] ^ 0xFF))


def of_another_commit(path: Path) -> None:
    rewrite(path, lambda facts: facts["commit"].__setitem__("head_sha256", "0" * 64))


def of_another_table(path: Path) -> None:
    rewrite(path, lambda facts: facts.__setitem__("table_id", "another"))


def of_a_newer_format(path: Path) -> None:
    rewrite(path, lambda facts: facts.__setitem__("format", 2))


def of_other_versions(path: Path) -> None:
    rewrite(path, lambda facts: facts.__setitem__("until", facts["until"] + 1))


def reaching_below_the_checkpoint(path: Path) -> None:
    rewrite(path, lambda facts: facts.__setitem__("after", -1))


def no_delta_file(path: Path) -> None:
    rewrite(path, lambda facts: facts.clear())


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def rewrite(path: Path, change: Any, change_rows: Any = lambda rows: rows) -> None:
    """The same rows, or other ones, with other facts, sealed as a writer would."""
    with pq.ParquetFile(path) as file:
        keys, rows, schema = dict(file.metadata.metadata), file.read(), file.schema_arrow
    facts = json.loads(keys[b"lazydelta.delta"])
    change(facts)
    if facts:
        keys[b"lazydelta.delta"] = json.dumps(facts).encode()
    else:
        del keys[b"lazydelta.delta"]
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer:
        writer.add_key_value_metadata(keys)
        writer.write_table(change_rows(rows))
    path.write_bytes(sealed(sink.getvalue().to_pybytes()))


LONG = pytest.mark.long("the same damage in another place")
DAMAGE = [
    torn,
    emptied,
    footer_changed,
    rows_changed,
    of_another_commit,
    of_another_table,
    of_a_newer_format,
    of_other_versions,
    reaching_below_the_checkpoint,
    no_delta_file,
]


@pytest.mark.parametrize(
    ("damage", "which"),
    [
        pytest.param(
            damage, which, id=f"{damage.__name__}-{place}", marks=[] if which == 1 or damage is torn else LONG
        )
        for damage in DAMAGE
        for which, place in enumerate(("oldest", "middle", "newest"))
    ],
)
def test_a_file_that_does_not_serve_is_replaced_by_its_commits_and_told(
    table: TableBuilder, made: TableBuilder, damage: Any, which: int
) -> None:
    path = delta_files(table)[which]
    damage(path)
    for strategy in ("reverse", "forward"):
        found, report = scanned(table, strategy=strategy)
        assert len(found) == len(set(found))
        assert set(found) == live(table, made)
        assert report.delta_files == 2
        assert report.commits_read == 12 + (60, 70, 58)[which]
        assert [path.name in reason for reason in report.fallbacks] == [True]


def test_a_rewritten_file_with_right_facts_still_serves(table: TableBuilder, made: TableBuilder) -> None:
    rewrite(delta_files(table)[1], lambda facts: facts)
    found, report = scanned(table)
    assert set(found) == live(table, made)
    assert (report.delta_files, report.fallbacks) == (3, ())


def test_a_file_left_out_of_the_middle_is_a_matter_of_commits_and_no_damage(
    table: TableBuilder, made: TableBuilder
) -> None:
    delta_files(table)[1].unlink()
    found, report = scanned(table)
    assert set(found) == live(table, made)
    assert (report.commits_read, report.commits_by_delta, report.fallbacks) == (82, 118, ())


def test_of_files_that_overlap_only_one_serves(table: TableBuilder, made: TableBuilder) -> None:
    oldest = delta_files(table)[0]
    beside = oldest.read_bytes()
    oldest.unlink()
    write_delta_files(storage_of(table), config=SidecarConfig(delta_commits_min=1), anew=True)
    oldest.write_bytes(beside)  # a stale one within the range of the one that was written anew
    found, report = scanned(table)
    assert set(found) == live(table, made)
    assert len(found) == len(set(found))
    assert report.delta_files == 1


def test_a_log_that_was_restored_and_committed_anew_leaves_its_delta_files(
    table: TableBuilder, made: TableBuilder
) -> None:
    for version in range(189, 201):
        (table.log / f"{version:020}.json").unlink()
    (table.log / f"{200:020}.crc").unlink()
    last = table.log / f"{188:020}.json"
    last.write_text(last.read_text(encoding="utf-8").replace("g188", "h188"), encoding="utf-8")
    found, report = scanned(table)
    names = {Path(path).name for path, _ in found}
    assert "h188.parquet" in names
    assert "g188.parquet" not in names
    assert report.delta_files == 2
    assert len(report.fallbacks) == 1


def spread_table(folder: Path, *, config: SidecarConfig) -> TableBuilder:
    """Commits that each lie in several row groups, with updated deletion vectors and re-adds."""
    table = telemetry(folder).commit([file_at(0, f"old{n}") for n in range(30)]).checkpoint()
    for number in range(1, 6):
        adds = [file_at(number, f"n{number}-{n}") for n in range(9)]
        adds += [file_at(0, f"old{number}", deletion_vector=relative_dv(offset=number))]
        adds += [file_at(0, "old29")]
        gone = [removed(0, f"old{number}")] if number % 2 else [removed(number - 1, f"n{number - 1}-0")]
        table.commit(adds, gone)
    write_delta_files(storage_of(table), config=config)
    return table.crc()


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 12, 1000])
def test_versions_may_lie_in_several_row_groups(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SIDECAR_DELTA_COMMITS", 1)
    table = spread_table(tmp_path, config=SidecarConfig(delta_commits_min=1, row_group_rows=rows))
    for strategy in ("reverse", "forward"):
        found, report = scanned(table, strategy=strategy, commit_read_parallelism=1)
        assert len(found) == len(set(found))
        assert set(found) == table.live()
        assert (report.commits_by_delta, report.fallbacks) == (4, ())


@pytest.mark.parametrize(  # those of the newest commit are not needed
    "broken", [pytest.param(group, marks=[] if group in (0, 4, 9) else LONG) for group in range(10)]
)
@pytest.mark.parametrize("limit", [None, 1000], ids=["read ahead", "one by one"])
def test_damage_half_way_continues_by_commits_and_nothing_comes_twice(
    tmp_path: Path, broken: int, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SIDECAR_DELTA_COMMITS", 1)
    monkeypatch.setattr(limits, "COMMIT_WHOLE_BYTES_MAX", 0)  # so that commits come in several slices, too
    monkeypatch.setattr(limits, "COMMIT_CHUNK_BYTES", 500)
    table = spread_table(tmp_path, config=SidecarConfig(delta_commits_min=1, row_group_rows=5))
    [path] = delta_files(table)
    group = pq.read_metadata(path).row_group(broken)
    column = next(
        group.column(n) for n in range(group.num_columns) if group.column(n).path_in_schema == "path"
    )
    at = column.data_page_offset + column.total_compressed_size - 3
    changed(path, lambda body: body.__setitem__(at, body[at] ^ 0xFF))
    found, report = scanned(table, limit=limit, strategy="reverse", commit_read_parallelism=1)
    assert len(found) == len(set(found))
    assert set(found) == table.live()
    assert len(report.fallbacks) == 1


def test_rows_that_are_not_in_the_order_of_their_versions_are_damage(
    table: TableBuilder, made: TableBuilder
) -> None:
    """The footer's statistics are those of the rows, and still the rows are not in the order of the log."""

    def with_two_versions_exchanged(rows: pa.Table) -> pa.Table:
        versions = rows.column("version").to_pylist()
        inside = next(at for at in range(1, len(versions) - 2) if versions[at] != versions[at + 1])
        order = list(range(rows.num_rows))
        order[inside], order[inside + 1] = inside + 1, inside
        return rows.take(order)

    rewrite(max(delta_files(table)), lambda _facts: None, with_two_versions_exchanged)
    found, report = scanned(table)
    assert set(found) == live(table, made)
    assert (report.delta_files, len(report.fallbacks)) == (2, 1)
