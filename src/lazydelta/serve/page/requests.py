"""What the page sends.

Contract: what is wrong is refused by its name. A query is text in one of two languages; a version is a whole
number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.serve.sign_in import Client

Language = Literal["sql", "kql"]
_Version = Annotated[int, msgspec.Meta(ge=0, le=limits.NUMBER_MAX)]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose sender is known."""

    client: Client
    table: str  # of the path; empty: it is of none
    parameters: Mapping[str, str]  # of the address
    body: bytes
    id: str | None


class QueryBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query as it stands in the box."""

    language: Language
    text: str
    version: _Version | None = None  # of the table whose files are looked at; None: the newest


class CompletionBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query that is being typed."""

    language: Language
    text: str
    before: str  # the cursor
    table: str = ""  # that is shown


_Body = TypeVar("_Body")


def read_body(body: bytes, kind: type[_Body]) -> _Body:
    """The body, checked."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequestError(
            f"the body is no request: {problem}", "body", "reload the page"
        ) from problem


def read_number(question: Question, name: str) -> int | None:
    """A whole number of the address, or None where it is not there."""
    text = question.parameters.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or int(text[:20]) > limits.NUMBER_MAX:
        raise InvalidRequestError(f"{name} is {text[:40]!r}", name, "give a whole number")
    return int(text)
