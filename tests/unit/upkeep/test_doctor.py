"""The doctor: every cause is found with its figures, its command mends it, and a huge table costs no more."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest
from typer.main import get_command

import lazydelta as ld
from bench.generate import generate
from bench.spec import TableSpec
from lazydelta import limits
from lazydelta.cli.app import app
from lazydelta.errors import InvalidRequestError
from lazydelta.upkeep.doctor_findings import DoctorReport, Finding, RunsIn, Severity
from lazydelta.upkeep.doctor_sidecar_rules import MANIFESTS_MAX
from tests.support.actions import add, inline_dv, stats
from tests.support.peak_memory import peak_growth
from tests.support.sidecar_damage import lazy_folder
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import built

BIG = 200_000_000


def files(count: int, *, first: int = 0, size: int = BIG) -> list[dict[str, object]]:
    """Files with statistics, large enough to please."""
    return [
        add(f"part-{n}.parquet", size=size, stats=stats(10, low={"value": n}, high={"value": n + 1}))
        for n in range(first, first + count)
    ]


def well(folder: Path, **axes: object) -> TableBuilder:
    """A table that nothing ails: a checkpoint, its sidecar, a `.crc`."""
    table = TableBuilder(folder, **axes).commit(files(20)).checkpoint()  # type: ignore[arg-type]
    built(table)
    return table.crc()


def report_on(table: TableBuilder | Path, where: object = None, **options: str) -> DoctorReport:
    """What the doctor says; the cache of the process is left aside."""
    path = table if isinstance(table, Path) else table.path
    return ld.open(path, storage_options={"delta.cache.bytes": "0", **options}).doctor(where)


def only(report: DoctorReport, code: str) -> Finding:
    [found] = [finding for finding in report.findings if finding.code == code]
    return found


def codes(report: DoctorReport) -> set[str]:
    return {finding.code for finding in report.findings}


def test_a_well_kept_table_has_nothing_to_do(tmp_path: Path) -> None:
    report = report_on(well(tmp_path))
    assert report.findings == ()
    assert report.worst is None
    assert not report.needs_work
    examined = report.examined
    assert examined is not None
    assert (examined.files_sampled, examined.is_sample_whole, examined.files_known) == (20, True, 20)
    assert examined.is_log_listed_whole


def test_a_missing_sidecar_is_a_note_on_a_small_table_and_its_command_mends_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(files(20)).checkpoint().crc()
    found = only(report_on(table), "no_sidecar")
    assert found.severity is Severity.NOTE
    run(found)
    assert "no_sidecar" not in codes(report_on(table))


def test_a_missing_sidecar_of_a_large_table_is_a_warning(tmp_path: Path) -> None:
    expected = generate(tmp_path / "t", TableSpec(files=20_000, tail_commits=5))
    found = only(report_on(tmp_path / "t"), "no_sidecar")
    assert found.severity is Severity.WARNING
    assert found.facts["files"] == expected.live_files


def test_a_stale_sidecar_tells_how_many_commits_it_is_behind(tmp_path: Path) -> None:
    table = well(tmp_path)
    for n in range(3):
        table.commit(files(1, first=100 + n))
    table.checkpoint().commit(files(1, first=200)).crc()
    found = only(report_on(table), "stale_sidecar")
    assert found.facts == {"sidecar_version": 0, "commits_behind": 4, "behind_checkpoint": 3}
    run(found)
    assert "stale_sidecar" not in codes(report_on(table))


def test_a_sidecar_of_another_log_is_told_and_built_anew(tmp_path: Path) -> None:
    table = well(tmp_path)
    table.append_to_commit(0, "\n")
    found = only(report_on(table), "sidecar_foreign")
    assert found.severity is Severity.WARNING
    run(found)
    assert "sidecar_foreign" not in codes(report_on(table))


def test_a_damaged_manifest_is_told_and_built_anew(tmp_path: Path) -> None:
    table = well(tmp_path)
    [manifest] = lazy_folder(table).glob("*.manifest.json")
    manifest.write_bytes(b"{")
    found = only(report_on(table), "sidecar_damaged")
    run(found)
    assert report_on(table).findings == ()


def test_a_sidecar_that_is_switched_off_is_a_note(tmp_path: Path) -> None:
    report = report_on(well(tmp_path), **{"delta.sidecar.enabled": "false"})
    assert codes(report) == {"sidecar_disabled"}
    assert not report.needs_work


def test_a_sidecar_by_path_alone_can_be_sorted_by_time(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, partition_columns=())
    hours = [f"2026-02-08T{hour:02}:00:00.000Z" for hour in range(20)]
    adds = [
        add(f"f{n}", partition={}, size=BIG, stats=stats(5, low={"ts": hour}, high={"ts": hour}))
        for n, hour in enumerate(hours)
    ]
    table.commit(adds).checkpoint().crc()
    built(table)
    report = report_on(table)
    assert codes(report) == {"sidecar_unsorted", "no_time_column"}
    found = only(report, "sidecar_unsorted")
    assert found.facts == {"time_column": "ts"}
    run(found)
    assert report_on(table).findings == ()


def test_a_column_of_an_odd_name_is_spelled_as_each_command_takes_it(tmp_path: Path) -> None:
    """The builder's, the properties' and the pipeline's spelling of a column are none of a filter's."""
    name = "event's time"
    table = TableBuilder(tmp_path, partition_columns=(), schema={name: "timestamp"})
    wide = stats(5, low={name: "2026-02-08T00:00:00.000Z"}, high={name: "2026-02-08T23:59:00.000Z"})
    table.commit([add(f"f{n}", partition={}, size=BIG, stats=wide) for n in range(20)]).checkpoint().crc()
    built(table)
    report = report_on(table)
    assert only(report, "no_time_column").facts == {"time_column": name}
    remedy = only(report, "no_time_column").remedy
    assert remedy is not None
    assert remedy.command.endswith("SET TBLPROPERTIES ('lazydelta.time.column' = 'event\\'s time')")
    assert shlex.quote(name) in only(report, "not_aligned").fix
    run(only(report, "sidecar_unsorted"))
    assert "sidecar_unsorted" not in codes(report_on(table))


def test_sidecars_that_nobody_cleaned_up_are_counted(tmp_path: Path) -> None:
    table = well(tmp_path)
    for n in range(MANIFESTS_MAX):
        table.commit(files(1, first=100 + n)).checkpoint()
        built(table)
    table.crc()
    found = only(report_on(table), "sidecar_leftovers")
    assert found.facts["manifests"] == MANIFESTS_MAX + 1
    assert found.remedy is not None
    assert shlex.split(found.remedy.command)[:3] == ["lazydelta", "sidecar", "clean"]
    parsed(found.remedy.command)


def test_a_table_without_a_checkpoint_is_a_problem_once_it_is_long(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for n in range(21):
        table.commit(files(1, first=n))
    report = report_on(table.crc())
    assert only(report, "no_checkpoint").facts["commits"] == 21
    assert report.worst is Severity.PROBLEM


def test_a_long_tail_is_gathered_in_delta_files(tmp_path: Path) -> None:
    table = well(tmp_path)
    for n in range(60):
        table.commit(files(1, first=100 + n))
    table.crc()
    found = only(report_on(table), "long_tail")
    assert (found.severity, found.facts["commits_since_checkpoint"]) == (Severity.WARNING, 60)
    run(found)
    again = only(report_on(table), "long_tail")
    assert (again.severity, again.facts["commits_by_delta_files"]) == (Severity.NOTE, 60)


def test_a_missing_checksum_tells_what_the_opening_reads_instead(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(files(20)).checkpoint().commit(files(1, first=30))
    built(table)
    found = only(report_on(table), "no_crc")
    assert found.severity is Severity.NOTE
    assert found.facts["tail_bytes"] == (table.log / f"{1:020}.json").stat().st_size


def test_a_missing_hint_is_told(tmp_path: Path) -> None:
    table = well(tmp_path)
    table.without_hint()
    assert only(report_on(table), "no_hint").facts["checkpoint_version"] == 0


def test_a_checkpoint_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    table = well(tmp_path)
    table.commit(files(1, first=50)).checkpoint().corrupt(f"{1:020}.checkpoint.parquet")
    assert only(report_on(table), "checkpoint_damaged").severity is Severity.PROBLEM


def test_a_log_that_nobody_cleans_up_is_told_with_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lazydelta.upkeep.doctor_log_rules.OLD_FILES_MAX", 5)
    table = TableBuilder(tmp_path, configuration={"delta.enableExpiredLogCleanup": "false"})
    for n in range(12):
        table.commit(files(1, first=n))
    table.checkpoint().crc()
    found = only(report_on(table), "log_retention")
    assert found.facts["old_commits"] == 11
    assert found.facts["is_cleanup_off"] is True
    assert "nothing is ever deleted" in found.what
    monkeypatch.setattr(limits, "DOCTOR_LOG_FILES_MAX", 11)
    report = report_on(table)
    assert "at least" in only(report, "log_retention").what
    assert report.examined is not None and not report.examined.is_log_listed_whole


def test_small_files_are_told_by_the_whole_table_and_by_the_sample(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(files(150, size=2_000_000)).checkpoint().crc()
    built(table)
    found = only(report_on(table), "small_files")
    assert (found.facts["files"], found.facts["average_bytes"], found.facts["size_median"]) == (
        150,
        2_000_000,
        2_000_000,
    )
    assert found.facts["sizes"] == {
        "below 1 MB": 0,
        "1 to 16 MB": 150,
        "16 to 128 MB": 0,
        "128 MB to 1 GB": 0,
        "over 1 GB": 0,
    }
    assert found.what.endswith("(150 of 1 to 16 MB)")
    assert found.remedy is not None and found.remedy.runs_in is RunsIn.SPARK_SQL


def test_a_table_of_periods_is_compacted_by_our_own_command(tmp_path: Path) -> None:
    settings = {"lazydelta.time.column": "date"}
    table = TableBuilder(tmp_path, configuration=settings).commit(files(150, size=10)).checkpoint().crc()
    remedy = only(report_on(table), "small_files").remedy
    assert remedy is not None and shlex.split(remedy.command)[:2] == ["lazydelta", "optimize"]
    parsed(remedy.command)


def test_files_without_statistics_are_counted(tmp_path: Path) -> None:
    bare = [add(f"bare-{n}", size=BIG) for n in range(5)]
    table = TableBuilder(tmp_path).commit([*files(15), *bare]).checkpoint().crc()
    assert only(report_on(table), "no_statistics").facts == {"files_without": 5, "sampled": 20}


def test_many_deletion_vectors_are_counted_with_their_rows(tmp_path: Path) -> None:
    marked = [add(f"dv-{n}", size=BIG, stats=stats(10), deletion_vector=inline_dv()) for n in range(10)]
    table = TableBuilder(tmp_path).commit([*files(10), *marked]).checkpoint().crc()
    facts = only(report_on(table), "deletion_vectors").facts
    assert facts == {"files_with_vectors": 10, "rows_deleted": 20, "sampled": 20}


def test_files_that_hold_many_hours_each_are_told(tmp_path: Path) -> None:
    wide = stats(5, low={"ts": "2026-02-08T00:00:00.000Z"}, high={"ts": "2026-02-08T23:59:00.000Z"})
    table = TableBuilder(tmp_path).commit([add(f"f{n}", size=BIG, stats=wide) for n in range(20)]).crc()
    facts = only(report_on(table), "not_aligned").facts
    assert (facts["time_column"], facts["last_hour_files"], facts["sampled"]) == ("ts", 20, 20)


def test_a_filter_without_statistics_names_the_column_and_the_setting(tmp_path: Path) -> None:
    settings = {"delta.dataSkippingStatsColumns": "value"}
    table = well(tmp_path, configuration=settings)
    report = report_on(table, "value < 3 and count = 7 and date = '2026-02-08'")
    found = only(report, "filter_column_without_statistics")
    assert found.facts == {"column": "count", "files_without": 20, "sampled": 20}
    assert found.remedy is not None
    assert "'delta.dataSkippingStatsColumns' = 'value,count'" in found.remedy.command
    facts = only(report, "filter_effect").facts
    assert (facts["files_kept"], facts["sampled"], facts["row_groups"]) == (3, 20, 6)
    assert report.predicate is not None and "count = 7" in report.predicate


def test_a_column_of_an_odd_name_is_asked_for_in_the_words_of_delta(tmp_path: Path) -> None:
    schema = {"value": "long", "a count": "long", "date": "date"}
    table = TableBuilder(tmp_path, configuration={"delta.dataSkippingStatsColumns": "value"}, schema=schema)
    table.commit(files(20)).checkpoint().crc()
    found = only(report_on(table, '"a count" = 7'), "filter_column_without_statistics")
    assert found.remedy is not None
    assert "'delta.dataSkippingStatsColumns' = 'value,`a count`'" in found.remedy.command


def test_statistics_that_the_table_asks_for_and_a_writer_leaves_out_are_told_apart(tmp_path: Path) -> None:
    found = only(report_on(well(tmp_path), "count = 7"), "filter_column_without_statistics")
    assert "though the table asks its writers for them" in found.what


def test_typed_statistics_of_a_checkpoint_and_a_sidecar_count_as_json_does(tmp_path: Path) -> None:
    kept = []
    for stats_form in ("json", "parsed", "both"):
        folder = tmp_path / stats_form
        generate(folder, TableSpec(files=2_000, tail_commits=0, tail_dv_updates=0, stats=stats_form))
        report = report_on(folder, "value < 200")
        kept.append(only(report, "filter_effect").facts["files_kept"])
        assert "no_statistics" not in codes(report), stats_form
    assert len(set(kept)) == 1
    assert 0 < int(str(kept[0])) < 1_000


@pytest.mark.parametrize("mapping", [None, "name"])
def test_a_column_past_the_indexed_ones_is_told_with_its_place(tmp_path: Path, mapping: str | None) -> None:
    settings = {"delta.dataSkippingNumIndexedCols": "3"}
    table = TableBuilder(tmp_path, configuration=settings, column_mapping=mapping)
    table.commit(files(20)).checkpoint().crc()
    found = only(report_on(table, "count = 7"), "filter_column_without_statistics")
    assert "it is column number 4, and the first 3 have statistics" in found.what
    assert found.remedy is not None
    assert "'delta.dataSkippingNumIndexedCols' = '4'" in found.remedy.command


def test_an_unknown_column_is_the_usual_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="there is no column valu"):
        report_on(well(tmp_path), "valu = 3")


def test_an_empty_table_has_nothing_to_sample(tmp_path: Path) -> None:
    report = report_on(TableBuilder(tmp_path).commit())
    assert codes(report) <= {"no_crc"}
    assert report.examined is not None and report.examined.files_sampled == 0


def test_ten_times_the_files_cost_no_more(tmp_path: Path) -> None:
    """Requests, bytes and memory follow the sample, not the table."""
    for count in (20_000, 200_000):
        folder = tmp_path / str(count)
        generate(folder, TableSpec(files=count, tail_commits=2, tail_adds=10, tail_removes=5))
        with peak_growth() as growth:
            examined = report_on(folder, "value < 100.05").examined
        assert examined is not None
        assert growth() < 60_000_000
        assert (examined.files_sampled, examined.is_sample_whole) == (limits.DOCTOR_SAMPLE_FILES, False)
        assert examined.requests <= 30
        assert examined.bytes_read <= 5_000_000


def test_every_command_of_a_shell_is_one_that_this_command_line_has(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "a table's folder")
    for n in range(60):
        table.commit(files(3, first=3 * n, size=10))
    shells = [f.remedy for f in report_on(table).findings if f.remedy and f.remedy.runs_in is RunsIn.SHELL]
    assert shells
    for remedy in shells:
        assert ld.open(str(parsed(remedy.command)["url"])).version == table.version


def test_findings_survive_json(tmp_path: Path) -> None:
    report = report_on(TableBuilder(tmp_path).commit(files(150, size=10)).checkpoint())
    told = msgspec.json.decode(msgspec.json.encode(report), type=DoctorReport)
    assert told == report
    order = [list(Severity).index(finding.severity) for finding in report.findings]
    assert order == sorted(order)


def parsed(command: str) -> dict[str, object]:
    """The arguments of a command as this command line reads them."""
    program, *words = shlex.split(command)
    assert program == "lazydelta"
    found: object = get_command(app)
    while hasattr(found, "commands"):
        found = found.commands[words.pop(0)]
    return dict(found.make_context("lazydelta", words).params)  # type: ignore[attr-defined]


def run(finding: Finding) -> None:
    """Do what the finding says."""
    assert finding.remedy is not None
    words = shlex.split(finding.remedy.command)
    assert words[0] == "lazydelta"
    get_command(app)(words[1:], standalone_mode=False)
