"""Filters in SQL that are right as far as grammar goes; types and values are as odd as they come.

Why: of texts changed anywhere nearly all are refused by the parser, and what judges a filter's types and
files is never reached.
Contract: everything follows from the dice.
"""

from __future__ import annotations

from random import Random

_NUMBERS = (
    *("0", "1", "-1", "9", "2147483648", "-9223372036854775808", "9223372036854775808", "1e308", "-1.5e3"),
    *("0.1", "-0.0", ".5", "1.", "123456789012345678901234567890.123456789", "cast('12' as bigint)"),
)
_TEXTS = (
    *("'a'", "'b'", "'d-1'", "''", "'d%'", "'it''s'", "'é'", "'\u2028'", "'%'", "'_'", "'\\%'", "'12'"),
    *(f"'{'x' * 300}'", "'\U0010ffff'"),
)
_DAYS = ("'2026-02-08'", "date '2026-02-08'", "cast('2026-02-09' as date)", "'0001-01-01'", "'9999-12-31'")
_MOMENTS = (
    *("'2026-02-08 10:00:00'", "timestamp '2026-02-08 10:00:00'", "'2026-02-08T10:00:00.123456Z'"),
    *("'2026-02-08 10:00:00+05:30'", "'1969-12-31 23:59:59.999999'", "'2026-02-08'", "'9999-12-31 23:59:59'"),
)
_FITTING = {
    "device_id": _TEXTS,
    "value": _NUMBERS,
    '"value"': _NUMBERS,
    "count": _NUMBERS,
    "`count`": _NUMBERS,
    "date": _DAYS,
    "ts": _MOMENTS,
}
_ODD = (
    *("null", "true", "x'00ff'", "x'0'", "current_date", "1e400", "9" * 400, "'nan'", "'Infinity'", "' 12 '"),
    *("'2026-02-30'", "date '99999-01-01'", "'2026-02-08T10:00:00.1234567Z'", "cast('x' as double)", "value"),
)
_ODD_COLUMNS = ("nowhere", "s.x", "t.device_id", "1")
_ODD_SHARE = 0.04
_OPERATORS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=")
_DEEPEST = 5


def sql_filter(dice: Random) -> str:
    """One to a few conditions, in brackets some levels deep."""
    return _condition(dice, dice.randint(0, _DEEPEST))


def _condition(dice: Random, depth: int) -> str:
    kind = dice.random()
    if depth and kind < 0.5:
        joined = dice.choice((" and ", " or ", " AND ", "\nor\n"))
        return f"({joined.join(_condition(dice, depth - 1) for _ in range(2))})"
    if depth and kind < 0.65:
        return f"not ({_condition(dice, depth - 1)})"
    column = dice.choice(_ODD_COLUMNS if dice.random() < _ODD_SHARE else tuple(_FITTING))
    return dice.choice(_LEAVES)(dice, column)


def _comparison(dice: Random, column: str) -> str:
    sides = [column, _value(dice, column)]
    if dice.random() < 0.2:
        sides.reverse()
    return f"{sides[0]} {dice.choice(_OPERATORS)} {sides[1]}"


def _between(dice: Random, column: str) -> str:
    return f"{column} {_negation(dice)}between {_value(dice, column)} and {_value(dice, column)}"


def _members(dice: Random, column: str) -> str:
    values = ", ".join(_value(dice, column) for _ in range(dice.choice((1, 2, 3, 12))))
    return f"{column} {_negation(dice)}in ({values})"


def _likeness(dice: Random, column: str) -> str:
    of = column if dice.random() < _ODD_SHARE else "device_id"
    return f"{of} {_negation(dice)}like {dice.choice(_TEXTS)}"


def _nullness(dice: Random, column: str) -> str:
    return f"{column} is {_negation(dice)}null"


def _truth(dice: Random, column: str) -> str:
    return dice.choice(("true", "false", "1 = 1", "not true", f"{column} = {column}"))


def _negation(dice: Random) -> str:
    return "not " if dice.random() < 0.3 else ""


def _value(dice: Random, column: str) -> str:
    return dice.choice(_ODD if dice.random() < _ODD_SHARE else _FITTING.get(column, _ODD))


_LEAVES = (_comparison, _comparison, _comparison, _between, _members, _likeness, _nullness, _truth)
