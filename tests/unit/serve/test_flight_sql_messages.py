"""The messages of Flight SQL: what is checked in is what the compiler makes, and no bytes break reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.errors import LazyDeltaError
from lazydelta.serve.flight_sql import messages_pb2 as messages
from lazydelta.serve.flight_sql.envelope import enclosed, opened
from tests.support.flight_sql_messages import ROOM, generated

TYPE = b"type.googleapis.com/arrow.flight.protocol.sql."


def test_the_checked_in_python_is_what_the_messages_make() -> None:
    made = generated()
    assert sorted(made) == ["messages_pb2.py", "messages_pb2.pyi"]
    for name, text in made.items():
        assert (ROOM / name).read_text("utf-8") == text, "python -m tests.support.flight_sql_messages"


def test_a_message_comes_out_of_its_envelope_as_it_went_in() -> None:
    message = messages.CommandGetTables(catalog="c", table_types=["TABLE"], include_schema=True)
    raw = enclosed(message)
    assert TYPE + b"CommandGetTables" in raw
    assert opened(raw) == message


def test_other_bytes_are_no_envelope() -> None:
    assert opened(b"") is None
    assert opened(b'{"table": "readings"}') is None


@given(st.binary(max_size=300))
def test_a_damaged_envelope_is_refused_or_none(tail: bytes) -> None:
    for raw in (
        tail,
        b"\n\x43" + TYPE + tail,
        b"\n" + bytes([len(TYPE) + 21]) + TYPE + b"CommandStatementQuery" + tail,
    ):
        try:
            opened(raw)
        except LazyDeltaError as error:
            assert error.fix


def test_an_unknown_message_is_told_by_its_name() -> None:
    raw = enclosed(messages.CommandGetCatalogs()).replace(b"GetCatalogs", b"GetWombats!")
    with pytest.raises(LazyDeltaError, match="CommandGetWombats! is not served"):
        opened(raw)
