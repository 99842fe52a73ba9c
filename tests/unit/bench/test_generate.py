"""Generated logs are valid, exact and repeatable: the same live files for the plan, the twin and delta-rs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.files import Files, as_double
from bench.generate import Expected, generate, main
from bench.history import live_keys, plan
from bench.spec import TableSpec
from tests.support.eager_twin import replay
from tests.support.keys import FileKey, file_key
from tests.support.peers import delta_rs_paths

SMALL: dict[str, Any] = {
    "files": 3_000,
    "tail_commits": 6,
    "tail_adds": 30,
    "tail_removes": 12,
    "tail_dv_updates": 6,
    "adds_per_commit": 700,
    "checkpoint_parts": 3,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "v1": {},
    "v1_shuffled_both_stats": {"order": "shuffled", "stats": "both"},
    "v1_parsed_stats": {"stats": "parsed"},
    "v1_multipart": {"checkpoint": "v1-multipart"},
    "v2_parquet": {"checkpoint": "v2-parquet", "stats": "both"},
    "v2_json": {"checkpoint": "v2-json"},
    "no_checkpoint": {"checkpoint": "none"},
    "no_checkpoint_shuffled": {"checkpoint": "none", "order": "shuffled"},
    "unpartitioned": {"partitioned": False, "stats": "both"},
    "event_hour": {"event_hour": True, "stats": "both"},
    "no_deletion_vectors_no_crc": {"tail_dv_updates": 0, "crc": False},
    "no_tail": {"tail_commits": 0},
    "two_stats_columns": {
        "event_hour": True,
        "stats": "both",
        "stats_width": 2,
        "tail_minutes": 50,
        "time_settings": True,
    },
    "wide": {"stats": "both", "stats_width": 20},
}


def _spec(**changes: Any) -> TableSpec:
    return TableSpec(**(SMALL | changes))


def _planned(spec: TableSpec, root: Path) -> set[FileKey]:
    """The live keys that the plan promises, spelled as the log spells them."""
    numbers, generations = live_keys(spec, plan(spec))
    files = Files(spec, numbers)
    paths = [row.tobytes().decode() for row in files.path_text()]
    vectors = [row.tobytes().decode() for row in files.dv_text(generations)]
    described = zip(paths, vectors, generations, strict=True)
    return {
        file_key(
            {"path": path}
            | (
                {"deletionVector": {"storageType": "u", "pathOrInlineDv": vector, "offset": 1}}
                if generation
                else {}
            ),
            root,
        )
        for path, vector, generation in described
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_plan_twin_and_delta_rs_agree_on_the_live_files(variant: str, tmp_path: Path) -> None:
    spec = _spec(**VARIANTS[variant])
    expected = generate(tmp_path, spec)
    state = replay(tmp_path)
    assert set(state.live) == _planned(spec, tmp_path)
    assert sorted(delta_rs_paths(tmp_path)) == sorted(state.paths())
    assert (state.version, len(state.live)) == (expected.version, expected.live_files)
    assert sum(add["size"] for add in state.live.values()) == expected.live_bytes


def test_the_tail_removes_updates_and_adds_again() -> None:
    spec = _spec()
    commits = plan(spec).commits
    removed = [number for commit in commits for number, _ in commit.removes]
    assert any(number < spec.files for number in removed), "a file of the checkpoint"
    assert any(number >= spec.files for number in removed), "a file of the tail"
    updates = [update for commit in commits for update in commit.dv_updates]
    assert any(before == 0 for _, before, _ in updates)
    assert any(before > 0 for _, before, _ in updates), "a second update of the same file"
    assert all(commit.readds for commit in commits)


def test_no_commit_touches_a_file_twice() -> None:
    for commit in plan(_spec()).commits:
        touched = (
            [n for n, _ in commit.removes]
            + [n for n, _ in commit.readds]
            + [n for n, *_ in commit.dv_updates]
        )
        assert len(touched) == len(set(touched))


def test_the_same_options_give_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        generate(tmp_path / name, _spec(seed=seed, stats="both", order="shuffled"))
    assert _digest(tmp_path / "one") == _digest(tmp_path / "again") != _digest(tmp_path / "other")


@pytest.mark.parametrize("variant", ["v1", "no_checkpoint", "no_deletion_vectors_no_crc"])
def test_checksums_carry_the_commits_id_and_the_true_sums(variant: str, tmp_path: Path) -> None:
    spec = _spec(**VARIANTS[variant] | {"crc": True})
    generate(tmp_path, spec)
    log = tmp_path / "_delta_log"
    for version in (spec.base_version, spec.base_version + 1, spec.version):
        checksum = json.loads((log / f"{version:020d}.crc").read_text())
        info = json.loads((log / f"{version:020d}.json").read_text().splitlines()[0])["commitInfo"]
        state = replay(tmp_path, version=version)
        vectors = [add["deletionVector"] for add in state.live.values() if add.get("deletionVector")]
        assert checksum["txnId"] == info["txnId"]
        assert checksum["numFiles"] == len(state.live)
        assert checksum["tableSizeBytes"] == sum(add["size"] for add in state.live.values())
        assert sum(checksum["fileSizeHistogram"]["fileCounts"]) == len(state.live)
        assert checksum.get("numDeletionVectorsOpt", 0) == len(vectors)
        assert checksum.get("numDeletedRecordsOpt", 0) == sum(vector["cardinality"] for vector in vectors)


def test_no_crc_means_none(tmp_path: Path) -> None:
    generate(tmp_path, _spec(crc=False))
    assert not list((tmp_path / "_delta_log").glob("*.crc"))


def test_json_and_typed_statistics_say_the_same(tmp_path: Path) -> None:
    spec = _spec(stats="both")
    generate(tmp_path, spec)
    rows = pq.read_table(next((tmp_path / "_delta_log").glob("*.checkpoint.parquet")), columns=["add"])
    adds = [add for add in rows["add"].to_pylist() if add]
    assert len(adds) == spec.files
    for add in adds[:200]:
        told, typed = json.loads(add["stats"]), add["stats_parsed"]
        assert told["numRecords"] == typed["numRecords"]
        assert told["tightBounds"] == typed["tightBounds"] == (add["deletionVector"] is None)
        for bound in ("minValues", "maxValues"):
            assert told[bound]["value"] == typed[bound]["value"]
            assert told[bound]["device_id"] == typed[bound]["device_id"]
            assert (
                told[bound]["event_time"]
                == f"{typed[bound]['event_time'].isoformat(timespec='milliseconds')}Z"
            )
        assert typed["minValues"]["event_time"].date() == add["partitionValues_parsed"]["date"]
        assert typed["maxValues"]["event_time"].date() == add["partitionValues_parsed"]["date"]


def test_doubles_in_the_statistics_are_the_shortest_text_of_their_value() -> None:
    files = Files(_spec(), np.arange(500))
    texts = [json.loads(row.tobytes(), parse_float=str)["maxValues"]["value"] for row in files.stats_text()]
    assert texts == [repr(value) for value in as_double(files.value_max).tolist()]


def test_ingest_order_is_by_age_and_shuffled_is_not(tmp_path: Path) -> None:
    order = {}
    for name in ("ingest", "shuffled"):
        generate(tmp_path / name, _spec(order=name))
        log = tmp_path / name / "_delta_log"
        rows = pq.ParquetFile(next(log.glob("*.checkpoint.parquet"))).read(columns=["add.modificationTime"])
        order[name] = [add["modificationTime"] for add in rows["add"].to_pylist() if add]
    assert order["ingest"] == sorted(order["ingest"])
    assert order["shuffled"] != order["ingest"]
    assert sorted(order["shuffled"]) == order["ingest"]


def test_protocol_and_metadata_lie_deep_inside_the_checkpoint(tmp_path: Path) -> None:
    generate(tmp_path, _spec())
    rows = pq.read_table(next((tmp_path / "_delta_log").glob("*.checkpoint.parquet")))
    places = [pc.indices_nonzero(rows[name].is_valid()).to_pylist() for name in ("protocol", "metaData")]
    assert [len(place) for place in places] == [1, 1]
    assert all(0.8 * rows.num_rows < place[0] < 0.9 * rows.num_rows for place in places)


def test_data_files_have_the_size_the_rows_and_the_bounds_of_their_log_entry(tmp_path: Path) -> None:
    spec = _spec(files=200, tail_commits=3, tail_adds=5, tail_removes=4, tail_dv_updates=2, data="all")
    generate(tmp_path, spec)
    for add in replay(tmp_path).live.values():
        path = tmp_path / add["path"]
        stats = json.loads(add["stats"])
        rows = pq.ParquetFile(path).read()
        assert path.stat().st_size == add["size"]
        assert rows.num_rows == stats["numRecords"]
        bounds = pc.min_max(rows["value"]).as_py()
        assert bounds == {"min": stats["minValues"]["value"], "max": stats["maxValues"]["value"]}


def test_newest_data_exists_for_the_newest_commit_only(tmp_path: Path) -> None:
    spec = _spec(data="newest")
    generate(tmp_path, spec)
    lines = (tmp_path / "_delta_log" / f"{spec.version:020d}.json").read_text().splitlines()
    adds = [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]
    assert {add["path"] for add in adds} == {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("part-*")}
    assert all((tmp_path / add["path"]).stat().st_size == add["size"] for add in adds)


def test_the_command_line_prints_what_a_reader_must_find(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(tmp_path / "t"), "--files", "1_000", "--unpartitioned", "--tail-commits", "2", "--no-crc"])
    printed = msgspec.json.decode(capsys.readouterr().out, type=Expected)
    assert printed.live_files == len(delta_rs_paths(tmp_path / "t"))


def test_a_tail_that_touches_more_files_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="the tail touches 2,600 files, the table has 100"):
        main([str(tmp_path / "t"), "--files", "100"])


def test_specs_that_differ_have_names_that_differ() -> None:
    specs = [_spec(**changes) for changes in VARIANTS.values()]
    assert len({spec.name for spec in specs}) == len(specs)


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()
