"""Page tokens: what was written comes back; whatever else a caller gives is refused, and told why."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.page_token import PageToken, Position, read_token, write_token

KEYS = pytest.mark.parametrize("key", ["", "a secret"])
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
values = st.one_of(
    st.none(),
    st.text(),
    st.binary(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
)


def token(**position: Any) -> PageToken:
    told: dict[str, Any] = {
        "column": ("_event_hour",),
        "type_name": "string",
        "value": "2026021022",
        "raw_path": "_event_hour=2026021022/part-1.parquet",
        "dv_id": "",
        "row": 17,
    }
    place = Position(**(told | position))
    return PageToken("an id", 7, b"twelve bytes", "asc", "checkpoint 3", 500, place)


@KEYS
@given(value=values, path=st.text(), dv=st.text(), row=st.none() | st.integers(0, 2**62))
def test_a_token_comes_back_as_it_was(key: str, value: Any, path: str, dv: str, row: int | None) -> None:
    written = token(value=value, raw_path=path, dv_id=dv, row=row)
    assert read_token(write_token(written, key), key) == written


def test_a_token_is_text_that_a_url_takes_as_it_is() -> None:
    assert set(write_token(token(raw_path="ü" * 50), "")) <= set(ALPHABET)


@KEYS
def test_a_token_with_any_letter_changed_is_refused(key: str) -> None:
    text = write_token(token(), key)
    for at in range(len(text)):
        for letter in (ALPHABET[(ALPHABET.index(text[at]) + step) % 64] for step in (1, 2, 32)):
            with pytest.raises(InvalidRequestError):
                read_token(text[:at] + letter + text[at + 1 :], key)


@KEYS
def test_a_token_that_is_cut_or_goes_on_is_refused(key: str) -> None:
    text = write_token(token(), key)
    for end in range(len(text)):
        with pytest.raises(InvalidRequestError):
            read_token(text[:end], key)
    for more in ("A", "AA", "=", " ", "\n", "ü"):
        with pytest.raises(InvalidRequestError):
            read_token(text + more, key)


@given(text=st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_made_up_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        read_token(text, "")


@pytest.mark.parametrize("after", [7, b"AQA", object(), ["a"]])
def test_what_is_not_text_is_refused(after: object) -> None:
    with pytest.raises(InvalidRequestError, match="not text"):
        read_token(after, "")


def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="another key"):
        read_token(write_token(token(), "one"), "two")


def test_where_a_key_is_set_a_checksum_is_not_enough() -> None:
    with pytest.raises(InvalidRequestError, match="not signed"):
        read_token(write_token(token(), ""), "a key")


def test_a_signed_token_needs_the_key() -> None:
    with pytest.raises(InvalidRequestError, match="signing_key is not set"):
        read_token(write_token(token(), "a key"), "")


def test_a_token_longer_than_any_is_not_looked_at() -> None:
    with pytest.raises(InvalidRequestError, match="longer"):
        read_token("A" * (limits.PAGE_TOKEN_CHARS_MAX + 1), "")


def test_a_token_of_a_later_format_is_told_as_such() -> None:
    raw = base64.urlsafe_b64decode(write_token(token(), "") + "==")
    later = base64.urlsafe_b64encode(b"\x02" + raw[1:]).rstrip(b"=").decode()
    with pytest.raises(InvalidRequestError, match="format is 2"):
        read_token(later, "")


@pytest.mark.parametrize("payload", [b"", b"\xc0", msgspec.msgpack.encode(["an id", "seven"]), b"\xff\xff"])
def test_a_sealed_token_of_other_content_is_refused(payload: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazydelta.rows.page_token.msgspec.msgpack.encode", lambda _: payload)
    text = write_token(token(), "")
    monkeypatch.undo()
    with pytest.raises(InvalidRequestError, match="not written by lazydelta"):
        read_token(text, "")


def forged(payload: bytes) -> str:
    """Sealed as a stranger can, without a key."""
    body = bytes([1, 0]) + payload
    seal = blake2b(body, digest_size=16, person=b"lazydelta-page").digest()
    return base64.urlsafe_b64encode(body + seal).rstrip(b"=").decode()


def test_forged_tokens_are_read_as_others_are() -> None:
    assert read_token(forged(msgspec.msgpack.encode(token())), "") == token()


@pytest.mark.parametrize("number", [2**62 + 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("what", ["version", "emitted", "row"])
def test_a_forged_token_with_a_number_beyond_all_bounds_is_refused(what: str, number: int) -> None:
    parts = msgspec.msgpack.decode(msgspec.msgpack.encode(token()))
    if what == "row":
        parts[6][5] = number
    else:
        parts[1 if what == "version" else 5] = number
    with pytest.raises(InvalidRequestError, match="not written by lazydelta"):
        read_token(forged(msgspec.msgpack.encode(parts)), "")


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, datetime(2026, 1, 1, tzinfo=UTC), msgspec.msgpack.Ext(5, b"x")]
)
def test_a_forged_token_with_a_value_of_no_column_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequestError, match="not written by lazydelta"):
        read_token(forged(msgspec.msgpack.encode(token(value=value))), "")


@pytest.mark.parametrize("levels", [300, 2_000, 45_000])
def test_a_forged_token_that_nests_deeply_is_refused(levels: int) -> None:
    whole = msgspec.msgpack.encode(token(value="a value"))
    at = whole.index(msgspec.msgpack.encode("a value"))
    deep = whole[:at] + b"\x91" * levels + b"\xc0" + whole[at + len(msgspec.msgpack.encode("a value")) :]
    with pytest.raises(InvalidRequestError, match="not written by lazydelta"):
        read_token(forged(deep), "")


def test_a_key_with_half_a_character_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidRequestError, match="half a character") as told:
        write_token(token(), "hidden\udc80")
    assert "hidden" not in str(told.value)
    assert told.value.__context__ is None
