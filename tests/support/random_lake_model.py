"""What a random table looks like: its columns, how they are declared, and what rows are made of.

Contract: a model is what the table's schema is believed to be at one version; it is pure, and Spark's answer
is what decides. The key is never null, and no two rows of a version have the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tests.support.random_lake_types import (
    PARTITION_LEAVES,
    Fields,
    Items,
    Leaf,
    Pairs,
    Path,
    Type,
    ddl,
    leaves_of,
    quoted,
    random_leaf,
    random_nested,
    random_type,
    random_value,
    spark_sql,
)

USUAL_LEAVES = (
    "STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP",
    "BINARY", "DECIMAL", "DECIMAL", "VARCHAR(9)",
)  # fmt: skip
PLAIN_NAMES = ("a", "B", "x.y", "ü", "p%20q", "n#", "w:z", "q'q", "_lead", "Mixed")
_DECIMALS = ("DECIMAL(9, 2)", "DECIMAL(38, 10)", "DECIMAL(18, 6)")  # Parquet has 4, 16 and 8 bytes for them
_NESTED = ("struct", "array", "map")
MAPPED_NAMES = (*PLAIN_NAMES, "a b", "c,d", "s;t", "{e}", "(f)", "g=h", "tick`", 'i"j', "/k\\")


class Column(msgspec.Struct, frozen=True):
    """One column; `role` is key, plain, partition, generated, identity or void."""

    name: str
    kind: Type
    role: str = "plain"
    clause: str = ""  # behind the type, where it is declared

    @property
    def is_written(self) -> bool:
        """Whether writers give its values."""
        return self.role in ("key", "plain", "partition")


class Model(msgspec.Struct, frozen=True):
    """A table's columns and what may become of them."""

    columns: tuple[Column, ...]
    mapping: str  # "none", "name" or "id"
    leaves: tuple[str, ...]  # of columns that are added
    clustered: tuple[str, ...] = ()

    @property
    def key(self) -> Column:
        """The column that tells rows apart."""
        return next(column for column in self.columns if column.role == "key")

    @property
    def partitions(self) -> list[Column]:
        """Those that files are divided by."""
        return [column for column in self.columns if column.role == "partition"]

    def with_column(self, old: str, new: Column | None) -> Model:
        """The same with another column of that name, or without it."""
        changed = (new if column.name == old else column for column in self.columns)
        return msgspec.structs.replace(self, columns=tuple(one for one in changed if one is not None))

    def leaves_by_path(self) -> dict[Path, Leaf]:
        """What a filter can name."""
        return {path: leaf for one in self.columns for path, leaf in leaves_of(one.kind, (one.name,))}


