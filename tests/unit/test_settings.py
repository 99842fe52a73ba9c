"""Settings: argument before environment before file before default; what is wrong is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.settings import CONFIG_VARIABLE, OPTIONS, Settings, build_settings, variable_of
from tests.support.table_builder import TableBuilder


@pytest.fixture
def file_says_7(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "lazydelta.toml"
    path.write_text("[delta]\nbatch_size = 7\n[delta.commit]\nparallelism = 7\n")
    return {CONFIG_VARIABLE: str(path)}


def test_without_anything_the_defaults_hold() -> None:
    assert build_settings(environment={}) == Settings()
    assert Settings().batch_size == limits.BATCH_ROWS == 8192
    assert Settings().commit_read_parallelism == limits.COMMIT_PARALLELISM == 10
    assert Settings().checkpoint_row_groups_per_batch == 10


def test_a_file_beats_the_default(file_says_7: dict[str, str]) -> None:
    settings = build_settings(environment=file_says_7)
    assert (settings.batch_size, settings.commit_read_parallelism) == (7, 7)
    assert settings.checkpoint_row_groups_per_batch == 10


def test_the_environment_beats_the_file(file_says_7: dict[str, str]) -> None:
    settings = build_settings(environment={**file_says_7, "DELTA_BATCH_SIZE": "8"})
    assert (settings.batch_size, settings.commit_read_parallelism) == (8, 7)


def test_an_argument_beats_the_environment(file_says_7: dict[str, str]) -> None:
    environment = {**file_says_7, "DELTA_BATCH_SIZE": "8"}
    assert build_settings({"delta.batch_size": "9"}, environment=environment).batch_size == 9


def test_an_argument_beats_the_environment_under_its_other_name() -> None:
    environment = {"DELTA_COMMIT_READ_PARALLELISM": "3"}
    settings = build_settings({"delta.commit.parallelism": "4"}, environment=environment)
    assert settings.commit_read_parallelism == 4


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_is_read_from_all_three_places(option: str, tmp_path: Path) -> None:
    field = OPTIONS[option]
    value = {bool: False, str: "elsewhere"}.get(type(getattr(Settings(), field)), 3)
    path = tmp_path / "settings.toml"
    path.write_text(f"{option} = {json.dumps(value)}\n")
    for settings in (
        build_settings({option: str(value)}, environment={}),
        build_settings(environment={variable_of(option): str(value)}),
        build_settings(environment={CONFIG_VARIABLE: str(path)}),
    ):
        assert getattr(settings, field) == value
        assert type(getattr(settings, field)) is type(getattr(Settings(), field))


def test_options_of_the_store_go_to_the_store() -> None:
    given = {"account_name": "lake", "delta.batch_size": "5", "AWS_REGION": "x"}
    settings = build_settings(given, environment={})
    assert settings.storage_options == {"account_name": "lake", "AWS_REGION": "x"}


def test_the_variable_of_an_option_is_spelled_as_the_seeds_spell_it() -> None:
    assert variable_of("delta.commit.parallelism") == "DELTA_COMMIT_PARALLELISM"


def test_an_unknown_option_gets_a_hint() -> None:
    with pytest.raises(InvalidRequestError, match=r"delta\.batchsize") as caught:
        build_settings({"delta.batchsize": "1"}, environment={})
    assert caught.value.fix == "did you mean delta.batch_size?"
    with pytest.raises(InvalidRequestError) as caught:
        build_settings({"delta.zzz": "1"}, environment={})
    assert caught.value.fix.startswith("there are: ")


def test_an_unknown_option_in_the_file_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[delta.commit]\nparalelism = 3\n")
    with pytest.raises(InvalidRequestError, match=r"delta\.commit\.paralelism") as caught:
        build_settings(environment={CONFIG_VARIABLE: str(path)})
    assert caught.value.where == str(path)


@pytest.mark.parametrize("content", [None, "not = [toml", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, content: str | bytes | None) -> None:
    path = tmp_path / "settings.toml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InvalidRequestError) as caught:
        build_settings(environment={CONFIG_VARIABLE: str(path)})
    assert caught.value.where == str(path)
    assert CONFIG_VARIABLE in caught.value.fix


@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1.5", "nan", "inf"])
def test_a_number_that_is_none_is_an_error_that_names_the_option(value: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"delta\.batch_size") as caught:
        build_settings(environment={"DELTA_BATCH_SIZE": value})
    assert caught.value.where == "the environment"


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-0.5"])
def test_a_time_that_never_ends_is_an_error(value: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"delta\.request\.timeout_seconds"):
        build_settings({"delta.request.timeout_seconds": value}, environment={})


@pytest.mark.parametrize("value", ["true", "2.5", "inf", "'2.5'", "[1]"])
def test_a_file_s_value_of_another_type_is_an_error(tmp_path: Path, value: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"delta.batch_size = {value}\n")
    with pytest.raises(InvalidRequestError, match=r"delta\.batch_size"):
        build_settings(environment={CONFIG_VARIABLE: str(path)})


def test_zero_means_no_limit_where_it_says_so() -> None:
    zero = {"delta.scan.timeout_seconds": "0", "delta.remove_set_memory_limit": "0"}
    settings = build_settings(zero, environment={})
    assert (settings.scan_timeout_seconds, settings.remove_set_memory_limit) == (0, 0)


def test_opening_a_table_reads_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = TableBuilder(tmp_path).commit(adds=["a", "b", "c"])
    monkeypatch.setenv("DELTA_BATCH_SIZE", "2")
    sizes = [batch.num_rows for batch in ld.open(builder.path).scan().file_batches()]
    assert sizes == [2, 1]
    given = {"delta.batch_size": "1"}
    batches = ld.open(builder.path, storage_options=given).scan().file_batches()
    assert [batch.num_rows for batch in batches] == [1, 1, 1]


def test_the_options_given_are_not_changed_by_building() -> None:
    given = {"delta.batch_size": "5", "region": "x"}
    build_settings(given, environment={})
    assert given == {"delta.batch_size": "5", "region": "x"}


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("delta.cache.bytes", "give a whole number of at least 0"),
        ("delta.cache.max_staleness_seconds", "give a number of at least 0"),
        ("delta.scan.timeout_seconds", "give a number of at least 0"),
        ("delta.batch_size", "give a positive whole number"),
        ("delta.request.timeout_seconds", "give a positive number"),
    ],
)
def test_a_number_that_may_be_zero_is_not_asked_to_be_positive(option: str, fix: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        build_settings({option: "-1"}, environment={})
    assert refused.value.fix == fix


@pytest.mark.parametrize(
    ("text", "meant"), [("on", True), ("OFF", False), ("yes", True), ("no", False), ("1", True), ("0", False)]
)
def test_a_flag_may_be_spelled_in_the_usual_ways(text: str, meant: bool) -> None:
    assert build_settings({"delta.sidecar.enabled": text}, environment={}).sidecar_enabled is meant


@pytest.mark.parametrize("text", ["", "o", "onoff", "2", "None"])
def test_a_flag_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="true or false"):
        build_settings({"delta.sidecar.enabled": text}, environment={})


@pytest.mark.parametrize("folder", ["/abs", "/", "", "..", "../up", "a/../b", "./a", "a//b", "//a"])
def test_a_folder_that_is_not_below_the_log_is_refused(folder: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"below _delta_log.*no absolute path"):
        build_settings({"delta.sidecar.directory": folder}, environment={})


@pytest.mark.parametrize(("folder", "meant"), [("side", "side"), ("a/b", "a/b"), ("a/b/", "a/b")])
def test_a_folder_below_the_log_is_taken(folder: str, meant: str) -> None:
    assert build_settings({"delta.sidecar.directory": folder}, environment={}).sidecar_directory == meant


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 5_000) + " = 1",
        "[" + ".".join("a" * 5_000) + "]",
        "delta.batch_size = " + "[" * 5_000 + "]" * 5_000,
        "delta.batch_size = " + "[" * 200 + "]" * 200,
        "spark." + ".".join("a" * 5_000) + " = 1",
    ],
)
def test_a_file_that_nests_deeply_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text)
    with pytest.raises(InvalidRequestError, match="settings file cannot be read"):
        build_settings(environment={CONFIG_VARIABLE: str(path)})
