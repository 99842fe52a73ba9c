"""Random column types of Delta tables, and random values of them, as SQL of Spark, of DuckDB and of a filter.

Why: one value must mean the same wherever it is written. Contract: a value is a Python object (None for null;
a text of JSON for a variant; a dict, list or list of pairs for nested types) and its texts are exact.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

Path = tuple[str, ...]


class Leaf(msgspec.Struct, frozen=True):
    """A primitive type, by Spark's name."""

    ddl: str

    @property
    def base(self) -> str:
        """The name without precision and length."""
        return self.ddl.partition("(")[0]


class Fields(msgspec.Struct, frozen=True):
    """A struct."""

    members: tuple[tuple[str, Type], ...]


class Items(msgspec.Struct, frozen=True):
    """An array."""

    element: Type


class Pairs(msgspec.Struct, frozen=True):
    """A map."""

    key: Leaf
    value: Type


Type = Leaf | Fields | Items | Pairs

TEXTS = (
    "", "a", "ab", "A", "b b", " lead", "trail ", "ü/é", "a%20b", "50%", "x=y", "a:b#c?d&e+f", "it's", 'q"q',
    "back\\slash", "tab\tbed", "two\nlines", "{[*]}", "null", "__HIVE_DEFAULT_PARTITION__", "..", "~", "😀",
    "z" * 40, "\x7f", "%2F", "a_b", "0", "1.0", "2026-02-10",
)  # fmt: skip
INTEGER_BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_DAYS = ("0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "1970-01-01", "2026-02-10", "9999-12-31")
_TIMES = ("00:00:00", "00:00:00.000001", "12:34:56.789", "23:59:59.999999", "01:02:03.123456")
_SINGLES = ("nan", "inf", "-inf", "0.0", "-0.0", "1.5", "-2.25", "16777216.0", "1e-45", "3.4028235e38", "0.1")
_DOUBLES = (*_SINGLES, "9007199254740993.0", "5e-324", "1.7976931348623157e308", "0.30000000000000004")
_JSON = (
    "1",
    '"text"',
    "null",
    "[1, 2.5, null]",
    '{"a": {"b": [true]}}',
    "-12345678901234567890",
    '"ü"',
    "{}",
)
_DECIMALS = (
    (1, 0),
    (5, 2),
    (9, 9),
    (10, 0),
    (18, 6),
    (19, 0),
    (20, 10),
    (28, 3),
    (38, 0),
    (38, 38),
    (38, 10),
)
PARTITION_LEAVES = (
    "STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP",
    "TIMESTAMP_NTZ", "BINARY", "DECIMAL",
)  # fmt: skip
_KEY_LEAVES = ("STRING", "INT", "SMALLINT", "DATE", "BIGINT")


def random_leaf(dice: random.Random, *names: str) -> Leaf:
    """One of these, a decimal of any width."""
    name = dice.choice(names)
    if name != "DECIMAL":
        return Leaf(name)
    precision, scale = dice.choice(_DECIMALS)
    return Leaf(f"DECIMAL({precision}, {scale})")


def random_type(dice: random.Random, leaves: tuple[str, ...], *, depth: int) -> Type:
    """A leaf, or something nested of at most so many levels."""
    form = dice.choice(("leaf", "struct", "array", "map")) if depth else "leaf"
    if form == "leaf":
        return random_leaf(dice, *leaves)
    return random_nested(dice, leaves, form=form, depth=depth)


def random_nested(dice: random.Random, leaves: tuple[str, ...], *, form: str, depth: int = 1) -> Type:
    """A struct, array or map of at most so many levels."""
    if form == "struct":
        names = [f"{dice.choice('abcXYZ')}{at}" for at in range(dice.randint(1, 3))]
        return Fields(tuple((name, random_type(dice, leaves, depth=depth - 1)) for name in names))
    inner = random_type(dice, leaves, depth=depth - 1)
    return Items(inner) if form == "array" else Pairs(random_leaf(dice, *_KEY_LEAVES), inner)


def random_value(dice: random.Random, kind: Type, *, nulls: float = 0.2) -> Any:
    """A value of the type; null so often."""
    if dice.random() < nulls:
        return None
    match kind:
        case Fields(members):
            return {name: random_value(dice, member) for name, member in members}
        case Items(element):
            return [random_value(dice, element) for _ in range(dice.randint(0, 3))]
        case Pairs(key, value):
            keys = {random_value(dice, key, nulls=0) for _ in range(dice.randint(0, 3))}
            return [(one, random_value(dice, value)) for one in sorted(keys)]
    return _leaf_value(dice, kind)


def ddl(kind: Type) -> str:
    """As `CREATE TABLE` takes it."""
    match kind:
        case Fields(members):
            return f"STRUCT<{', '.join(f'{quoted(name)}: {ddl(member)}' for name, member in members)}>"
        case Items(element):
            return f"ARRAY<{ddl(element)}>"
        case Pairs(key, value):
            return f"MAP<{ddl(key)}, {ddl(value)}>"
    return kind.ddl


def spark_sql(kind: Type, value: Any) -> str:  # noqa: PLR0911  # one case per type
    """The value, in exactly that type, for Spark."""
    if value is None:
        return f"CAST(NULL AS {ddl(kind)})"
    match kind:
        case Fields(members):
            inside = (f"{spark_text(name)}, {spark_sql(member, value[name])}" for name, member in members)
            return f"named_struct({', '.join(inside)})"
        case Items(element):
            inside = (spark_sql(element, one) for one in value)
            return f"CAST(array({', '.join(inside)}) AS {ddl(kind)})"
        case Pairs(key, item):
            inside = (f"{spark_sql(key, one)}, {spark_sql(item, other)}" for one, other in value)
            return f"CAST(map({', '.join(inside)}) AS {ddl(kind)})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if kind.ddl == "VARIANT":
        return f"parse_json({spark_text(value)})"
    return f"CAST({spark_text(plain_text(value))} AS {kind.ddl})"


def filter_sql(kind: Leaf, value: Any) -> str:  # noqa: PLR0911  # one case per type
    """The value in a filter of lazydelta."""
    match value:
        case None | bool():
            return str(value).lower().replace("none", "null")
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return text_sql(value)
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat()}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case float() if not _is_finite(value):
            return f"DOUBLE '{value}'"
    return plain_text(value)