def random_model(dice: random.Random, *, mapping: str, partitions: int, turn: int) -> Model:
    """A table's first columns; rare types and roles come by turns."""
    rare = ((), ("TIMESTAMP_NTZ",), ("VARIANT", "TIMESTAMP_NTZ"))[(turn + turn // 3 + 2) % 3]
    leaves = (*USUAL_LEAVES, *rare)
    names = _names(dice, mapping)
    columns = [Column("k", Leaf("BIGINT"), "key", dice.choice(("", " NOT NULL")))]
    for _ in range(partitions):
        kinds = [kind for kind in PARTITION_LEAVES if kind != "TIMESTAMP_NTZ" or kind in leaves]
        if turn % 4 == 3:  # values of texts are what is odd in paths
            kinds = ["STRING"]
        columns.append(Column(next(names), random_leaf(dice, *kinds), "partition"))
    decimal = _DECIMALS[turn % 3]
    columns += [Column(next(names), Leaf(kind)) for kind in ("TIMESTAMP", decimal, *rare)]
    columns.append(Column(next(names), random_nested(dice, leaves, form=_NESTED[turn % 3])))
    for _ in range(dice.randint(2, 4)):
        columns.append(Column(next(names), random_type(dice, leaves, depth=dice.choice((0, 0, 1, 2)))))
    columns += (
        [Column("i", Leaf("BIGINT"), "identity", " GENERATED ALWAYS AS IDENTITY")],
        [Column(next(names), Leaf("VOID"), "void")],
        [Column("g", Leaf("BIGINT"), "generated", " GENERATED ALWAYS AS (k % 5)")],
        [],
    )[turn % 4]
    dice.shuffle(columns)
    clustered: tuple[str, ...] = ("k",) if not partitions and dice.random() < 0.3 else ()
    if clustered:  # such a column needs statistics, which the first few columns have
        columns.sort(key=lambda column: column.role != "key")
    return Model(tuple(columns), mapping, leaves, clustered)


def new_name(dice: random.Random, model: Model) -> str:
    """A name that no column has, in any case."""
    taken = {column.name.lower() for column in model.columns}
    return next(name for name in _names(dice, model.mapping) if name.lower() not in taken)


def declaration(model: Model, table: str, properties: Mapping[str, str], verb: str = "CREATE") -> str:
    """The statement that makes the table."""
    columns = ", ".join(f"{quoted(one.name)} {ddl(one.kind)}{one.clause}" for one in model.columns)
    parts = f" PARTITIONED BY ({_listed(one.name for one in model.partitions)})" if model.partitions else ""
    if model.clustered:
        parts = f" CLUSTER BY ({_listed(model.clustered)})"
    stated = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    return f"{verb} TABLE {table} ({columns}) USING delta{parts} TBLPROPERTIES ({stated})"


def written_columns(model: Model) -> str:
    """Names of those that writers give, as a list of SQL."""
    return _listed(column.name for column in model.columns if column.is_written)


def written_values(dice: random.Random, model: Model, number: str) -> str:
    """Values for them, by a column `number` that differs from row to row."""
    values = (
        number if column.role == "key" else random_choice(dice, column, number)
        for column in model.columns
        if column.is_written
    )
    return ", ".join(values)


def random_choice(dice: random.Random, column: Column, number: str) -> str:
    """One of a few random values, by a number that differs from row to row."""
    count = dice.randint(1, 3) if column.role == "partition" else dice.randint(2, 6)
    values = [spark_sql(column.kind, _value(dice, column)) for _ in range(count)]
    place = f"1 + CAST(pmod(xxhash64({number}, {dice.randrange(1 << 30)}), {count}) AS INT)"
    return f"element_at(array({', '.join(values)}), {place})"


def inner_types(kind: Type, path: Path) -> Iterator[tuple[Path, Type]]:
    """The type and every type inside it, with the path that ALTER TABLE knows it by."""
    yield path, kind
    match kind:
        case Fields(members):
            for name, member in members:
                yield from inner_types(member, (*path, name))
        case Items(element):
            yield from inner_types(element, (*path, "element"))
        case Pairs(key, value):
            yield from inner_types(key, (*path, "key"))
            yield from inner_types(value, (*path, "value"))


def replaced(kind: Type, path: Path, new: Any) -> Type:
    """The type with another one at this path."""
    if not path:
        assert not isinstance(new, str)
        return new  # type: ignore[no-any-return]  # it is a type
    first, rest = path[0], path[1:]
    match kind:
        case Fields(members):
            return Fields(
                tuple((name, replaced(one, rest, new) if name == first else one) for name, one in members)
            )
        case Items(element):
            return Items(replaced(element, rest, new))
        case Pairs(key, value) if first == "key":
            changed = replaced(key, rest, new)
            assert isinstance(changed, Leaf)
            return Pairs(changed, value)
        case Pairs(key, value):
            return Pairs(key, replaced(value, rest, new))
    raise AssertionError(f"{path} does not lead into {kind}")


def _names(dice: random.Random, mapping: str) -> Iterator[str]:
    names = list(PLAIN_NAMES if mapping == "none" else MAPPED_NAMES)
    dice.shuffle(names)
    yield from names
    yield from (f"more {at}" if mapping != "none" else f"more{at}" for at in range(1000))


def _value(dice: random.Random, column: Column) -> Any:
    value = random_value(dice, column.kind)
    if column.role == "partition" and isinstance(value, bytes) and not _is_plain(value):
        return (
            b"ascii"  # past that, writers differ in how they spell bytes in the log, and no folder has a NUL
        )
    return value


def _is_plain(value: bytes) -> bool:
    return value.isascii() and value.decode("ascii").isprintable()


def _listed(names: Any) -> str:
    return ", ".join(map(quoted, names))
