"""Spellings of an address that are none: another table must not answer in the place of the one meant."""

from __future__ import annotations

import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from lazydelta.storage.address import given_address


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
        given_address(url.format(broken))


@pytest.mark.parametrize(
    "url",
    ["s3://lake/%FF", "az://lake/t/%fe", "az://la%C3ke/t", "abfss://lake@acct/%C3%28", "file:///t/%FF"],
)
def test_escapes_that_are_no_text_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="not UTF-8"):
        given_address(url)


def test_escapes_that_are_text_are_decoded_once() -> None:
    assert given_address("s3://lake/%C3%BC%25FF%20%2B+").path == "ü%FF ++"


def test_a_line_break_beside_a_signature_does_not_show_it() -> None:
    with pytest.raises(InvalidRequestError) as told:
        ld.open("https://acct.blob.core.windows.net/lake/ta\nble?sv=1&sig=HUSHHUSHHUSH")
    assert "HUSH" not in f"{told.value!r} {told.value}"


@pytest.mark.parametrize("url", ["wasbs://lake@acct.blob.core.windows.net/t", "gs://lake/t", "ftp://u@h/t"])
def test_a_scheme_that_is_not_opened_is_told_as_such(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="is not a scheme this reader opens"):
        given_address(url)
