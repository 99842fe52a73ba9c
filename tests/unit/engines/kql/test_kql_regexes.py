r"""Kusto's regular expressions: Unicode's words and digits, and by name what RE2 cannot say."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lazydelta.engines.kql.errors import UnsupportedKqlError
from tests.support.kql_session import KqlSession, kql_session

LETTERS = "aüZ5٣_ .-"
# Every text of up to four of them: boundaries of all kinds.
TEXTS = ["".join(text) for size in range(5) for text in itertools.product(LETTERS, repeat=size)]
# Python's words, digits and blanks are Unicode's as well.
PATTERNS = [
    r"^\w+$",
    r"\W",
    r"^\d+$",
    r"\D\d",
    r"\s\S",
    r"[\w-]+\s",
    r"^[\W_]+$",
    r"[^\w\s]",
    r"[\S]\.",
    r"^[^\d]+$",
    r"(?i)z\wü",
    r"(?i)\bZ\b",
    r"\ba",
    r"5\b",
    r"\b(a|ü)\b",
    r"\b(?:Z|a+)\w",
    r"\b[a-z]+\d\b",
    r"\bü{2}\b",
    r"(a)|\.",
]
ASCII_ONLY = [r"\Ba", r"a\b.", r"\b\.", r"\ba?5", r"\ba|Z\b", r"a\b\s"]


@pytest.fixture(scope="module")
def session() -> Iterator[KqlSession]:
    with kql_session() as made:
        ascii_texts = [text for text in TEXTS if text.isascii()]
        made.give({"T": pa.table({"s": TEXTS}), "A": pa.table({"s": ascii_texts})})
        yield made


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_they_match_elsewhere(session: KqlSession, pattern: str) -> None:
    found = {text for (text,) in session.kql(f"T | where s matches regex @'{pattern}'")}
    assert found == {text for text in TEXTS if re.search(pattern, text)}


@pytest.mark.parametrize("pattern", ASCII_ONLY)
def test_boundaries_inside_a_pattern_need_words_of_ascii(session: KqlSession, pattern: str) -> None:
    found = {text for (text,) in session.kql(f"A | where s matches regex @'{pattern}'")}
    assert found == {text for text in TEXTS if text.isascii() and re.search(pattern, text)}
    with pytest.raises(Exception, match="whose words are not ASCII"):
        session.kql(f"T | where s matches regex @'{pattern}'")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"extract(@'(\w+)', 1, '- müller x')", "müller"),
        (r"extract(@'\b(\w+)@', 1, 'grüße müller@x')", "müller"),
        (r"replace_regex('müller 5', @'\w+', 'W')", "W W"),
        (r"countof('aä bä', @'\w+', 'regex')", 2),
        (r"indexof_regex('  äb', @'\w')", 2),
        (r"trim(@'[^\w]+', '--ü--')", "ü"),
        (r"tostring(extract_all(@'(\w)(\d)', 'ä1b2'))", '[["ä","1"],["b","2"]]'),
        (r"extract('\\u00e4(.)', 1, 'xäy')", "y"),
    ],
)
def test_functions_of_patterns_know_the_same_words(session: KqlSession, text: str, value: str | int) -> None:
    assert session.kql(f"print {text}") == [(value,)]
    assert session.kql(r"print x = 'ä1' | parse kind=regex x with @'\w' y:long | project y") == [(1,)]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("[a-z&&b]", "&&"),
        ("[a-z--b]", "--"),
        ("[a-g~~b-h]", "~~"),
        ("[x[^xyz]]", "[[]]"),
        (r"[^\Wa]", r"\W"),
        ("(?x)a b", "(?x)"),
        (r"\b{start}a", r"\b{start}"),
    ],
)
def test_what_the_engine_cannot_say_is_refused_by_its_name(
    session: KqlSession, pattern: str, name: str
) -> None:
    with pytest.raises(UnsupportedKqlError) as wrong:
        session.kql(f"print 'a' matches regex @'{pattern}'")
    assert name in wrong.value.operator
    assert (wrong.value.line, wrong.value.column) == (1, 7)


def test_a_pattern_that_is_a_column_is_refused(session: KqlSession) -> None:
    with pytest.raises(UnsupportedKqlError, match="the pattern must be a literal"):
        session.kql("T | where s matches regex s")
    assert session.kql("let p = strcat('^', 'a$'); T | where s matches regex p | count") == [(1,)]
