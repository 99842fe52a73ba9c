"""Random filters over a random table, each as lazydelta, as Spark and as DuckDB read it."""

from __future__ import annotations

import random
from collections.abc import Mapping

import msgspec

from tests.support.random_lake_types import (
    Leaf,
    Path,
    duckdb_sql,
    filter_sql,
    quoted,
    random_value,
    spark_sql,
    spark_text,
    text_sql,
)

_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
_PATTERNS = ("a%", "%b", "_b%", "%\\%%", "z%z", "two%", "%li_es", "", "%", "ü%", "a\\_b", "A%")


class Filter(msgspec.Struct, frozen=True):
    """One condition in three spellings."""

    ours: str
    spark: str
    duckdb: str


def random_filter(dice: random.Random, leaves: Mapping[Path, Leaf], *, depth: int = 2) -> Filter:
    """A condition over these columns."""
    form = dice.choice(("leaf", "leaf", "not", "and", "or")) if depth else "leaf"
    if form == "leaf":
        path = dice.choice(sorted(leaves))
        return _leaf(dice, path, leaves[path])
    parts = [random_filter(dice, leaves, depth=depth - 1) for _ in range(1 if form == "not" else 2)]
    return Filter(
        *(_joined(form, [getattr(part, name) for part in parts]) for name in Filter.__struct_fields__)
    )


def _leaf(dice: random.Random, path: Path, leaf: Leaf) -> Filter:
    ours, duckdb = ".".join(map(quoted, path)), ".".join(_double_quoted(name) for name in path)
    if leaf.ddl in ("VARIANT", "VOID") or dice.random() < 0.15:
        ending = dice.choice(("IS NULL", "IS NOT NULL"))
        return Filter(f"{ours} {ending}", f"{ours} {ending}", f"{duckdb} {ending}")
    if leaf.base in ("STRING", "VARCHAR") and dice.random() < 0.3:
        pattern = dice.choice(_PATTERNS)
        return Filter(
            f"{ours} LIKE {text_sql(pattern)}",
            f"{ours} LIKE {spark_text(pattern)}",
            f"{duckdb} LIKE {text_sql(pattern)} ESCAPE '\\'",
        )
    if dice.random() < 0.2:
        values = [random_value(dice, leaf, nulls=0.1) for _ in range(dice.randint(1, 3))]
        word = dice.choice(("IN", "NOT IN"))
        texts = [[say(leaf, value) for value in values] for say in (filter_sql, spark_sql, duckdb_sql)]
        names = (ours, ours, duckdb)
        return Filter(
            *(f"{name} {word} ({', '.join(text)})" for name, text in zip(names, texts, strict=True))
        )
    value, operator = random_value(dice, leaf, nulls=0.03), dice.choice(_OPERATORS)
    return Filter(
        f"{ours} {operator} {filter_sql(leaf, value)}",
        f"{ours} {operator} {spark_sql(leaf, value)}",
        f"{duckdb} {operator} {duckdb_sql(leaf, value)}",
    )


def _joined(form: str, parts: list[str]) -> str:
    return f"NOT ({parts[0]})" if form == "not" else f"({parts[0]}) {form} ({parts[1]})"


def _double_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
