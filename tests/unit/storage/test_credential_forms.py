"""Values of options and of providers in forms that cannot serve: told before a request, and not repeated."""

from __future__ import annotations

import traceback

import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from lazydelta.settings import Settings
from lazydelta.storage import open_storage, split_credentials

AZURE, S3 = "abfss://lake@acct/t", "s3://lake/t"
SIGNATURE = "sv=2021-08-06&ss=b&srt=sco&sp=rl&se=2099-01-01T00%3A00%3A00Z&spr=https&sig=HUSH%2FHUSH%3D"
KEYS = {"access_key_id": "a", "secret_access_key": "b"}


def opened(url: str, options: dict[str, str]) -> None:
    open_storage(url, Settings(storage_options=options))


@pytest.mark.parametrize(
    ("url", "option", "others"),
    [
        (S3, "endpoint", KEYS),
        (S3, "metadata_endpoint", {}),
        (S3, "endpoint_url_sts", KEYS),
        (AZURE, "endpoint", {"account_key": "YQ=="}),
        (AZURE, "msi_endpoint", {}),
        (AZURE, "authority_host", {"client_id": "c", "client_secret": "s", "tenant_id": "t"}),
    ],
)
@pytest.mark.parametrize("port", ["HUSHHUSH/x@127.0.0.1:9000", "99999", "x", "-1"])
def test_a_port_that_is_none_is_told_without_what_stands_there(
    url: str, option: str, others: dict[str, str], port: str
) -> None:
    with pytest.raises(InvalidRequestError, match=f"the {option} is no address") as told:
        opened(url, {**others, option: f"http://user:{port}"})
    assert "HUSH" not in "".join(traceback.format_exception(told.value))
    assert "http://host:8080" in told.value.fix


@pytest.mark.parametrize(
    "more",
    ["restype=container&comp=list", "snapshot=2026-01-01T00:00:00Z", "versionid=1", "timeout=1", "x=1"],
)
def test_what_is_more_than_a_signature_would_change_each_request_and_is_refused(more: str) -> None:
    for query in (f"{more}&{SIGNATURE}", f"{SIGNATURE}&{more}"):
        url = f"https://acct.blob.core.windows.net/lake/t?{query}"
        assert split_credentials(url, Settings()) == (url, Settings())
        with pytest.raises(InvalidRequestError, match="carries a query") as told:
            ld.open(url)
        assert "nothing else" in told.value.fix
        assert "HUSH" not in str(told.value)
        with pytest.raises(InvalidRequestError, match="sas_token is not a shared access signature"):
            opened(AZURE, {"sas_token": query})


@pytest.mark.parametrize(
    "given", ["HUSHHUSH", f"https://acct.blob.core.windows.net/lake?{SIGNATURE}", "sv=1"]
)
def test_what_is_no_signature_is_refused_before_it_is_sent(given: str) -> None:
    with pytest.raises(InvalidRequestError, match="sas_token is not a shared access signature") as told:
        opened(AZURE, {"sas_token": given})
    assert "HUSH" not in "".join(traceback.format_exception_only(told.value))


def test_every_name_that_azure_gives_to_a_signature_s_parts_is_one() -> None:
    names = (
        "sv ss srt sp st se spr sip sr si sdd ses skoid sktid skt ske sks skv saoid suoid scid skdutid sduoid"
    )
    query = "&".join(f"{name}=x" for name in [*names.split(), "rscc", "rscd", "rsce", "rscl", "rsct"])
    for spelled in (f"{query}&sig=x", f"?sig=x&{query}", f"sig%3Dx%26{query}"):
        opened(AZURE, {"sas_token": spelled})