def duckdb_sql(kind: Leaf, value: Any) -> str:
    """The value, in the column's type, for DuckDB."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"from_hex('{value.hex()}')"
    name = {"TIMESTAMP": "TIMESTAMPTZ", "TIMESTAMP_NTZ": "TIMESTAMP", "STRING": "VARCHAR"}.get(
        kind.ddl, kind.ddl
    )
    return f"CAST({text_sql(plain_text(value))} AS {re.sub(r'^VARCHAR.*', 'VARCHAR', name)})"


def quoted(name: str) -> str:
    """As Spark and lazydelta quote names."""
    return f"`{name.replace('`', '``')}`"


def spark_text(text: str) -> str:
    """A string literal of Spark, in which a backslash escapes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{escaped}'"


def text_sql(text: str) -> str:
    """A string literal as standard SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def plain_text(value: Any) -> str:
    """A value as text that every engine reads."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat(sep=" ") if isinstance(value, dt.datetime) else str(value)


def leaves_of(kind: Type, path: Path) -> Iterator[tuple[Path, Leaf]]:
    """The leaves that a filter can name, structs opened."""
    if isinstance(kind, Leaf):
        yield path, kind
    elif isinstance(kind, Fields):
        for name, member in kind.members:
            yield from leaves_of(member, (*path, name))


def _leaf_value(dice: random.Random, kind: Leaf) -> Any:  # noqa: PLR0911  # one case per type
    match kind.base:
        case "BOOLEAN":
            return dice.random() < 0.5
        case "TINYINT" | "SMALLINT" | "INT" | "BIGINT":
            bound = 1 << INTEGER_BITS[kind.base]
            return dice.choice(
                (0, 1, -1, bound - 1, -bound, dice.randrange(-bound, bound), dice.randrange(100))
            )
        case "FLOAT":
            return float(dice.choice(_SINGLES))
        case "DOUBLE":
            return float(dice.choice(_DOUBLES))
        case "STRING":
            return dice.choice(TEXTS)
        case "VARCHAR":
            return dice.choice(TEXTS)[:9]
        case "BINARY":
            return dice.choice((b"", b"a", b"\x00\xff", b"\x7f\x00", "ü".encode(), bytes(range(32))))
        case "DATE":
            return dt.date.fromisoformat(dice.choice(_DAYS))
        case "TIMESTAMP":
            return _moment(dice).replace(tzinfo=dt.UTC)
        case "TIMESTAMP_NTZ":
            return _moment(dice)
        case "VARIANT":
            return dice.choice(_JSON)
        case "DECIMAL":
            return _decimal(dice, kind)
    return None  # VOID


def _moment(dice: random.Random) -> dt.datetime:
    return dt.datetime.fromisoformat(f"{dice.choice(_DAYS)} {dice.choice(_TIMES)}")


def _decimal(dice: random.Random, kind: Leaf) -> Decimal:
    precision, scale = map(int, re.findall(r"\d+", kind.ddl))
    highest = 10**precision - 1
    digits = dice.choice(
        (0, 1, -1, highest, -highest, dice.randint(-highest, highest), dice.randint(0, 10**6))
    )
    sign, magnitude = ("-" if digits < 0 else ""), min(abs(digits), highest)
    return Decimal(f"{sign}{magnitude}e-{scale}")


def _is_finite(value: float) -> bool:
    return value - value == 0
