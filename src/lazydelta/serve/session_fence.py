"""What a DuckDB session may reach that runs a stranger's statement, and what a plan may do in it.

Contract: once fenced, a session cannot reach anything outside: no files but those below the tables' own
folders, which DuckDB needs where plain files are handed over to it (`engines/handover.py`), no extensions, no
settings but the two that the handover turns. That a statement names no file and writes none is the guard's
(`statement_guard.py`), and, once it is planned, `check_operators`'.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazydelta.engines.query_plan import PlanFacts
from lazydelta.engines.session import Duck, text_literal
from lazydelta.errors import UnsupportedTableError
from lazydelta.rows.source import RowSource
from lazydelta.storage.address import parse_address
from lazydelta.storage.local import LocalStorage

_SETTINGS_OF_HANDOVER = ("disabled_optimizers", "parquet_metadata_cache")
# Operators of DuckDB's that leave something behind.
_WRITES = ("COPY", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "ATTACH", "EXPORT")


def fence(session: Duck, sources: Iterable[RowSource]) -> None:
    """From now on the session reaches the files of these tables, and nothing else."""
    storages = [source.snapshot.storage for source in sources]
    roots = [parse_address(one.root).path for one in storages if isinstance(one, LocalStorage)]
    folders = ", ".join(text_literal(root.rstrip("/") + "/") for root in roots)
    names = ", ".join(map(text_literal, _SETTINGS_OF_HANDOVER))
    session.execute(
        f"set allowed_directories = [{folders}]; set enable_external_access = false;"
        f" set allowed_configs = [{names}]; set lock_configuration = true"
    )


def check_plan(facts: PlanFacts) -> None:
    """Raise where DuckDB would write, or does not tell; a query that is wrong is told when it is bound."""
    if not facts.is_known and facts.problem is None:
        raise UnsupportedTableError("only SELECT is served", "SQL", "send one SELECT statement")
    check_operators(facts.operators)


def check_operators(operators: Iterable[str]) -> None:
    """Raise where one of a plan's operators would write."""
    for operator in operators:
        if operator.partition(" ")[0].removeprefix("BATCH_").startswith(_WRITES):
            raise UnsupportedTableError(
                "the statement would write, and tables are read only here", "SQL", "send a SELECT"
            )
