"""Options of the data source: texts to a struct and back, and what is refused."""

from __future__ import annotations

import re

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.reading.options import ReadOptions, option_texts, parse_options


def test_options_go_through_texts_unchanged() -> None:
    given = ReadOptions(
        path="s3://bucket/Table",
        where="a = 'X' and b > 3",
        columns=("a", "b, with comma", "[c]"),
        version=0,
        partitionlimit=0,
        timezone="Europe/Berlin",
        minpartitions=4,
        startingversion="latest",
        skipchangecommits=True,
        storage_options={"account_key": "c2VjcmV0", "s3://Other/Place": {"region": "x"}},
    )
    assert parse_options(option_texts(given)) == given


def test_names_have_no_case_and_deltas_own_names_are_known() -> None:
    found = parse_options({"Path": "t", "versionAsOf": "3", "storage.Account_Key": "k", "columns": "a, b"})
    assert (found.path, found.version, found.columns) == ("t", 3, ("a", "b"))
    assert found.storage_options == {"account_key": "k"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "has no table"),
        ({"path": "t", "wher": "a = 1"}, "did you mean where"),
        ({"path": "t", "startingTimestamp": "2026-01-01"}, "startingTimestamp is an option of Delta's own"),
        ({"path": "t", "version": "-1"}, "version is '-1'"),
        ({"path": "t", "version": "1.5"}, "version is '1.5'"),
        ({"path": "t", "version": "9" * 5000}, "version is"),
        ({"path": "t", "version": "1", "timestamp": "2026-01-01"}, "give one of them"),
        ({"path": "t", "version": "1", "versionAsOf": "2"}, "given twice"),
        ({"path": "t", "columns": "[1]"}, "columns is"),
        ({"path": "t", "maxPartitionBytes": "0"}, "maxpartitionbytes is '0'"),
        ({"path": "t", "maxBytesPerTrigger": "10 miles"}, "maxbytespertrigger is '10 miles'"),
        ({"path": "t", "maxBytesPerTrigger": "9" * 18 + "p"}, "9p'"),
        ({"path": "t", "openCostBytes": "-1k"}, "opencostbytes is '-1k'"),
        ({"path": "t", "skipChangeCommits": "perhaps"}, "true or false"),
        ({"path": "t", "storage_options": "account_key=c2VjcmV0"}, "not a JSON object"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        parse_options(given)
    assert said in str(error.value)
    assert "c2VjcmV0" not in str(error.value)


@pytest.mark.parametrize(
    ("told", "size"), [("512", 512), ("7b", 7), ("10m", 10 << 20), ("1 GB", 1 << 30), (" 2Kb ", 2048)]
)
def test_bytes_have_units_as_in_spark(told: str, size: int) -> None:
    found = parse_options({"path": "t", "maxBytesPerTrigger": told, "maxPartitionBytes": told})
    assert (found.maxbytespertrigger, found.maxpartitionbytes) == (size, size)


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("+02:00", "Etc/GMT-2"),
        ("GMT-3", "Etc/GMT+3"),
        ("UTC+0530", None),
        ("-00:00", "UTC"),
        ("Z", "UTC"),
        ("+15:00", None),
        ("Mars/Base", None),
    ],
)
def test_zones_may_be_offsets_of_whole_hours_as_in_spark(told: str, name: str | None) -> None:
    given = {"path": "t", "timeZone": told}
    if name is not None:
        assert parse_options(given).timezone == name
        return
    with pytest.raises(InvalidRequestError, match=re.escape(f"there is no time zone {told!r}")):
        parse_options(given)


def test_what_is_printed_holds_no_secret() -> None:
    options = ReadOptions(
        path="https://a.blob.core.windows.net/c/t?sv=1&sig=c2VjcmV0", storage_options={"x": "c2VjcmV0"}
    )
    assert "c2VjcmV0" not in repr(options)
