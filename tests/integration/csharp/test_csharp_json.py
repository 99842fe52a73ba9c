"""The client's own reader of JSON beside Python's: the same values, and nothing that is not JSON."""

from __future__ import annotations

import json
import random

import lazydelta as ld
from lazydelta.predicate import parse_where
from tests.support.csharp import Driver

GOOD = [
    "null",
    " true ",
    "-0",
    "12345678901234567890",
    "1.5e-10",
    "0E+1",
    '""',
    '"\\u00e9\\ud83d\\ude00\\n\\/\\\\\\"\\b\\f\\r\\t"',
    '"😀 é"',
    "[]",
    "[ 1 , [ ] , { } ]",
    "{}",
    '{"a": {"b": [null, false]}, "": 1}',
    "[" * 60 + "]" * 60,
]
BAD = [
    "",
    " ",
    "nul",
    "True",
    "01",
    "1.",
    ".5",
    "-",
    "+1",
    "1e",
    "0x10",
    "NaN",
    "Infinity",
    '"',
    '"\\x"',
    '"\\u12g4"',
    '"\\u123"',
    '"\\ud800"',
    '"\\udc00x"',
    '"\\ud83dx"',
    '"tab\there"',
    "'a'",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    "]",
    "{",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{a:1}",
    '{"a":1,"a":2}',
    "{} {}",
    "1 2",
    "/* no */ 1",
    "[" * 70 + "]" * 70,
]


def test_values_are_read_as_python_reads_them(driver: Driver) -> None:
    made = [
        *GOOD,
        *(json.dumps(_value(random.Random(seed), 0), ensure_ascii=seed % 2 == 0) for seed in range(300)),
    ]
    done = driver("json", *made)
    found = done.stdout.splitlines()
    assert len(found) == len(made), done.stderr
    for text, line in zip(made, found, strict=True):
        assert json.loads(line) == json.loads(text), text


def test_what_is_not_json_is_refused(driver: Driver) -> None:
    done = driver("json", *BAD)
    found = done.stdout.splitlines()
    assert [text for text, line in zip(BAD, found, strict=True) if not line.startswith("! not JSON")] == []


def test_a_filter_as_sql_means_what_its_json_means(driver: Driver) -> None:
    filters = [
        '{"date": "2026-02-08"}',
        '{"a": 1, "b": {"gte": 1.5, "lt": 9}}',
        '{"a": null, "b": {"ne": null}, "c": {"eq": null}}',
        '{"a": [1, 2], "b": {"not_in": ["x", "it\'s"]}}',
        '{"odd name": true, "1st": {"like": "a%"}, "a": {"is_null": false}}',
        '{"a": {"gt": -30.5, "lte": "z", "ne": 0}}',
    ]
    done = driver("predicate", *filters)
    for text, line in zip(filters, done.stdout.splitlines(), strict=True):
        assert str(parse_where(line)) == str(parse_where(text)), line


def test_an_empty_list_which_sql_cannot_spell_is_left_out_of_the_hints(driver: Driver) -> None:
    done = driver("predicate", '{"a": 1, "b": []}', '{"b": {"not_in": []}}')
    assert done.stdout.splitlines() == ["a = 1", ""]


def test_a_filter_of_another_form_is_refused(driver: Driver) -> None:
    filters = [
        '{"a": {}}',
        '{"a": {"near": 1}}',
        '{"a": {"in": 1}}',
        '{"a": {"eq": [1]}}',
        '{"a": [[1]]}',
    ]
    done = driver("predicate", *filters)
    assert [line[:1] for line in done.stdout.splitlines()] == ["!"] * len(filters)
    for text in filters:
        try:
            parse_where(text)
        except ld.errors.InvalidRequestError:
            continue
        raise AssertionError(text)


def _value(dice: random.Random, depth: int) -> object:
    kind = dice.randrange(5 if depth > 3 else 7)
    if kind == 5:
        return [_value(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind == 6:
        return {_text(dice): _value(dice, depth + 1) for _ in range(dice.randrange(4))}
    return [
        None,
        dice.random() < 0.5,
        dice.randrange(-(10**18), 10**18),
        dice.uniform(-1e9, 1e9),
        _text(dice),
    ][kind]


def _text(dice: random.Random) -> str:
    return "".join(dice.choice('aé"\\/\n\t\x01€😀z') for _ in range(dice.randrange(8)))
