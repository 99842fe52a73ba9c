"""Settings of the pipeline: flags before environment before file before defaults; what is wrong is named."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.settings import CONFIG_VARIABLE, Settings, build_settings
from lazydelta.spark import ingest
from lazydelta.spark.config import IngestConfig, check_config
from lazydelta.spark.pipeline_settings import load_config, size_bytes
from lazydelta.spark.settings_text import MASK, settings_text

FILE = """
[delta]
batch_size = 100

[ingest]
source = "in"
target = "out"
event_time = "ts"
granularity = "day"
merge_schema = true
target_file_size = "64MiB"

[ingest.options]
multiLine = true
sep = ";"

[sidecar]
row_group_rows = 100

[spark]
"spark.master" = "local[3]"
spark.sql.shuffle.partitions = 4
"""


@pytest.fixture
def settings_file(tmp_path: Path) -> str:
    path = tmp_path / "pipeline.toml"
    path.write_text(FILE)
    return str(path)


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return str(path)


def test_sidecars_go_where_readers_look(tmp_path: Path) -> None:
    path = written(tmp_path, '[delta.sidecar]\ndirectory = "by-file"\n')
    option = {"storage_options": {"delta.sidecar.directory": "by-option"}}
    variable = {"DELTA_SIDECAR_DIRECTORY": "by-variable"}
    assert load_config({}, environment={}, config_file=path).sidecar.folder == "_delta_log/by-file"
    assert load_config({}, environment=variable, config_file=path).sidecar.folder == "_delta_log/by-variable"
    assert load_config(option, environment=variable).sidecar.folder == "_delta_log/by-option"
    own = {**variable, "LAZYDELTA_SIDECAR_FOLDER": "_delta_log/own"}
    assert load_config({}, environment=own).sidecar.folder == "_delta_log/own"


def test_one_file_serves_the_pipeline_and_readers_of_other_locations(tmp_path: Path) -> None:
    path = written(tmp_path, '[ingest]\ntarget = "t"\n[locations."s3://other/"]\naccess_key_id = "k"\n')
    assert load_config({}, environment={CONFIG_VARIABLE: path}).target == "t"
    assert list(build_settings({}, environment={CONFIG_VARIABLE: path}).locations) == ["s3://other/"]


def test_without_anything_the_defaults_hold() -> None:
    config = load_config({}, environment={})
    assert config == IngestConfig()
    assert (config.time_column_name, config.granularity, config.time_zone) == ("_event_hour", "hour", "UTC")
    assert config.target_file_size == 128_000_000


def test_a_file_fills_every_table(settings_file: str) -> None:
    config = load_config({}, environment={CONFIG_VARIABLE: settings_file})
    assert (config.source, config.granularity, config.merge_schema) == ("in", "day", True)
    assert config.target_file_size == 64 * 1024**2
    assert config.options == {"multiLine": "true", "sep": ";"}
    assert config.sidecar.row_group_rows == 100
    assert config.spark == {"spark.master": "local[3]", "spark.sql.shuffle.partitions": "4"}
    assert config.time_column_name == "_event_day"


def test_flags_win_over_variables_and_those_over_the_file(settings_file: str) -> None:
    environment = {"LAZYDELTA_INGEST_GRANULARITY": "minute", "LAZYDELTA_INGEST_EVENT_TIME": "at"}
    config = load_config(
        {"granularity": "second", "target": None}, environment=environment, config_file=settings_file
    )
    assert (config.granularity, config.event_time, config.target) == ("second", "at", "out")


def test_a_file_that_is_named_wins_over_the_variable(settings_file: str, tmp_path: Path) -> None:
    other = written(tmp_path, '[ingest]\nsource = "elsewhere"\n')
    config = load_config({}, environment={CONFIG_VARIABLE: settings_file}, config_file=other)
    assert (config.source, config.target) == ("elsewhere", "")


def test_options_are_merged_key_by_key(settings_file: str) -> None:
    config = load_config(
        {"options": {"sep": "|", "quote": "'"}},
        spark={"spark.master": "local[1]"},
        environment={"LAZYDELTA_INGEST_OPTIONS": "quote=x,nullValue=-"},
        config_file=settings_file,
    )
    assert config.options == {"multiLine": "true", "sep": "|", "quote": "'", "nullValue": "-"}
    assert config.spark["spark.master"] == "local[1]"
    assert config.spark["spark.sql.shuffle.partitions"] == "4"


def test_variables_are_read_as_the_type_of_their_setting() -> None:
    environment = {
        "LAZYDELTA_INGEST_MERGE_SCHEMA": "true",
        "LAZYDELTA_INGEST_WRITE_SIDECAR": "0",
        "LAZYDELTA_INGEST_TARGET_FILE_SIZE": "2kB",
        "LAZYDELTA_SIDECAR_ROW_GROUP_ROWS": "50",
    }
    config = load_config({}, environment=environment)
    assert (config.merge_schema, config.write_sidecar, config.target_file_size) == (True, False, 2000)
    assert config.sidecar.row_group_rows == 50


@pytest.mark.parametrize(
    ("text", "named", "fix"),
    [
        ("[ingest]\nevent_tme = 'x'", "ingest.event_tme", "did you mean ingest.event_time?"),
        ("[ingest]\nmerge_schema = 'yes'", "ingest.merge_schema", "true or false"),
        ("[ingest]\ngranularity = 'week'", "'week'", "month, day, hour, minute or second"),
        ("[ingest]\ntarget_file_size = 'big'", "'big'", "128MB"),
        ("[ingest]\nsource = 3", "ingest.source", "text"),
        ("[ingest.options]\na = [1]", "ingest.options", "text"),
        ("[sidecar]\nrow_groups = 3", "sidecar.row_groups", "sidecar.row_groups_max"),
        ("[sidecar]\nrow_group_rows = 1.5", "sidecar.row_group_rows", "a whole number"),
        ("[spark]\nmaster = 'local'", "master is no setting of Spark", "spark.master"),
        ("[spark]\n'spark.x' = [1]", "spark.x", "text, a number"),
        ("[injest]\na = 1", "injest", "did you mean ingest?"),
        ("ingest = 1", "ingest is no table", "[ingest]"),
        ("[ingest", "cannot be read", "mend it"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, named: str, fix: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidRequestError) as caught:
        load_config({}, environment={CONFIG_VARIABLE: path})
    assert named in caught.value.what
    assert fix in caught.value.fix
    assert caught.value.where == path


def test_what_is_wrong_in_the_environment_or_the_arguments_is_named() -> None:
    with pytest.raises(InvalidRequestError, match=r"ingest\.event_tim") as caught:
        load_config({}, environment={"LAZYDELTA_INGEST_EVENT_TIM": "x"})
    assert caught.value.where == "the environment"
    with pytest.raises(InvalidRequestError, match=r"ingest\.merge_schema") as caught:
        load_config({}, environment={"LAZYDELTA_INGEST_MERGE_SCHEMA": "maybe"})
    assert caught.value.fix == "write true or false"
    with pytest.raises(InvalidRequestError, match=r"ingest\.granlarity") as caught:
        load_config({"granlarity": "day"}, environment={})
    assert caught.value.fix == "did you mean ingest.granularity?"


def test_readers_pass_the_pipelines_tables_by(settings_file: str) -> None:
    assert build_settings(environment={CONFIG_VARIABLE: settings_file}) == Settings(batch_size=100)


def test_the_printed_settings_can_be_read_again(settings_file: str, tmp_path: Path) -> None:
    config = load_config(
        {"schema": 'a "quoted" string\n\\', "properties": {"delta.x": "ü\x7f"}, "run_id": "1"},
        environment={CONFIG_VARIABLE: settings_file},
    )
    text = settings_text(config)
    assert load_config({}, environment={}, config_file=written(tmp_path, text)) == config


def test_secrets_are_not_printed() -> None:
    config = load_config(
        {
            "options": {"password": "p1", "url": "jdbc:x://h/d?user=u&password=p2", "sep": ";"},
            "storage_options": {"account_key": "p3", "account_name": "lake", "SAS_TOKEN": "p4"},
        },
        spark={
            "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net": "p5",
            "spark.hadoop.fs.s3a.secret.key": "p6",
            "spark.hadoop.fs.s3a.access.key": "p7",
            "spark.master": "local[2]",
        },
        environment={},
    )
    text = settings_text(config)
    assert not any(f'"p{number}"' in text or f"=p{number}" in text for number in range(1, 8))
    tree = tomllib.loads(text)
    assert tree["ingest"]["storage_options"] == {
        "account_key": MASK,
        "account_name": "lake",
        "SAS_TOKEN": MASK,
    }
    assert tree["ingest"]["options"]["sep"] == ";"
    assert tree["spark"]["spark.master"] == "local[2]"


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("128MB", 128_000_000), ("64 MiB", 67_108_864), ("1.5k", 1500), ("2g", 2 * 10**9), ("7B", 7)],
)
def test_sizes_are_written_as_people_write_them(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"event_time": "ts"}, "ingest.target"),
        ({"target": "out"}, "ingest.event_time"),
        ({"target": "out", "event_time": "ts"}, "ingest.source"),
        ({"target": "out", "event_time": "ts", "target_file_size": 0}, "ingest.target_file_size"),
        ({"target": "out", "event_time": "ts", "time_zone": "Mars/Base"}, "Mars/Base"),
        ({"target": "out", "event_time": "ts", "run_id": " "}, "ingest.run_id is empty"),
        *(
            ({"target": "out", "event_time": "ts", "time_zone": zone}, repr(zone))
            for zone in ("../etc", "", "Europe", "localtime", "posix/UTC", "right/UTC", "Factory", "UTC ")
        ),
        ({"target": "out", "event_time": "ts", "options": {"Mode": "dropMalformed"}}, "DROPMALFORMED"),
        (
            {"target": "out", "event_time": "ts", "options": {"ignoreCorruptFiles": "TRUE"}},
            "ignoreCorruptFiles",
        ),
        (
            {"target": "out", "event_time": "ts", "options": {"ignoremissingfiles": "true"}},
            "ignoreMissingFiles",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_before_spark_starts(
    settings: dict[str, object], named: str
) -> None:
    usual = {"format": None if named == "ingest.source" else "json"}
    with pytest.raises(InvalidRequestError) as caught:
        check_config(load_config({**usual, **settings}, environment={}))
    assert named in caught.value.what


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, 0)
            for name in ("row_group_rows", "row_groups_max", "footer_bytes_max", "sort_memory_bytes")
        ),
        ("delta_commits_min", -1),
        ("level_ratio", 1),
        *(("folder", folder) for folder in ("", "/tmp", "../other", "_delta_log//x", "s3://bucket/x")),
    ],
)
def test_settings_of_sidecars_that_cannot_work_are_refused_before_spark_starts(
    tmp_path: Path, name: str, value: object
) -> None:
    path = written(tmp_path, f"[sidecar]\n{name} = {json.dumps(value)}\n")
    given = {"source": "in", "target": "out", "event_time": "ts"}
    with pytest.raises(InvalidRequestError, match=f"sidecar.{name}"):
        check_config(load_config(given, config_file=path, environment={}))


def test_a_batch_refuses_settings_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAZYDELTA_INGEST_STREAM", "available-now")
    with pytest.raises(InvalidRequestError, match="ask for a stream"):
        ingest("in", "out", event_time="ts")
