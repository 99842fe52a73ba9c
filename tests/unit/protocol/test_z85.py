"""Z85 against the RFC's example and against an encoder of our own."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.protocol.z85 import decode_z85
from tests.support.deletion_vector_writer import encode_z85


def test_the_example_of_the_rfc_says_hello_world() -> None:
    assert decode_z85("HelloWorld") == bytes.fromhex("864FD26FB559F75B")


def test_the_example_of_the_protocol_is_its_uuid() -> None:
    assert UUID(bytes=decode_z85("^-aqEH.-t@S}K{vb[*k^")) == UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


@given(st.binary(max_size=64))
def test_what_was_encoded_comes_back_with_its_padding(data: bytes) -> None:
    assert decode_z85(encode_z85(data)) == data + bytes(-len(data) % 4)


@given(st.binary(max_size=64))
def test_the_tail_of_rust_comes_back_without_padding(data: bytes) -> None:
    assert decode_z85(encode_z85(data, like_rust=True)) == data


@pytest.mark.parametrize(("text", "data"), [("###0a", b"\x0a"), ("##093", b"\3\0"), ("#0001", b"\0\0\1")])
def test_a_tail_of_rust_says_how_many_bytes_are_missing(text: str, data: bytes) -> None:
    assert decode_z85(text) == data
    assert decode_z85("HelloWorld" + text) == decode_z85("HelloWorld") + data


@pytest.mark.parametrize("text", ["####0", "###zz", "##zzz", "#zzzz", "##", "##093Hello"])
def test_a_tail_that_does_not_add_up_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="its text"):
        decode_z85(text)


@pytest.mark.parametrize("text", ["Hello1", "Hell~", "Hell\x7f", "Hellö", "####\n", "#####", "%nSc1"])
def test_text_that_is_not_z85_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="its text"):
        decode_z85(text)


def test_the_greatest_word_is_read() -> None:
    assert decode_z85(encode_z85(b"\xff" * 4)) == b"\xff" * 4
    assert encode_z85(b"\xff" * 4) == "%nSc0"
