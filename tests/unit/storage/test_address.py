"""The spellings of a table's address."""

from __future__ import annotations

from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from lazydelta.settings import Settings
from lazydelta.storage import Storage, open_storage, parse_address, split_credentials

AZURE_ROOT = "abfss://lake@acct.dfs.core.windows.net/a/b%20c"


@pytest.mark.parametrize(
    "url",
    [
        "abfss://lake@acct.dfs.core.windows.net/a/b%20c",
        "abfss://lake@acct/a/b%20c/",
        "abfs://lake@acct.blob.core.windows.net/a/b c",
        "ABFSS://lake@ACCT/a//b%20c",
        "https://acct.blob.core.windows.net/lake/a/b%20c",
        "https://acct.dfs.core.windows.net/lake/a/b%20c/",
    ],
)
def test_every_spelling_of_an_azure_table_has_the_same_root(url: str) -> None:
    address = parse_address(url)
    assert (address.kind, address.container, address.account) == ("azure", "lake", "acct")
    assert address.path == "a/b c"
    assert address.root == AZURE_ROOT


@pytest.mark.parametrize("scheme", ["az", "azure", "abfss"])
def test_an_azure_table_without_its_account_takes_it_from_the_options(scheme: str) -> None:
    options = {"AZURE_STORAGE_ACCOUNT_NAME": "acct", "skip_signature": "true"}
    assert open_storage(f"{scheme}://lake/a/b c", Settings(storage_options=options)).root == AZURE_ROOT


@pytest.mark.parametrize("url", ["s3://bucket/a/b", "s3a://bucket/a/b/", "s3://bucket//a/b"])
def test_s3_and_s3a_are_one_store(url: str) -> None:
    assert parse_address(url).root == "s3://bucket/a/b"


def test_a_container_may_be_a_table() -> None:
    assert parse_address("s3://bucket").root == "s3://bucket"
    assert parse_address("s3://bucket/").path == ""


def test_other_azure_clouds_keep_their_host() -> None:
    assert parse_address("abfss://lake@acct.dfs.fabric.microsoft.com/t").root == (
        "abfss://lake@acct.dfs.fabric.microsoft.com/t"
    )
    assert parse_address("https://acct.blob.core.usgovcloudapi.net/lake/t").root == (
        "abfss://lake@acct.dfs.core.usgovcloudapi.net/t"
    )
    assert parse_address("https://acct.z28.blob.storage.azure.net/lake/t").root == (
        "abfss://lake@acct.z28.dfs.storage.azure.net/t"
    )


@pytest.mark.parametrize(
    "url",
    [
        "abfss://work@onelake.dfs.fabric.microsoft.com/house.Lakehouse/Tables/t",
        "https://onelake.dfs.fabric.microsoft.com/work/house.Lakehouse/Tables/t",
        "https://onelake.blob.fabric.microsoft.com/work/house.Lakehouse/Tables/t/",
    ],
)
def test_a_table_of_onelake_has_one_root(url: str) -> None:
    address = parse_address(url)
    assert (address.container, address.account) == ("work", "onelake")
    assert address.root == "abfss://work@onelake.dfs.fabric.microsoft.com/house.Lakehouse/Tables/t"


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://bucket.s3.eu-west-1.amazonaws.com/a/b%20c", "eu-west-1"),
        ("https://bucket.s3.dualstack.eu-west-1.amazonaws.com/a/b%20c", "eu-west-1"),
        ("https://s3.eu-west-1.amazonaws.com/bucket/a/b%20c/", "eu-west-1"),
        ("https://bucket.s3.cn-north-1.amazonaws.com.cn/a/b%20c", "cn-north-1"),
        ("https://bucket.s3.amazonaws.com/a/b%20c", None),
        ("s3://bucket/a/b%20c", None),
    ],
)
def test_https_addresses_of_s3_name_the_bucket_and_the_region(url: str, region: str | None) -> None:
    address = parse_address(url)
    assert (address.root, address.region) == ("s3://bucket/a/b%20c", region)


@pytest.mark.parametrize(
    "url",
    [
        "https://acct.blob.core.windows.net/lake/t",
        "abfss://lake@acct.dfs.core.windows.net/t",
        "abfs://lake@acct/t",
        "az://lake/t",
        "https://onelake.dfs.fabric.microsoft.com/work/x.Lakehouse/Tables/t",
    ],
)
def test_a_signature_in_the_query_is_split_off(url: str) -> None:
    query = "sv=2021-08-06&sp=rl&sig=HUSH%2FHUSH%3D"
    bare, settings = split_credentials(f"{url}?{query}", Settings())
    assert (bare, settings.storage_options["sas_token"]) == (url, query)
    assert split_credentials(url, Settings()) == (url, Settings())


