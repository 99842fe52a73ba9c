"""Rows as data frames of pandas and Polars; the `partitions` argument that readers of Delta tables know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from lazydelta.engines.python_values import told_beyond
from lazydelta.engines.scanner import narrowed
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.source import RowSource

Partitions = Sequence[Any]  # Any: (column, operator, value), as `predicate.parse_where` takes them
TypesMapper = Callable[[pa.DataType], Any]  # Any: pandas' types


def within_partitions(source: RowSource, partitions: Partitions | None) -> RowSource:
    """The source, where every (column, operator, value) holds; a column need not be a partition column."""
    if partitions is None:
        return source
    if isinstance(partitions, str) or not isinstance(partitions, Iterable):
        raise InvalidRequestError(
            f"partitions is {partitions!r}"[:200],
            "partitions",
            'give a list of (column, operator, value), as in [("_event_hour", ">=", "2026021022")]',
        )
    conditions = list(partitions)
    return narrowed(source, conditions) if conditions else source


def pandas_frame(rows: LazyRecordBatchIterator, *, types_mapper: TypesMapper | None = None) -> Any:
    """The rows as a `pandas.DataFrame`. Columns are handed over one by one, so that none is held twice."""
    needs("pandas", "pandas")
    with rows:
        table = rows.read_all()
    with told_beyond("to_pandas()"):
        return table.to_pandas(types_mapper=types_mapper, split_blocks=True, self_destruct=True)


def polars_frame(source: RowSource, columns: Sequence[str] | None = None) -> Any:
    """The rows as a `polars.LazyFrame`."""
    needs("polars", "polars")
    from lazydelta.engines.polars_source import lazy_frame

    return lazy_frame(source, columns)


def needs(module: str, extra: str) -> None:
    """Raise unless a library that not every install has is there."""
    try:
        import_module(module)
    except ImportError as error:
        raise InvalidRequestError(
            f"{module} is not installed", f"import {module}", f"pip install 'lazydelta[{extra}]'"
        ) from error
