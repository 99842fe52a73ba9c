"""LazyFragment: one live file of a dataset, which can be scanned by itself.

Why it is no subclass of pyarrow's `Fragment`: see `scanner`. Contract: deleted rows are left out, partition
values are filled in, columns have the table's names and types, as in a scan of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.engines.projection import Columns
from lazydelta.engines.scanner import BATCH_ROWS, LazyScanner, source_token
from lazydelta.errors import InvalidRequestError
from lazydelta.protocol.partition_values import parse_partition_column, raw_partition_column
from lazydelta.protocol.schema import PrimitiveType
from lazydelta.rows.source import RowSource
from lazydelta.scan import LazyScanConfig

Reopen = Callable[[LazyScanConfig], RowSource]  # another process can call it, too


class LazyFragment:
    """One file."""

    def __init__(
        self,
        source: RowSource,
        file: pa.RecordBatch,
        keep: pc.Expression | None = None,
        reopen: Reopen | None = None,
    ) -> None:
        """`file`: one row, with `DATA_FILE_COLUMNS`. `keep`: a filter that every scan has besides its own.

        `reopen`: opens the source after unpickling.
        """
        self._source = source
        self._file = file
        self._keep = keep
        self._reopen = reopen

    @property
    def path(self) -> str:
        """Relative to the table's root, or an absolute URI outside it."""
        return str(self._file.column("path")[0])

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return int(self._file.column("size")[0].as_py())

    @property
    def physical_schema(self) -> pa.Schema:
        """The table's columns: rows of old files are given in them, too."""
        return self._source.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """What is true of every row, by the partition values."""
        known = pc.scalar(True)
        for position, (name, value) in enumerate(self._partition_values()):
            is_it = pc.field(name) == value if value.is_valid else pc.field(name).is_null()
            known = is_it if position == 0 else known & is_it
        return known

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002  # pyarrow's name
        batch_size: int = BATCH_ROWS,
        **_: Any,  # Any: further options of pyarrow
    ) -> LazyScanner:
        """A scan of this file; with a schema and no columns, the columns that it names."""
        chosen = schema.names if columns is None and schema is not None else columns
        if self._keep is not None:
            filter = self._keep if filter is None else self._keep & filter  # noqa: A001
        return LazyScanner(
            self._source, columns=chosen, filter=filter, batch_size=batch_size, file=self._file, origin=self
        )

    def to_batches(self, schema: pa.Schema | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        """The rows, lazily."""
        return self.scanner(schema, **options).to_batches()

    def to_table(self, schema: pa.Schema | None = None, **options: Any) -> pa.Table:
        """The rows in memory."""
        return self.scanner(schema, **options).to_table()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows."""
        return self.scanner(**options).head(num_rows)

    def take(self, indices: Any, **options: Any) -> pa.Table:  # Any: an array, or what becomes one
        """The rows at these places."""
        return self.scanner(**options).take(indices)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:  # noqa: A002
        """How many rows match."""
        return self.scanner(filter=filter, **options).count_rows()

    def __repr__(self) -> str:
        return f"lazydelta.LazyFragment({self.path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (checked_reopen(self._reopen), self._source.config, self._file, self._keep)
        return (restored_fragment, parts)

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """What tells it apart from others, for engines that remember results by their input."""
        return (*source_token(self._source), str(self._keep), str(self._file.to_pylist()))

    def _partition_values(self) -> Iterator[tuple[str, pa.Scalar]]:
        snapshot = self._source.snapshot
        for name in snapshot.state.metadata.partition_columns:
            field = snapshot.schema.field(name)
            assert field is not None, "Delta partitions by columns of the schema"
            assert isinstance(field.type, PrimitiveType), "Delta partitions by primitive columns alone"
            raw = raw_partition_column(self._file.column("partition_values"), field.name)
            typed = parse_partition_column(raw, field.type, time_zone=self._source.config.time_zone)
            yield field.name, typed[0]


def restored_fragment(
    reopen: Reopen, config: LazyScanConfig, file: pa.RecordBatch, keep: pc.Expression | None
) -> LazyFragment:
    """A file that was pickled, of the same version, opened here."""
    return LazyFragment(reopen(config), file, keep, reopen)


def checked_reopen(reopen: Reopen | None) -> Reopen:
    """How the table is opened elsewhere, or an error."""
    if reopen is None:
        raise InvalidRequestError(
            "this dataset cannot be pickled: it is part of a query",
            "the dataset",
            "pickle what to_pyarrow_dataset() of a table gives",
        )
    return reopen
