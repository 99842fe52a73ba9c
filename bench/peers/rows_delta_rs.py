"""delta-rs (`deltalake`): `select * … limit 100` by its own query engine, the only way it has here.

Its pyarrow dataset refuses tables with deletion vectors.
"""

from collections.abc import Iterator

from deltalake import DeltaTable, QueryBuilder
from rows_measure import first_rows


def rows(table: str) -> Iterator[int]:
    found = QueryBuilder().register("t", DeltaTable(table)).execute("select * from t limit 100")
    for batch in found:
        yield batch.num_rows


first_rows("delta-rs", rows)
