"""Options of the C ABI: JSON in, a checked request out."""

from __future__ import annotations

import pytest

from lazydelta.capi.request import Request, file_columns, read_request, refuse
from lazydelta.errors import InvalidRequestError
from lazydelta.log import DEFAULT_COLUMNS


@pytest.mark.parametrize("text", [None, b"", b"  ", b"{}"])
def test_no_options_are_the_defaults(text: bytes | None) -> None:
    assert read_request(text) == Request()


def test_every_option_is_read() -> None:
    request = read_request(b'{"predicate": {"a": 1}, "limit": 0, "version": 3, "with_stats": true}')
    assert request == Request(predicate={"a": 1}, limit=0, version=3, with_stats=True)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"[]", "object"),
        (b"{", "truncated"),
        (b'{"limit": "3"}', "limit"),
        (b'{"limit": -1}', "limit"),
        (b'{"limit": 9223372036854775808}', "limit"),
        (b'{"order": "up"}', "order"),
        (b'{"columns": "a"}', "columns"),
        (b'{"storage_options": {"a": 1}}', "storage_options"),
        (b'{"nope": 1}', "nope"),
        (b'{"strategy": "\xff"}', ""),
        (b"[" * 100_000, ""),
    ],
)
def test_what_is_wrong_is_named(text: bytes, word: str) -> None:
    with pytest.raises(InvalidRequestError, match="the options are wrong") as caught:
        read_request(text)
    assert word in caught.value.what


def test_attributes_of_files_are_chosen_or_are_the_usual_ones() -> None:
    assert file_columns(Request()) == DEFAULT_COLUMNS
    assert file_columns(Request(with_stats=True)) == (*DEFAULT_COLUMNS, "stats")
    assert file_columns(Request(columns=["size", "path"])) == ("size", "path")
    with pytest.raises(InvalidRequestError, match="nope"):
        file_columns(Request(columns=["path", "nope"]))


def test_an_option_that_a_call_cannot_honour_is_refused() -> None:
    refuse(Request(), "columns", "none")
    with pytest.raises(InvalidRequestError, match="columns is given"):
        refuse(Request(columns=[]), "columns", "none")
