"""The sample table: the same every time, right for other readers, with all that the docs promise of it."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow.compute as pc
import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from lazydelta.sample.make import SampleReport, SampleSpec, make_sample
from lazydelta.sample.telemetry import DRIFTING
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.verify import verify_sidecar
from tests.support.telemetry_table import storage_of

SPEC = SampleSpec(files=25, hours=10, rows=20)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SampleReport]:
    folder = tmp_path_factory.mktemp("sample") / "telemetry"
    return folder, make_sample(folder, SPEC)


def test_the_report_tells_what_is_there(made: tuple[Path, SampleReport]) -> None:
    folder, report = made
    table = ld.open(folder)
    assert (report.version, report.files, report.rows, report.hours) == (10, 25, 500, 10)
    assert (report.first_hour, report.last_hour) == ("2026021014", "2026021023")
    assert table.version == report.version
    assert table.info().num_files == report.files == sum(1 for _ in table.scan().files())
    assert table.to_arrow().num_rows == report.rows
    assert report.size_bytes == sum(path.stat().st_size for path in folder.glob("_event_hour=*/*.parquet"))


def test_other_readers_see_the_same_rows(made: tuple[Path, SampleReport]) -> None:
    folder, report = made
    theirs = deltalake.DeltaTable(str(folder))
    assert (theirs.version(), len(theirs.file_uris())) == (report.version, report.files)
    names = ["device_id", "event_time", "value", "status", "city", "_event_hour"]
    order = [("event_time", "ascending"), ("device_id", "ascending"), ("value", "ascending")]
    ours = ld.open(folder).to_arrow(names).sort_by(order)
    rows = theirs.to_pyarrow_table(columns=names).sort_by(order)
    assert rows.to_pylist() == ours.to_pylist()


def test_the_checkpoint_alone_is_enough_for_other_readers(tmp_path: Path) -> None:
    make_sample(tmp_path / "t", SPEC)
    for version in range(8):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()
    assert len(deltalake.DeltaTable(str(tmp_path / "t")).file_uris()) == SPEC.files


def test_the_same_arguments_give_the_same_table(made: tuple[Path, SampleReport], tmp_path: Path) -> None:
    make_sample(tmp_path / "again", SPEC)
    make_sample(tmp_path / "other", SampleSpec(files=25, hours=10, rows=20, seed=2))

    def log(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (folder / "_delta_log").glob("0*.json")}

    assert log(tmp_path / "again") == log(made[0])
    assert log(tmp_path / "other") != log(made[0])


def test_the_sidecar_is_exact_and_serves(made: tuple[Path, SampleReport]) -> None:
    folder, report = made
    assert report.sidecar_version == report.checkpoint_version == 8
    assert verify_sidecar(storage_of(folder), config=SidecarConfig()).is_ok
    scan = ld.open(folder).scan("_event_hour = '2026021015'")
    told = scan.explain()
    assert told.source == "sidecar 8 (manifest)"
    assert told.fallbacks == ()


def test_a_filter_on_the_event_time_rules_out_hours(made: tuple[Path, SampleReport]) -> None:
    files = list(ld.open(made[0]).scan("event_time >= '2026-02-10T23:00:00Z'").files())
    assert {file.partition_values["_event_hour"] for file in files} == {"2026021023"}


def test_statistics_bound_the_rows(made: tuple[Path, SampleReport]) -> None:
    table = ld.open(made[0])
    for file in table.scan().files(with_stats=True):
        told = json.loads(file.stats or "")
        rows = table.scan({"_event_hour": file.partition_values["_event_hour"]}).to_arrow(["value"])
        assert told["minValues"]["value"] >= pc.min(rows.column("value")).as_py()
        assert told["maxValues"]["value"] <= pc.max(rows.column("value")).as_py()
        assert told["numRecords"] == SPEC.rows


def test_one_sensor_drifts(tmp_path: Path) -> None:
    make_sample(tmp_path / "t", SampleSpec(files=24, hours=12, rows=500))
    rows = ld.open(tmp_path / "t").to_arrow(["device_id", "value"])
    at = pc.index(rows.column("value"), pc.max(rows.column("value"))).as_py()
    assert rows.column("device_id")[at].as_py() == DRIFTING


def test_nothing_ails_it_but_its_size(made: tuple[Path, SampleReport]) -> None:
    assert ld.open(made[0]).doctor().findings == ()


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        (SampleSpec(files=0), "files is 0"),
        (SampleSpec(hours=0), "hours is 0"),
        (SampleSpec(files=5, hours=10), "5 files do not fill 10 hours"),
        (SampleSpec(rows=2_000_000), "rows is 2000000"),
        (SampleSpec(seed=-1), "seed is -1"),
    ],
)
def test_what_cannot_be_made_is_an_error(tmp_path: Path, spec: SampleSpec, what: str) -> None:
    with pytest.raises(InvalidRequestError, match=what):
        make_sample(tmp_path / "t", spec)
    assert not (tmp_path / "t").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "mine.txt", Path("s3://bucket/t")):
        with pytest.raises(InvalidRequestError, match="empty or not there"):
            make_sample(folder, SPEC)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_inside_of_a_table_is_refused(made: tuple[Path, SampleReport]) -> None:
    for inside in ("more", "_event_hour=2026020900/more"):
        with pytest.raises(InvalidRequestError, match="inside the table"):
            make_sample(made[0] / inside, SampleSpec())
        assert not (made[0] / inside).exists()


def test_one_hour_is_enough(tmp_path: Path) -> None:
    report = make_sample(tmp_path / "t", SampleSpec(files=1, hours=1, rows=1))
    assert (report.version, report.checkpoint_version) == (1, 1)
    assert ld.open(tmp_path / "t").to_arrow().num_rows == 1
