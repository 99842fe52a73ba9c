"""`lazydelta ingest` before Spark: settings shown, wrong ones refused, Java looked for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.support.command_line import Run, run_process


def test_print_config_shows_what_holds_and_hides_secrets(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(
        '[ingest]\nevent_time = "file"\ngranularity = "day"\n[spark]\n"spark.master" = "local[3]"\n'
    )
    ended = run(
        "ingest", "in", "out", "--config", path, "--time-zone", "Europe/Berlin", "--print-config",
        "--spark-conf", "spark.hadoop.fs.s3a.secret.key=hidden", "--storage-option", "account_key=hidden",
        "--target-file-size", "1MB", "--option", "sep=;",
        LAZYDELTA_INGEST_EVENT_TIME="variable",
    )  # fmt: skip
    assert (ended.exit_code, ended.err) == (0, "")
    tree = tomllib.loads(ended.out)
    assert (tree["ingest"]["source"], tree["ingest"]["target"]) == ("in", "out")
    assert (tree["ingest"]["event_time"], tree["ingest"]["granularity"]) == ("variable", "day")
    assert (tree["ingest"]["time_zone"], tree["ingest"]["target_file_size"]) == ("Europe/Berlin", 1_000_000)
    assert tree["ingest"]["options"] == {"sep": ";"}
    assert tree["spark"]["spark.master"] == "local[3]"
    assert "hidden" not in ended.out


def test_every_flag_is_a_setting(run: Run) -> None:
    flags = {
        "--event-time-format": ("event_time_format", "dd.MM.yyyy"),
        "--event-time-unit": ("event_time_unit", "ms"),
        "--time-column": ("time_column", "period"),
        "--format": ("format", "csv"),
        "--schema": ("schema", "ts timestamp"),
        "--rejects": ("rejects", "elsewhere"),
        "--run-id": ("run_id", "monday"),
        "--stream": ("stream", "continuous"),
        "--checkpoint-location": ("checkpoint_location", "progress"),
        "--trigger-interval": ("trigger_interval", "5 seconds"),
    }
    words = [word for flag, (_, value) in flags.items() for word in (flag, value)]
    switches = ("--merge-schema", "--no-sidecar", "--checkpoint", "--property", "delta.appendOnly=true")
    ended = run("ingest", "in", "out", *words, *switches, "--print-config")
    shown = tomllib.loads(ended.out)["ingest"]
    assert {name: shown[name] for name, _ in flags.values()} == dict(flags.values())
    assert (shown["merge_schema"], shown["write_sidecar"], shown["checkpoint"]) == (True, False, True)
    assert shown["properties"] == {"delta.appendOnly": "true"}


def test_a_switch_turns_off_what_a_variable_turned_on(run: Run) -> None:
    variables = {
        f"LAZYDELTA_INGEST_{name}": value
        for name, value in (("MERGE_SCHEMA", "true"), ("CHECKPOINT", "true"), ("WRITE_SIDECAR", "false"))
    }
    switches = ("--no-merge-schema", "--no-checkpoint", "--sidecar")
    shown = tomllib.loads(run("ingest", *switches, "--print-config", **variables).out)["ingest"]
    assert (shown["merge_schema"], shown["checkpoint"], shown["write_sidecar"]) == (False, False, True)


def test_a_wrong_setting_is_named_with_exit_code_2(run: Run) -> None:
    for arguments, named in (
        (("--granularity", "week"), "ingest.granularity is 'week'"),
        (("--target-file-size", "large"), "ingest.target_file_size is 'large'"),
        (("--event-time-unit", "h"), "ingest.event_time_unit is 'h'"),
        (("--option", "sep"), "--option number 1 is not KEY=VALUE"),
        (("--spark-conf", "master=local"), "master is no setting of Spark"),
        (("--time-zone", "Mars/Base"), "'Mars/Base' is no time zone"),
        (("--stream", "sometimes"), "ingest.stream is 'sometimes'"),
    ):
        ended = run("ingest", "in", "out", "--event-time", "ts", *arguments)
        assert (ended.exit_code, ended.out) == (2, ""), arguments
        assert f"error: {named}" in ended.err or f"error: ingest.time_zone {named}" in ended.err, ended.err


def test_print_config_refuses_the_values_that_a_run_refuses(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text("[sidecar]\nrow_group_rows = 0\n")
    for arguments, named in (
        (("--target-file-size", "0"), "ingest.target_file_size is 0"),
        (("--time-zone", "Mars/Base"), "ingest.time_zone 'Mars/Base' is no time zone"),
        (("--option", "mode=DropMalformed"), "ingest.options mode=DROPMALFORMED loses rows"),
        (("--config", path), "sidecar.row_group_rows is 0"),
    ):
        for last in ((), ("--print-config",)):
            ended = run("ingest", "in", "out", "--event-time", "ts", *arguments, *last)
            assert (ended.exit_code, ended.out) == (2, ""), (arguments, last)
            assert f"error: {named}" in ended.err


def test_print_config_shows_settings_that_are_not_complete_yet(run: Run) -> None:
    ended = run("ingest", "--granularity", "day", "--print-config")
    assert (ended.exit_code, ended.err) == (0, "")
    assert tomllib.loads(ended.out)["ingest"]["granularity"] == "day"


def test_what_is_missing_is_named(run: Run) -> None:
    assert "ingest.event_time is missing" in run("ingest", "in", "out").err
    assert "ingest.target is missing" in run("ingest", "in", "--event-time", "ts").err


def test_no_java_is_told_before_spark_is_tried(tmp_path: Path) -> None:
    # in a process: one that has a session of Spark needs no Java
    ended = run_process("ingest", "in", "out", "--event-time", "ts", JAVA_HOME=str(tmp_path))
    assert ended.exit_code == 1
    assert "error: Spark needs Java, and there is none" in ended.err
    assert "install Java 17" in ended.err


@pytest.mark.parametrize("more", [["--print-config"], ["--json"], []])
def test_a_signature_in_an_address_is_not_shown(tmp_path: Path, more: list[str]) -> None:
    source, target = (
        "wasbs://c@a.blob.core.windows.net/in?sv=1&sig=HUSH",
        "https://a.blob.core.windows.net/c/t&sig=HUSH",
    )
    words = ["ingest", source, target, "--event-time", "ts", "--rejects", "s3://k:HUSH/x@b/r", *more]
    ended = run_process(*words, JAVA_HOME=str(tmp_path))
    assert ended.out or ended.err
    assert "HUSH" not in ended.out + ended.err
