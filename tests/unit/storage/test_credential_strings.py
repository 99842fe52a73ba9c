"""Azure's connection strings."""

from __future__ import annotations

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.storage.connection_string import connection_options


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
