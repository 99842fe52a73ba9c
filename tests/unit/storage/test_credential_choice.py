"""Which credentials are used: the caller's before the environment's, whatever their kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.settings import Settings
from lazydelta.storage import TableAddress, open_storage, parse_address
from lazydelta.storage.azure_access import ANONYMOUS, CHAIN, azure_access, azure_account
from lazydelta.storage.connection_string import connection_options
from lazydelta.storage.s3_access import s3_access

AZURE = parse_address("abfss://lake@acct/t")
S3 = parse_address("s3://bucket/t")
EVERY_VARIABLE = {
    "AZURE_STORAGE_TOKEN": "of the environment",
    "AZURE_STORAGE_ACCOUNT_KEY": "of the environment",
    "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=environment",
    "AZURE_CLIENT_ID": "env",
    "AZURE_CLIENT_SECRET": "of the environment",
    "AZURE_TENANT_ID": "env",
    "AZURE_FEDERATED_TOKEN_FILE": "/env",
    "AZURE_SKIP_SIGNATURE": "true",
    "AZURE_USE_AZURE_CLI": "true",
    "AZURE_STORAGE_USE_EMULATOR": "true",
    "IDENTITY_ENDPOINT": "http://127.0.0.1:1/env",
}
OF_THE_CALLER = [
    ({"token": "t"}, "bearer_token"),
    ({"bearer_token": "t"}, "bearer_token"),
    ({"AZURE_STORAGE_ACCOUNT_KEY": "aHVzaA=="}, "access_key"),
    ({"access_key": "aHVzaA=="}, "access_key"),
    ({"sas_token": "sv=1&sig=x"}, "sas_token"),
    ({"client_id": "i", "client_secret": "s", "tenant_id": "t"}, "client_secret"),
    ({"client_id": "i", "federated_token_file": "/f", "tenant_id": "t"}, "workload_identity"),
    ({"msi_endpoint": "http://127.0.0.1:1"}, "managed_identity"),
    ({"use_azure_cli": "true"}, "azure_cli"),
    ({"use_azure_cli": True}, "azure_cli"),
    ({"skip_signature": "true"}, ANONYMOUS),
    ({"credential_type": "managed_identity"}, "managed_identity"),
    ({"connection_string": "AccountName=acct;AccountKey=aHVzaA=="}, "access_key"),
    ({"connection_string": "AccountName=acct;SharedAccessSignature=sv=1&sig=x"}, "sas_token"),
    ({"account_key": "aHVzaA==", "sas_token": "sv=1&sig=x"}, "access_key"),
    ({"account_key": "aHVzaA==", "sas_token": "sv=1&sig=x", "credential_type": "sas_token"}, "sas_token"),
]


@pytest.mark.parametrize(("options", "kind"), OF_THE_CALLER)
@pytest.mark.parametrize("environment", [{}, EVERY_VARIABLE])
def test_credentials_of_the_caller_win_over_every_variable(
    options: dict[str, object], kind: str, environment: dict[str, str]
) -> None:
    access = azure_access(AZURE, options, environment)
    assert access.kind == kind
    assert access.options.get("credential_type") == (None if kind == ANONYMOUS else kind)
    assert access.options["skip_signature"] == ("true" if kind == ANONYMOUS else "false")
    assert access.options["use_emulator"] == "false"
    for name, value in options.items():
        if name in access.options:
            assert access.options[name] == str(value).lower() if value is True else value


@pytest.mark.parametrize(
    ("variables", "kind"),
    [
        ({"AZURE_STORAGE_ACCOUNT_KEY": "aHVzaA=="}, "access_key"),
        ({"AZURE_STORAGE_KEY": "aHVzaA=="}, "access_key"),
        ({"AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=x"}, "sas_token"),
        ({"AZURE_STORAGE_CONNECTION_STRING": "AccountName=acct;AccountKey=aHVzaA=="}, "access_key"),
        ({"AZURE_CLIENT_ID": "i", "AZURE_CLIENT_SECRET": "s", "AZURE_TENANT_ID": "t"}, "client_secret"),
        (
            {"AZURE_CLIENT_ID": "i", "AZURE_FEDERATED_TOKEN_FILE": "f", "AZURE_TENANT_ID": "t"},
            "workload_identity",
        ),
        ({"IDENTITY_ENDPOINT": "http://127.0.0.1:1"}, "managed_identity"),
        ({"AZURE_SKIP_SIGNATURE": "true"}, ANONYMOUS),
        ({"AZURE_SOMETHING_ELSE": "x", "HOME": "/"}, CHAIN),
        ({"AZURE_STORAGE_ACCOUNT_KEY": ""}, CHAIN),
        ({}, CHAIN),
    ],
)
def test_without_credentials_of_the_caller_the_environment_counts(
    variables: dict[str, str], kind: str
) -> None:
    assert azure_access(AZURE, {"allow_http": "true"}, variables).kind == kind


@pytest.mark.parametrize(
    ("variables", "kind"),
    [
        ({"AZURE_STORAGE_ACCOUNT_KEY": "aHVzaA=="}, "managed_identity"),
        ({"AZURE_CLIENT_SECRET": "s", "AZURE_TENANT_ID": "t"}, "client_secret"),
        ({"AZURE_FEDERATED_TOKEN_FILE": "f", "AZURE_TENANT_ID": "t"}, "workload_identity"),
    ],
)
def test_an_identity_of_the_caller_takes_what_belongs_to_it(variables: dict[str, str], kind: str) -> None:
    access = azure_access(AZURE, {"client_id": "mine"}, {**variables, "AZURE_CLIENT_ID": "env"})
    assert access.kind == kind
    assert access.options["client_id"] == "mine"


def test_the_account_comes_from_the_url_then_the_options_then_the_environment() -> None:
    variables = {"AZURE_STORAGE_ACCOUNT_NAME": "env"}
    assert azure_account({"account_name": "mine"}, variables) == "mine"
    assert azure_account({"connection_string": "AccountName=its;AccountKey=aHVzaA=="}, variables) == "its"
    assert azure_account({}, variables) == "env"
    assert azure_account({"use_emulator": "true"}, variables) == "devstoreaccount1"
    assert azure_account({}, {}) is None
    assert azure_access(AZURE, {"account_name": "acct"}, variables).options["account_name"] == "acct"


def test_the_emulator_is_an_endpoint_and_a_key() -> None:
    address = parse_address("az://lake/t")
    options = azure_access(address, {"use_emulator": "true"}, {}).options
    assert options["endpoint"] == "http://127.0.0.1:10000/devstoreaccount1"
    assert options["account_name"] == "devstoreaccount1"
    assert options["allow_http"] == "true"
    assert options["credential_type"] == "access_key"
    other = azure_access(address, {"use_emulator": "true", "endpoint": "http://127.0.0.1:5/x"}, {}).options
    assert other["endpoint"] == "http://127.0.0.1:5/x"
    signed = azure_access(address, {"use_emulator": "true", "sas_token": "sig=x"}, EVERY_VARIABLE)
    assert (signed.kind, signed.options["endpoint"]) == (
        "sas_token",
        "http://127.0.0.1:10000/devstoreaccount1",
    )


@pytest.mark.parametrize(
    ("url", "endpoint", "account"),
    [
        ("abfss://lake@acct/t", None, "acct"),
        (
            "https://acct.blob.core.usgovcloudapi.net/lake/t",
            "https://acct.blob.core.usgovcloudapi.net",
            "acct",
        ),
        ("https://acct.z28.blob.storage.azure.net/lake/t", "https://acct.z28.blob.storage.azure.net", "acct"),
    ],
)
def test_other_clouds_and_zones_have_their_own_endpoint(url: str, endpoint: str | None, account: str) -> None:
    options = azure_access(parse_address(url), {}, {}).options
    assert (options.get("endpoint"), options["account_name"]) == (endpoint, account)
    told = azure_access(parse_address(url), {"endpoint": "https://private"}, {}).options
    assert told["endpoint"] == "https://private"


def test_onelake_is_asked_at_its_own_host() -> None:
    address = parse_address("abfss://work@onelake.dfs.fabric.microsoft.com/x.Lakehouse/Tables/t")
    assert azure_access(address, {}, {}).options["use_fabric_endpoint"] == "true"


def test_a_connection_string_of_another_account_is_refused() -> None:
    text = "AccountName=other;AccountKey=SFVTSA=="
    with pytest.raises(InvalidRequestError, match="for the account 'other'") as told:
        azure_access(AZURE, {"connection_string": text}, {})
    assert "SFVTSA" not in str(told.value)


@pytest.mark.parametrize(
    "environment",
    [
        {
            "AZURE_STORAGE_CONNECTION_STRING": "BlobEndpoint=http://h;AccountName=a;SharedAccessSignature=sig=x"
        },
        {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=aHVzaA=="},
        {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY": "aHVzaA=="},
        {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURE_STORAGE_SAS_TOKEN": "sig=x"},
    ],
)
def test_what_the_environment_has_for_another_account_is_not_used(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError, match="the environment signs in to the account") as caught:
        azure_access(AZURE, {}, environment)
    assert "aHVzaA" not in str(caught.value) and "sig=" not in str(caught.value)
    signed = azure_access(AZURE, {"sas_token": "sv=1&sig=mine"}, environment).options
    assert signed["account_name"] == "acct"
    assert "endpoint" not in signed and "account_key" not in signed
    assert "endpoint" not in azure_access(AZURE, {}, environment, has_provider=True).options
    person = {"AZURE_CLIENT_ID": "i", "AZURE_CLIENT_SECRET": "s", "AZURE_TENANT_ID": "t"}
    assert azure_access(AZURE, {}, environment | person).kind == "client_secret"


@pytest.mark.parametrize(
    ("address", "options", "what"),
    [
        (AZURE, {"account_name": "mine", "account_key": "aHVzaA=="}, "for the account 'mine'"),
        (AZURE, {"use_emulator": "true"}, "for the account 'devstoreaccount1'"),
        (AZURE, {"container_name": "pond"}, "for the container 'pond'"),
        (AZURE, {"account_name": "aHVzaA=="}, "for the account '…'"),
        (S3, {"bucket": "other"}, "for the bucket 'other'"),
        (S3, {"AWS_BUCKET_NAME": "other"}, "for the bucket 'other'"),
    ],
)
def test_options_for_another_store_than_the_url_names_are_refused(
    address: TableAddress, options: dict[str, str], what: str
) -> None:
    access = azure_access if address.kind == "azure" else s3_access
    with pytest.raises(InvalidRequestError, match=what) as told:
        access(address, options, {})
    assert "aHVzaA" not in str(told.value)


def test_options_that_name_what_the_url_names_are_fine() -> None:
    options = {"account_name": "acct", "container_name": "lake", "account_key": "aHVzaA=="}
    assert azure_access(AZURE, options, {}).options["account_name"] == "acct"
    zoned = parse_address("https://acct.z28.blob.storage.azure.net/lake/t")
    assert azure_access(zoned, options, {}).options["account_name"] == "acct"
    assert s3_access(S3, {"bucket": "bucket"}, {"AWS_BUCKET": "of the environment"}).options == {
        "bucket": "bucket"
    }


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:1/other", "http://127.0.0.1:1", "https://other.blob.example", "https://proxy"],
)
def test_an_endpoint_of_the_environment_does_not_serve_an_account_that_it_does_not_name(
    endpoint: str,
) -> None:
    variables = {"AZURE_STORAGE_ENDPOINT": endpoint, "AZURE_STORAGE_KEY": "aHVzaA=="}
    for options in ({}, {"sas_token": "sv=1&sig=mine"}):
        with pytest.raises(InvalidRequestError, match="AZURE_STORAGE_ENDPOINT") as told:
            azure_access(AZURE, options, variables)
        assert "AZURE_STORAGE_ACCOUNT_NAME" in told.value.fix
    assert azure_access(AZURE, {"endpoint": "https://mine"}, variables).options["endpoint"] == "https://mine"
    beside = {**variables, "AZURE_STORAGE_ACCOUNT_NAME": "acct"}
    assert azure_access(AZURE, {}, beside).options["endpoint"] == endpoint


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1/acct", "https://acct.privatelink.example/"])
def test_an_endpoint_of_the_environment_serves_the_account_that_it_names(endpoint: str) -> None:
    options = azure_access(AZURE, {}, {"AZURE_STORAGE_ENDPOINT": endpoint}).options
    assert options["endpoint"] == endpoint.rstrip("/")


def test_a_connection_string_of_the_environment_that_is_none_matters_only_where_it_is_needed() -> None:
    variables = {"AZURE_STORAGE_CONNECTION_STRING": "SFVTSA"}
    with pytest.raises(InvalidRequestError, match="cannot be read") as told:
        azure_access(AZURE, {}, variables)
    assert told.value.where == "AZURE_STORAGE_CONNECTION_STRING"
    assert "SFVTSA" not in str(told.value)
    assert azure_access(AZURE, {"account_key": "aHVzaA=="}, variables).kind == "access_key"
    assert azure_access(AZURE, {}, variables, has_provider=True).kind == CHAIN


def test_one_option_in_two_spellings_must_be_one_value() -> None:
    same = {"account_key": "aHVzaA==", "AZURE_STORAGE_ACCOUNT_KEY": "aHVzaA=="}
    assert azure_access(AZURE, same, {}).options["account_key"] == "aHVzaA=="
    with pytest.raises(InvalidRequestError, match="account_key is given in two spellings") as told:
        azure_access(AZURE, {**same, "ACCESS_KEY": "SFVTSA=="}, {})
    assert "aHVzaA" not in str(told.value) and "SFVTSA" not in str(told.value)


@pytest.mark.parametrize("option", ["endpoint", "authority_host", "msi_endpoint"])
def test_an_address_that_is_none_is_refused_and_not_repeated(option: str) -> None:
    for options, variables in (({option: "HUSHHUSH"}, {}), ({}, {f"AZURE_{option.upper()}": "HUSHHUSH"})):
        with pytest.raises(InvalidRequestError, match=f"{option} is not the URL of a host") as told:
            azure_access(AZURE, options, variables)
        assert "HUSH" not in str(told.value)


BREAKING = [
    ("s3://b/t", {"region": "x y"}, "region"),
    ("s3://b/t", {"endpoint": "http://["}, "endpoint"),
    ("s3://b/t", {"endpoint": "http://a b"}, "endpoint"),
    ("s3://b c/t", {}, "bucket"),
    ("s3://b/t", {"metadata_endpoint": "http://["}, "metadata_endpoint"),
    ("s3://b/t", {"container_credentials_relative_uri": "no"}, "container_credentials_relative_uri"),
    ("s3://b/t", {"access_key_id": "a\nHUSH", "secret_access_key": "b"}, "access_key_id"),
    (
        "s3://b/t",
        {"access_key_id": "a", "secret_access_key": "b", "session_token": "a\nHUSH"},
        "session_token",
    ),
    ("abfss://c@a/t", {"token": "HUSH\0HUSH"}, "token"),
    ("abfss://c@a/t", {"client_id": "i", "client_secret": "s", "tenant_id": "t/t"}, "tenant_id"),
    ("az://c/t", {"account_name": "a.example.com/x?", "account_key": "aHVzaA=="}, "account_name"),
    ("abfss://c@a/t", {"msi_endpoint": "http://[HUSH"}, "msi_endpoint"),
]


@pytest.mark.parametrize(("url", "options", "name"), BREAKING)
def test_a_value_that_cannot_be_part_of_a_request_is_refused_before_one_is_made(
    url: str, options: dict[str, str], name: str
) -> None:
    with pytest.raises(InvalidRequestError, match=f"the option {name} ") as told:
        open_storage(url, Settings(storage_options=options))
    assert "HUSH" not in str(told.value)


def test_a_value_out_of_a_file_may_end_with_a_line_break() -> None:
    assert azure_access(AZURE, {"token": "t\n"}, {}).options["token"] == "t"
    assert s3_access(S3, {}, {"AWS_SECRET_ACCESS_KEY": "b\n", "AWS_ACCESS_KEY_ID": "a"}).options == {
        "access_key_id": "a",
        "secret_access_key": "b",
        "bucket": "bucket",
    }


# --- S3 ----------------------------------------------------------------------

KEYS = {"access_key_id": "a", "secret_access_key": "b"}
SESSION = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_SESSION_TOKEN": "z"}


def test_a_session_token_of_the_environment_is_not_sent_with_keys_of_the_caller() -> None:
    access = s3_access(S3, KEYS, SESSION)
    assert access.keys == {"access_key_id": "a", "secret_access_key": "b", "token": None}
    own = s3_access(S3, {**KEYS, "session_token": "mine"}, SESSION)
    assert (own.keys, own.options["session_token"]) == (None, "mine")
    assert s3_access(S3, KEYS, {}).keys is None


@pytest.mark.parametrize("missing", ["access_key_id", "secret_access_key"])
def test_half_a_key_is_refused(missing: str) -> None:
    options = {name: value for name, value in KEYS.items() if name != missing}
    with pytest.raises(InvalidRequestError, match=f"without {missing}"):
        s3_access(S3, options, SESSION)


@pytest.mark.parametrize(
    "option",
    ["web_identity_token_file", "AWS_ROLE_ARN", "container_credentials_full_uri", "metadata_endpoint"],
)
def test_a_role_beside_keys_of_the_environment_is_refused(option: str) -> None:
    with pytest.raises(InvalidRequestError, match="the environment has keys"):
        s3_access(S3, {option: "http://x"}, SESSION)
    assert s3_access(S3, {option: "http://x"}, {}).profile is None


def test_an_endpoint_of_the_caller_wins_over_every_variable() -> None:
    variables = {"AWS_ENDPOINT_URL": "https://env", "AWS_ENDPOINT_URL_S3": "https://env-s3"}
    for name in ("endpoint", "endpoint_url", "AWS_ENDPOINT_URL"):
        assert (
            s3_access(S3, {name: "https://mine"}, variables).options["aws_endpoint_url_s3"] == "https://mine"
        )
    assert s3_access(S3, {}, variables).options["aws_endpoint_url_s3"] == "https://env-s3"


def test_the_bucket_stands_in_the_host_where_it_is_asked_for() -> None:
    hosted = {"virtual_hosted_style_request": "true", "endpoint": "https://store.example"}
    assert s3_access(S3, hosted, {}).options["aws_endpoint_url_s3"] == "https://bucket.store.example"
    already = {**hosted, "endpoint": "https://bucket.store.example"}
    assert s3_access(S3, already, {}).options["aws_endpoint_url_s3"] == "https://bucket.store.example"


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9000", "http://[::1]:9000"])
def test_a_bucket_does_not_stand_before_a_number(endpoint: str) -> None:
    hosted = {"virtual_hosted_style_request": "true", "endpoint": endpoint}
    with pytest.raises(InvalidRequestError, match="cannot have the bucket before it"):
        s3_access(S3, hosted, {})


@pytest.mark.parametrize(
    "options", [{"endpoint": "https://store.example//"}, {"AWS_ENDPOINT": "https://store.example/"}]
)
def test_an_endpoint_may_end_with_a_slash(options: dict[str, str]) -> None:
    assert s3_access(S3, options, {}).options["aws_endpoint_url_s3"] == "https://store.example"
    azure = {"endpoint": "http://127.0.0.1:10000/acct/", "account_key": "aHVzaA=="}
    assert azure_access(AZURE, azure, {}).options["endpoint"] == "http://127.0.0.1:10000/acct"


@pytest.mark.parametrize(
    ("options", "variables", "region"),
    [
        ({}, {}, "eu-west-1"),
        ({}, {"AWS_REGION": "env"}, "env"),
        ({}, {"AWS_DEFAULT_REGION": "env"}, "env"),
        ({"region": "mine"}, {"AWS_REGION": "env"}, "mine"),
        ({"default_region": "mine"}, {"AWS_REGION": "env"}, "mine"),
    ],
)
def test_the_region_comes_from_the_options_then_the_environment_then_the_url(
    options: dict[str, str], variables: dict[str, str], region: str | None
) -> None:
    address = parse_address("https://bucket.s3.eu-west-1.amazonaws.com/t")
    assert s3_access(address, options, variables).options.get("region") == region


def test_a_profile_is_used_where_no_credentials_are_named(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert s3_access(S3, {}, home).profile is None
    assert s3_access(S3, {}, {**home, "AWS_PROFILE": "work"}).profile == "work"
    assert s3_access(S3, {"profile": "mine"}, {**home, "AWS_PROFILE": "work", **SESSION}).profile == "mine"
    assert s3_access(S3, {}, {**home, "AWS_PROFILE": "work", **SESSION}).profile is None
    assert s3_access(S3, KEYS, {**home, "AWS_PROFILE": "work"}).profile is None
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\n")
    assert s3_access(S3, {}, home).profile == ""
    assert s3_access(S3, {"skip_signature": "true"}, home).profile is None


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:99999", "http://127.0.0.1:x"])
def test_an_endpoint_of_s3_that_is_no_address_is_refused(endpoint: str) -> None:
    options = {"endpoint": endpoint, "access_key_id": "a", "secret_access_key": "b", "allow_http": "true"}
    with pytest.raises(InvalidRequestError, match="the endpoint is no address"):
        open_storage("s3://bucket/table", Settings(storage_options=options))


# --- Azure's connection strings ------------------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "account"),
    [
        ("http://127.0.0.1:10000/devstoreaccount1", "devstoreaccount1"),
        ("http://localhost:10000/devstoreaccount1/", "devstoreaccount1"),
        ("http://[::1]:10000/a", "a"),
        ("https://acct.blob.core.windows.net", "acct"),
    ],
)
def test_the_account_of_an_endpoint_is_in_its_host_or_its_path(endpoint: str, account: str) -> None:
    found = connection_options(f"BlobEndpoint={endpoint};SharedAccessSignature=sv=1&sig=x")
    assert found["account_name"] == account


def test_an_endpoint_that_is_a_number_names_no_account() -> None:
    with pytest.raises(InvalidRequestError, match="names no account"):
        connection_options("BlobEndpoint=http://127.0.0.1:10000;SharedAccessSignature=sv=1&sig=x")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (
            "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=a+/b==;EndpointSuffix=core.windows.net",
            {"account_name": "acct", "account_key": "a+/b=="},
        ),
        (
            "accountname=acct; AccountKey=a==;EndpointSuffix=core.chinacloudapi.cn;",
            {
                "account_name": "acct",
                "account_key": "a==",
                "endpoint": "https://acct.blob.core.chinacloudapi.cn",
            },
        ),
        (
            "BlobEndpoint=https://acct.blob.core.windows.net/;SharedAccessSignature=sv=1&sp=rl&sig=x%3D",
            {
                "account_name": "acct",
                "sas_token": "sv=1&sp=rl&sig=x%3D",
                "endpoint": "https://acct.blob.core.windows.net",
            },
        ),
        (
            "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=b;BlobEndpoint=http://127.0.0.1:10000/a;",
            {
                "account_name": "a",
                "account_key": "b",
                "endpoint": "http://127.0.0.1:10000/a",
                "allow_http": "true",
            },
        ),
        ("UseDevelopmentStorage=true", {"use_emulator": "true"}),
    ],
)
def test_a_connection_string_is_read(text: str, options: dict[str, str]) -> None:
    assert connection_options(text) == options


@pytest.mark.parametrize(
    "text", ["", "AccountName=acct", "AccountKey=HUSHHUSH", "HUSHHUSH", "AccountName=a;HUSHHUSH"]
)
def test_one_that_cannot_be_read_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="connection string cannot be read") as told:
        connection_options(text)
    assert "HUSH" not in str(told.value)
