"""LazyDataset: one version of a table as a pyarrow dataset.

Why: DuckDB, Polars, DataFusion and pandas take one and push columns and filters into `scanner`. Contract:
making one reads nothing, each scan reads anew, and the filter is applied exactly, by Arrow's rules. Every
public method of `pyarrow.dataset.Dataset` is overridden; what reaches C++ past them is refused, see
`native_guard`. Options of pyarrow that tune its own reading (`use_threads`, …) are taken and not needed.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lazydelta.engines.fragment import Reopen, checked_reopen
from lazydelta.engines.fragments import LazyFragments
from lazydelta.engines.native_guard import guard_dataset
from lazydelta.engines.projection import Columns
from lazydelta.engines.scanner import BATCH_ROWS, Filter, LazyScanner, source_token
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.source import RowSource
from lazydelta.scan import LazyScanConfig


class LazyDataset(pads.UnionDataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a source; `filter` gives a narrower dataset."""

    def __init__(self, source: RowSource, *, keep: Filter = None, reopen: Reopen | None = None) -> None:
        """`keep`: a filter that every scan has besides its own. `reopen`: opens the source after unpickling.

        Pickled it holds the table's address, version and storage options, credentials among them, and
        nothing that was read.
        """
        super().__init__(source.schema, [guard_dataset(source.schema)])
        self._source = source
        self._keep = keep
        self._reopen = reopen

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self._source.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """True: nothing is known of all rows."""
        return pc.scalar(True)

    @property
    def children(self) -> list[pads.Dataset]:
        """None: a table is not made of other datasets."""
        return []

    def scanner(
        self,
        columns: Columns = None,
        filter: Filter = None,  # noqa: A002  # pyarrow's name
        batch_size: int = BATCH_ROWS,
        **_: Any,  # Any: further options of pyarrow
    ) -> LazyScanner:
        """A scan of these columns where the filter is true, exactly; nothing is read yet."""
        keep = self._both(filter)
        return LazyScanner(self._source, columns=columns, filter=keep, batch_size=batch_size, origin=self)

    def to_batches(self, columns: Columns = None, filter: Filter = None, **options: Any) -> Any:  # noqa: A002
        """An iterator of the rows, lazily."""
        return self.scanner(columns, filter, **options).to_batches()

    def to_table(self, columns: Columns = None, filter: Filter = None, **options: Any) -> pa.Table:  # noqa: A002
        """The rows in memory."""
        return self.scanner(columns, filter, **options).to_table()

    def head(self, num_rows: int, columns: Columns = None, filter: Filter = None, **options: Any) -> pa.Table:  # noqa: A002
        """The first rows."""
        return self.scanner(columns, filter, **options).head(num_rows)

    def take(self, indices: Any, columns: Columns = None, filter: Filter = None, **options: Any) -> pa.Table:  # noqa: A002
        """The rows at these places."""
        return self.scanner(columns, filter, **options).take(indices)

    def count_rows(self, filter: Filter = None, **options: Any) -> int:  # noqa: A002
        """How many rows match."""
        return self.scanner(None, filter, **options).count_rows()

    def filter(self, expression: pc.Expression) -> LazyDataset:
        """The dataset with one filter more."""
        self.scanner([], expression)  # a filter that does not fit is refused here
        return LazyDataset(self._source, keep=self._both(expression), reopen=self._reopen)

    def get_fragments(self, filter: Filter = None) -> LazyFragments:  # noqa: A002
        """The files that might have matching rows, lazily; `len` reads the whole list of them."""
        return LazyFragments(self._source, self._both(filter), self._keep, self._reopen)

    def _get_fragments(self, filter: Filter) -> LazyFragments:  # noqa: A002
        return self.get_fragments(filter)

    def _scanner_options(self, options: dict[str, Any]) -> dict[str, Any]:
        return {**options, "filter": self._both(options.get("filter"))}

    @property
    def _scan_options(self) -> dict[str, Any]:
        return {} if self._keep is None else {"filter": self._keep}

    def replace_schema(self, schema: pa.Schema) -> LazyDataset:
        """Refused, unless by the same: the table's log says which columns there are."""
        if schema.equals(self.schema):
            return self
        raise InvalidRequestError(
            f"a table's schema cannot be replaced (by {', '.join(schema.names)})",
            "replace_schema()",
            "choose and cast columns in scanner(columns={name: expression})",
        )

    def sort_by(self, sorting: Any, **options: Any) -> pads.InMemoryDataset:  # Any: as pyarrow has them
        """The rows sorted, in memory."""
        return pads.dataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: Any, keys: Any, *arguments: Any, **options: Any) -> pads.InMemoryDataset:
        """This and another, joined in memory."""
        return pads.dataset(self.to_table().join(_in_memory(right_dataset), keys, *arguments, **options))

    def join_asof(self, right_dataset: Any, *arguments: Any, **options: Any) -> pads.InMemoryDataset:
        """This and another, joined to the nearest key, in memory."""
        return pads.dataset(self.to_table().join_asof(_in_memory(right_dataset), *arguments, **options))

    def __reduce__(self) -> tuple[Any, ...]:
        return (restored_dataset, (checked_reopen(self._reopen), self._source.config, self._keep))

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """What tells it apart from others, for engines that remember results by their input."""
        return (*source_token(self._source), str(self._keep))

    def __repr__(self) -> str:
        snapshot = self._source.snapshot
        return f"lazydelta.LazyDataset({snapshot.storage.root!r}, version={snapshot.version})"

    def _both(self, more: Filter) -> Filter:
        both = [filter_ for filter_ in (self._keep, more) if filter_ is not None]
        return None if not both else both[0] if len(both) == 1 else both[0] & both[1]


def restored_dataset(reopen: Reopen, config: LazyScanConfig, keep: Filter) -> LazyDataset:
    """A dataset that was pickled: the same version, opened here."""
    return LazyDataset(reopen(config), keep=keep, reopen=reopen)


def _in_memory(dataset: Any) -> pa.Table:  # Any: a dataset or a table
    return dataset if isinstance(dataset, pa.Table) else dataset.to_table()