@pytest.mark.parametrize(
    "url", ["/a/t?sig=1", "file:///a/t?sig=1", "s3://b/t?sig=1", "https://acct.blob.core.windows.net/l/t?x=1"]
)
def test_a_query_that_is_no_signature_stays(url: str) -> None:
    assert split_credentials(url, Settings()) == (url, Settings())


def test_a_local_path_is_absolute_and_taken_literally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert parse_address("a%20b").path == str(tmp_path / "a%20b")
    assert parse_address("./x/").root == f"file://{tmp_path}/x"
    assert parse_address("~/t").path == str(tmp_path / "home" / "t")
    assert parse_address("x/~").path == str(tmp_path / "x" / "~")
    assert parse_address("c:x").path == str(tmp_path / "c:x")


def test_a_file_url_is_decoded_once() -> None:
    assert parse_address("file:///a%20b/c%2525").path == "/a b/c%25"
    assert parse_address("file:///a%20b/c%2525").root == "file:///a%20b/c%2525"
    assert parse_address("file://localhost/x").root == parse_address("/x").root == "file:///x"


@pytest.mark.parametrize(
    "url",
    ["gs://bucket/t", "hdfs://name/t", "http://acct.blob.core.windows.net/c/t", "https://example.com/c/t"],
)
def test_an_unknown_scheme_is_refused_with_the_supported_ones(url: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_address(url)
    assert all(word in caught.value.fix for word in ("abfss://", "az://", "s3://", "file://", "local path"))


@pytest.mark.parametrize(
    "url", ["", "s3:///t", "abfss://@acct/t", "file://host/t", "https://acct.blob.core.windows.net/"]
)
def test_an_incomplete_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://acct.blob.core.windows.net/lake/t?sv=1&sig=HUSHHUSH",
        "https://acct.blob.core.windows.net/lake/t?token=HUSHHUSH",
        "https://bucket.s3.eu-west-1.amazonaws.com/t?X-Amz-Signature=HUSHHUSH",
        "s3://bucket/t?sig=HUSHHUSH",
        "s3://key:HUSHHUSH@bucket/t",
        "abfss://lake@acct/t#HUSHHUSH",
        "gs://key:HUSHHUSH@bucket/t",
    ],
)
def test_a_secret_in_the_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_address(url)
    assert "HUSH" not in f"{caught.value!s} {caught.value!r}"


# --- spellings that are none: another table must not answer in the place of the one meant ---


def opened(url: str) -> Storage:
    return open_storage(url, Settings())


@pytest.mark.parametrize("broken", ["\n", "\t", "\r", "\r\n", "\0", "\x7f"])
@pytest.mark.parametrize(
    "url",
    [
        "s3://lake/ta{}ble",
        "s3://la{}ke/table",
        "az://lake/ta{}ble",
        "abfss://lake@acct/ta{}ble",
        "https://acct.blob.core.windows.net/lake/ta{}ble",
        "file:///lake/ta{}ble",
    ],
)
def test_a_url_with_a_line_break_inside_is_not_the_url_without_it(url: str, broken: str) -> None:
    with pytest.raises(InvalidRequestError, match="line break"):
        opened(url.format(broken))


@pytest.mark.parametrize(
    "url",
    ["s3://lake/%FF", "az://lake/t/%fe", "az://la%C3ke/t", "abfss://lake@acct/%C3%28", "file:///t/%FF"],
)
def test_escapes_that_are_no_text_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="not UTF-8"):
        opened(url)


def test_escapes_that_are_text_are_decoded_once() -> None:
    assert parse_address("s3://lake/%C3%BC%25FF%20%2B+").path == "ü%FF ++"


def test_a_line_break_beside_a_signature_does_not_show_it() -> None:
    with pytest.raises(InvalidRequestError) as told:
        ld.open("https://acct.blob.core.windows.net/lake/ta\nble?sv=1&sig=HUSHHUSHHUSH")
    assert "HUSH" not in f"{told.value!r} {told.value}"


@pytest.mark.parametrize("url", ["wasbs://lake@acct.blob.core.windows.net/t", "gs://lake/t", "ftp://u@h/t"])
def test_a_scheme_that_is_not_opened_is_told_as_such(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="is not a scheme this reader opens"):
        opened(url)
