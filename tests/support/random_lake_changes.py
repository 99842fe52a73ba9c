"""Random changes of a table: what Spark is told, and what the table should look like then.

Contract: pure. A change may be one that Spark refuses; then nothing has changed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

import msgspec

from tests.support.random_lake_model import (
    Column,
    Model,
    inner_types,
    new_name,
    random_choice,
    random_model,
    replaced,
    written_columns,
    written_values,
)
from tests.support.random_lake_types import (
    Fields,
    Leaf,
    Path,
    Type,
    ddl,
    quoted,
    random_type,
)

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_PROPERTIES = (
    "'delta.enableDeletionVectors' = 'true'",
    "'delta.enableDeletionVectors' = 'false'",
    "'delta.columnMapping.mode' = 'name'",
    "'delta.enableRowTracking' = 'true'",
    "'delta.enableTypeWidening' = 'true'",
    "'delta.checkpointPolicy' = 'v2'",
    "'delta.checkpointPolicy' = 'classic'",
    "'delta.dataSkippingNumIndexedCols' = '1'",
    "'delta.dataSkippingNumIndexedCols' = '-1'",
    "'delta.checkpoint.writeStatsAsStruct' = 'false'",
    "'delta.checkpoint.writeStatsAsJson' = 'false'",
)


class Situation(msgspec.Struct, frozen=True):
    """A table as a change finds it."""

    table: str  # its name in SQL
    model: Model
    next_key: int
    earlier: Mapping[int, Model]  # by version


class Change(msgspec.Struct, frozen=True):
    """A statement, and the model after it."""

    statement: str
    model: Model
    next_key: int = 0  # 0: no new keys


def insert(dice: random.Random, now: Situation) -> Change:
    """Some rows in some files."""
    end = now.next_key + dice.randint(1, 40)
    verb = dice.choice(("INSERT INTO", "INSERT INTO", "INSERT INTO", "INSERT OVERWRITE"))
    verb = verb if now.next_key > 100 else "INSERT INTO"
    rows = f"range({now.next_key}, {end}, 1, {dice.randint(1, 2)})"
    values = written_values(dice, now.model, "id")
    statement = f"{verb} {now.table} ({written_columns(now.model)}) SELECT {values} FROM {rows}"
    return Change(statement, now.model, end)


def delete(dice: random.Random, now: Situation) -> Change:
    """Some rows less."""
    return Change(f"DELETE FROM {now.table} WHERE {_some_rows(dice, now)}", now.model)


def update(dice: random.Random, now: Situation) -> Change | None:
    """Other values in some rows."""
    chosen = _to_update(dice, now.model)
    if not chosen:
        return None
    key = quoted(now.model.key.name)
    values = ", ".join(f"{quoted(one.name)} = {random_choice(dice, one, key)}" for one in chosen)
    return Change(f"UPDATE {now.table} SET {values} WHERE {_some_rows(dice, now)}", now.model)


def merge(dice: random.Random, now: Situation) -> Change | None:
    """Some rows less, some others, some more."""
    chosen = _to_update(dice, now.model)
    if not chosen:
        return None
    end = now.next_key + dice.randint(1, 10)
    rows = f"(SELECT id AS source FROM range({max(0, now.next_key - dice.randint(1, 60))}, {end}))"
    changes = ", ".join(f"{quoted(one.name)} = {random_choice(dice, one, 'source')}" for one in chosen)
    statement = (
        f"MERGE INTO {now.table} USING {rows} ON {quoted(now.model.key.name)} = source "
        f"WHEN MATCHED AND pmod(source, 5) = {dice.randrange(5)} THEN DELETE "
        f"WHEN MATCHED AND pmod(source, 3) = {dice.randrange(3)} THEN UPDATE SET {changes} "
        f"WHEN NOT MATCHED THEN INSERT ({written_columns(now.model)}) "
        f"VALUES ({written_values(dice, now.model, 'source')})"
    )
    return Change(statement, now.model, end)


def add_field(dice: random.Random, now: Situation) -> Change:
    """A column more, or a field of a struct anywhere."""
    kind = random_type(dice, now.model.leaves, depth=dice.choice((0, 0, 1)))
    structs = [found for found in _inside(now.model) if isinstance(found[2], Fields)]
    if not structs or dice.random() < 0.4:
        name = new_name(dice, now.model)
        columns = (*now.model.columns, Column(name, kind))
        place, grown = (name,), msgspec.structs.replace(now.model, columns=columns)
    else:
        column, path, found = dice.choice(structs)
        assert isinstance(found, Fields)
        name = f"new{len(found.members)}{dice.choice('abc')}"
        place = (*path, name)
        grown = _changed(now.model, column, path, Fields((*found.members, (name, kind))))
    return Change(f"ALTER TABLE {now.table} ADD COLUMNS ({_spelled(place)} {ddl(kind)})", grown)


def rename_field(dice: random.Random, now: Situation) -> Change | None:
    """Another name for a column, or for a field of a struct anywhere."""
    if now.model.mapping == "none":
        return None
    structs = [found for found in _inside(now.model) if isinstance(found[2], Fields)]
    if not structs or dice.random() < 0.5:
        has_generated = any(column.role == "generated" for column in now.model.columns)
        column = dice.choice([one for one in now.model.columns if one.role != "key" or not has_generated])
        name = new_name(dice, now.model)
        model = now.model.with_column(column.name, msgspec.structs.replace(column, name=name))
        if column.name in now.model.clustered:
            model = msgspec.structs.replace(model, clustered=(name,))
        return Change(f"ALTER TABLE {now.table} RENAME COLUMN {quoted(column.name)} TO {quoted(name)}", model)
    column, path, found = dice.choice(structs)
    assert isinstance(found, Fields)
    old, name = dice.choice(found.members)[0], f"renamed{dice.randrange(1000)}"
    members = tuple((name if one == old else one, kind) for one, kind in found.members)
    statement = f"ALTER TABLE {now.table} RENAME COLUMN {_spelled((*path, old))} TO {quoted(name)}"
    return Change(statement, _changed(now.model, column, path, Fields(members)))


def drop_field(dice: random.Random, now: Situation) -> Change | None:
    """A column less, or a field of a struct anywhere."""
    if now.model.mapping == "none":
        return None
    structs = [one for one in _inside(now.model) if isinstance(one[2], Fields) and len(one[2].members) > 1]
    if structs and dice.random() < 0.6:
        column, path, found = dice.choice(structs)
        assert isinstance(found, Fields)
        gone = dice.choice(found.members)[0]
        left = Fields(tuple(member for member in found.members if member[0] != gone))
        statement = f"ALTER TABLE {now.table} DROP COLUMN {_spelled((*path, gone))}"
        return Change(statement, _changed(now.model, column, path, left))
    plain = [column for column in now.model.columns if column.role == "plain"]
    if len(plain) < 3:
        return None
    name = dice.choice(plain).name
    return Change(f"ALTER TABLE {now.table} DROP COLUMN {quoted(name)}", now.model.with_column(name, None))


def widen(dice: random.Random, now: Situation) -> Change | None:
    """A wider type of a leaf anywhere."""
    leaves = [
        (column, path, wider)
        for column, path, kind in _inside(now.model)
        if isinstance(kind, Leaf) and column.role in ("plain", "partition")
        for wider in _wider(kind, now.model)
    ]
    if not leaves:
        return None
    column, path, wider = dice.choice(leaves)
    statement = f"ALTER TABLE {now.table} ALTER COLUMN {_spelled(path)} TYPE {wider.ddl}"
    return Change(statement, _changed(now.model, column, path, wider))


def move_column(dice: random.Random, now: Situation) -> Change:
    """A column in another place."""
    column = dice.choice(now.model.columns)
    columns = (column, *(one for one in now.model.columns if one.name != column.name))
    statement = f"ALTER TABLE {now.table} ALTER COLUMN {quoted(column.name)} FIRST"
    return Change(statement, msgspec.structs.replace(now.model, columns=columns))


def optimize(dice: random.Random, now: Situation) -> Change:
    """Files written anew, rows as they were."""
    forms = ["OPTIMIZE {0}", "REORG TABLE {0} APPLY (PURGE)"]
    if not now.model.clustered:
        forms.append(f"OPTIMIZE {{0}} ZORDER BY ({quoted(now.model.key.name)})")
    return Change(dice.choice(forms).replace("{0}", now.table), now.model)


def restore(dice: random.Random, now: Situation) -> Change:
    """The table as it was at an earlier version."""
    version = dice.choice(sorted(now.earlier))
    return Change(f"RESTORE TABLE {now.table} TO VERSION AS OF {version}", now.earlier[version])


def set_property(dice: random.Random, now: Situation) -> Change:
    """A feature switched on or off, or another form of the log."""
    stated = dice.choice(_PROPERTIES)
    model = now.model
    if "columnMapping" in stated and model.mapping == "none":
        model = msgspec.structs.replace(model, mapping="name")
    return Change(f"ALTER TABLE {now.table} SET TBLPROPERTIES ({stated})", model)


CHANGES: tuple[tuple[Callable[[random.Random, Situation], Change | None], int], ...] = (
    (insert, 8),
    (delete, 5),
    (update, 4),
    (merge, 3),
    (add_field, 3),
    (rename_field, 3),
    (drop_field, 2),
    (widen, 4),
    (move_column, 1),
    (optimize, 2),
    (restore, 1),
    (set_property, 3),
)


def another_model(dice: random.Random, model: Model) -> Model:
    """Quite other columns, for a table that is replaced."""
    return random_model(dice, mapping=model.mapping, partitions=dice.randint(0, 2), turn=dice.randrange(12))


def _some_rows(dice: random.Random, now: Situation) -> str:
    key = quoted(now.model.key.name)
    ratio = dice.randint(2, 9)
    first = dice.randrange(now.next_key)
    return dice.choice(
        (
            f"pmod(xxhash64({key}, {dice.randrange(100)}), {ratio}) = 0",
            f"{key} BETWEEN {first} AND {first + dice.randint(0, 30)}",
            f"{quoted(dice.choice(now.model.columns).name)} IS NULL AND {key} % 2 = 0",
        )
    )


def _to_update(dice: random.Random, model: Model) -> list[Column]:
    columns = [column for column in model.columns if column.role in ("plain", "partition")]
    return dice.sample(columns, min(len(columns), dice.randint(1, 2)))


def _inside(model: Model) -> list[tuple[Column, Path, Type]]:
    """Every type of every plain column, with its path."""
    return [
        (column, path, kind)
        for column in model.columns
        if column.role in ("plain", "partition")
        for path, kind in inner_types(column.kind, (column.name,))
    ]


def _changed(model: Model, column: Column, path: Path, kind: Type) -> Model:
    changed = replaced(column.kind, path[1:], kind)
    return model.with_column(column.name, msgspec.structs.replace(column, kind=changed))


def _wider(leaf: Leaf, model: Model) -> list[Leaf]:
    wider: list[str] = []
    if leaf.base in _INTEGERS:
        wider += _INTEGERS[_INTEGERS.index(leaf.base) + 1 :]
        wider += (
            ["DECIMAL(22, 2)"] if leaf.base == "BIGINT" else ["DOUBLE", "DECIMAL(10, 0)", "DECIMAL(13, 3)"]
        )
    elif leaf.base == "FLOAT":
        wider.append("DOUBLE")
    elif leaf.base == "DATE" and "TIMESTAMP_NTZ" in model.leaves:
        wider.append("TIMESTAMP_NTZ")
    elif leaf.base == "DECIMAL":
        precision, scale = map(int, re.findall(r"\d+", leaf.ddl))
        wider += [f"DECIMAL({precision + 2}, {scale})", f"DECIMAL({precision + 9}, {scale + 4})"]
    found = [Leaf(name) for name in wider]
    return [one for one in found if one.base != "DECIMAL" or int(re.findall(r"\d+", one.ddl)[0]) <= 38]


def _spelled(path: Path) -> str:
    return ".".join(map(quoted, path))
