"""Storage options: obstore's names in any case, unknown ones refused, secrets never repeated."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.settings import CONFIG_VARIABLE, LocationOptions, Settings, build_settings
from lazydelta.storage import Deadline, open_storage

AZURE = "abfss://lake@acct/t"
S3 = "s3://bucket/t"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (AZURE, {"account_key": "aHVzaA=="}),
        (AZURE, {"AZURE_STORAGE_ACCOUNT_KEY": "aHVzaA==", "AZURE_STORAGE_ACCOUNT_NAME": "acct"}),
        (AZURE, {"Sas_Token": "sv=1&sig=x", "ALLOW_HTTP": "true", "timeout": "3s"}),
        (AZURE, {"azure_allow_http": "true", "skip_signature": "true", "container_name": "lake"}),
        ("az://lake/t", {"use_emulator": "true"}),
        (
            S3,
            {
                "AWS_ACCESS_KEY_ID": "a",
                "AWS_SECRET_ACCESS_KEY": "b",
                "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
            },
        ),
        (S3, {"access_key_id": "a", "secret_access_key": "b", "AWS_ALLOW_HTTP": "true", "region": "x"}),
    ],
)
def test_names_are_accepted_as_users_write_them(url: str, options: dict[str, str]) -> None:
    storage = open_storage(url, Settings(storage_options=options))
    assert storage.counters.snapshot().requests == 0
    assert "RemoteStorage" in repr(storage)


@pytest.mark.parametrize("url", [AZURE, S3])
def test_an_unknown_option_is_named(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="'acount_key' is not known") as caught:
        open_storage(url, Settings(storage_options={"Acount_Key": "HUSHHUSH", "skip_signature": "true"}))
    assert "HUSH" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (AZURE, {"account_key": "HUSH?HUSH"}),
        (AZURE, {"skip_signature": "HUSHHUSH"}),
        (S3, {"skip_signature": "HUSHHUSH"}),
        (S3, {"allow_http": "HUSHHUSH"}),
        (S3, {"timeout": "HUSHHUSH"}),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_not_repeated(url: str, options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        open_storage(url, Settings(storage_options=options))
    assert "HUSH" not in "".join(traceback.format_exception(caught.value))


def test_an_azure_table_without_an_account_says_so() -> None:
    with pytest.raises(InvalidRequestError, match="Account must be specified") as caught:
        open_storage("az://lake/t", Settings(storage_options={"skip_signature": "true"}))
    assert "account_name" in caught.value.fix


# --- locations, providers and roots in the settings --------------------------


def test_a_url_among_the_options_is_a_location_with_options_of_its_own() -> None:
    given = {
        "account_key": "mine",
        "s3://b/p": {"region": "r"},
        "s3://b/p#access_key_id": "a",
        "az://c#token": "t",
    }
    settings = build_settings(given, environment={})
    assert settings.storage_options == {"account_key": "mine"}
    assert settings.locations == {
        "s3://b/p": LocationOptions(options={"region": "r", "access_key_id": "a"}),
        "az://c": LocationOptions(options={"token": "t"}),
    }


def test_a_provider_among_the_options_is_not_an_option_of_the_store() -> None:
    given = {"credential_provider": print, "s3://b": {"credential_provider": repr, "region": "r"}}
    settings = build_settings(given, environment={})
    assert settings.storage_options == {}
    assert settings.credential_provider is print
    assert settings.locations["s3://b"] == LocationOptions(options={"region": "r"}, credential_provider=repr)


def test_locations_of_the_options_win_over_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[locations."s3://a"]\nregion = "file"\n[locations."s3://b"]\nregion = "file"\n')
    settings = build_settings({"s3://b#region": "mine"}, environment={CONFIG_VARIABLE: str(path)})
    assert {url: place.options["region"] for url, place in settings.locations.items()} == {
        "s3://a": "file",
        "s3://b": "mine",
    }


@pytest.mark.parametrize(
    "given",
    [
        {"s3://b": "HUSHHUSH"},
        {"s3://b#": "HUSHHUSH"},
        {"s3://b#x": {"y": "HUSHHUSH"}},
        {"s3://b": {1: "HUSH"}},
    ],
)
def test_a_location_without_options_is_refused_and_not_repeated(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="is the address of a location") as caught:
        build_settings(given, environment={})
    assert "HUSH" not in str(caught.value)


@pytest.mark.parametrize("content", ["locations = 3", 'locations."s3://b" = "HUSHHUSH"'])
def test_a_file_with_locations_that_are_none_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(content)
    with pytest.raises(InvalidRequestError) as caught:
        build_settings(environment={CONFIG_VARIABLE: str(path)})
    assert caught.value.where == str(path)
    assert "HUSH" not in str(caught.value)


def test_roots_come_as_one_text_or_as_a_list(tmp_path: Path) -> None:
    assert build_settings({"delta.allowed_roots": "/a, s3://b"}, environment={}).allowed_roots == "/a, s3://b"
    listed = build_settings({"delta.allowed_roots": ["/a", "s3://b/x,y", "/c,d"]}, environment={})
    assert listed.allowed_roots == "/a,s3://b/x%2Cy,file:///c%2Cd"
    path = tmp_path / "settings.toml"
    path.write_text('delta.allowed_roots = ["/a", "/b"]\n')
    assert build_settings(environment={CONFIG_VARIABLE: str(path)}).allowed_roots == "/a,/b"
    with pytest.raises(InvalidRequestError, match=r"delta\.allowed_roots is not text"):
        build_settings({"delta.allowed_roots": 3}, environment={})


def test_the_settings_do_not_show_what_they_hold() -> None:
    given = {"account_key": "HUSHHUSH", "s3://b#token": "HUSHHUSH", "delta.page.signing_key": "HUSHHUSH"}
    settings = build_settings(given, environment={})
    for shown in (repr(settings), str(settings), repr(settings.locations), f"{settings!r}"):
        assert "HUSH" not in shown
    assert "account_key" in repr(settings)


@pytest.mark.parametrize(
    "option",
    [
        "delta.request.timeout_seconds",
        "delta.scan.timeout_seconds",
        "delta.request.backoff_seconds",
        "delta.cache.max_staleness_seconds",
    ],
)
@pytest.mark.parametrize("value", ["8.7e13", 1e11, 10**400, "inf"])
def test_a_time_that_no_clock_counts_is_refused(option: str, value: object) -> None:
    with pytest.raises(InvalidRequestError, match=option) as told:
        build_settings({option: value}, environment={})
    if value in ("8.7e13", 1e11):
        assert told.value.fix.endswith("at most 1,000,000,000")
    assert build_settings({option: "1e9"}, environment={}) != Settings()


def test_times_of_settings_that_nobody_checked_are_bounded() -> None:
    options = {"access_key_id": "a", "secret_access_key": "b"}
    settings = Settings(storage_options=options, request_timeout_seconds=1e20)
    assert open_storage(S3, settings).root == S3
    assert Deadline.after(1e20).seconds_left() <= 1e9
