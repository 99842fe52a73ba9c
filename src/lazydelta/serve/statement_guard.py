"""What a statement may be: one SELECT over served tables, and nothing that reaches beyond them.

Why: DuckDB can read files, attach databases, change settings and write. Contract: a statement is parsed by
DuckDB itself and looked at as a tree, so that what is checked is what runs. Its parts are those that read;
tables are named by what is served; table functions are those that make rows out of their arguments; functions
that tell of the server or wait are refused. What is not known is refused. This is the first of three fences:
what DuckDB plans to do is looked at before it is run, and the session reaches no further
(`session_fence.py`).
"""

from __future__ import annotations

import re
import threading
from typing import Any

import msgspec

from lazydelta.engines.kql.errors import place_of
from lazydelta.engines.session import Duck, SqlOptions, open_session
from lazydelta.engines.sql import checked_query
from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.serve.statement_bounds import check_depth, check_sizes, nodes_of
from lazydelta.serve.statement_growth import check_growth

_TABLE_FUNCTIONS = frozenset(
    {"range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree"}
)
_FORBIDDEN_FUNCTIONS = frozenset(
    {
        "current_setting",
        "getenv",
        "getvariable",
        "which_secret",
        "write_log",
        "parse_duckdb_log_message",
        "nextval",
        "currval",
        "setval",
        "pg_sleep",
        "sleep_ms",
        "current_query",
        "json_execute_serialized_sql",
        "json_serialize_plan",
        "json_serialize_sql",
        "json_deserialize_sql",
        "query",
        "query_table",
    }
)
# Parts of a statement that only read, without expressions, which have a class. A WITH clause might write.
_PARTS = frozenset(
    {
        "SELECT_NODE",
        "SET_OPERATION_NODE",
        "RECURSIVE_CTE_NODE",
        "CTE_NODE",
        "BASE_TABLE",
        "SUBQUERY",
        "JOIN",
        "TABLE_FUNCTION",
        "EXPRESSION_LIST",
        "EMPTY",
        "PIVOT",
        "ORDER_MODIFIER",
        "LIMIT_MODIFIER",
        "LIMIT_PERCENT_MODIFIER",
        "DISTINCT_MODIFIER",
        "ORDER_DEFAULT",
        "ASCENDING",
        "DESCENDING",
    }
)
# DESCRIBE, by which the columns of a query are told.
_PARTS_OF_TRANSLATIONS = frozenset({"SHOW_REF"})
# A name that DuckDB might take for a file, where it is not found among those of the statement.
_FILE_NAME = re.compile(r"[./\\:*?\[\]]")
# What a name without a schema may mean besides: views that tell of the server.
_VIEWS_OF_DUCKDB = """
    select lower(view_name) from duckdb_views() where internal and schema_name <> 'information_schema'
"""
_PARSER_BYTES = "64MB"
_BARE_PARAMETERS_BYTES = 4096  # of IPC around the values
_NOT_SELECT = "Only SELECT"
_SHOWN_CHARS = 200


class NamedTable(msgspec.Struct, frozen=True):
    """A table as a statement names it; what it leaves out is empty."""

    catalog: str
    schema: str
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.catalog, self.schema, self.name) if part)


class Checked(msgspec.Struct, frozen=True):
    """A statement that may run, as far as its text tells."""

    tables: tuple[NamedTable, ...]
    own_names: frozenset[str]  # of its WITH clauses, in small letters
    tree: Any  # Any: JSON, as DuckDB writes it


class Guard:
    """Looks at statements."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parser: Duck = None
        self._views: frozenset[str] = frozenset()  # of DuckDB's own

    def check(self, query: str, parameters: bytes | None = None) -> Checked:
        """The tables that the statement names; raises where it may not run with these."""
        check_depth(checked_query(query))
        checked, sized = self._looked_at(query, _PARTS)
        for node in sized:
            check_sizes(node)
        check_growth(sized, parameter_bytes=max(0, len(parameters or b"") - _BARE_PARAMETERS_BYTES))
        return checked

    def check_translated(self, query: str) -> Checked:
        """The same for SQL that a translation made, which has bounded the sizes in it by itself."""
        checked, _ = self._looked_at(query, _PARTS | _PARTS_OF_TRANSLATIONS)
        return checked

    def close(self) -> None:
        """Let go of DuckDB."""
        with self._lock:
            if self._parser is not None:
                self._parser.close()
                self._parser = None

    def _looked_at(self, query: str, parts: frozenset[str]) -> tuple[Checked, list[dict[str, Any]]]:
        found = _looked_at(self._tree(query), parts)
        # Where its clause is not in force, the name means the view.
        for name in sorted(found[0].own_names & self._views):
            raise _refused(
                f"{name!r} cannot be the name of a WITH clause: DuckDB has a view of it", "rename it"
            )
        return found

    def _tree(self, query: str) -> Any:  # Any: JSON
        with self._lock:
            if self._parser is None:
                self._parser = open_session(SqlOptions(memory_limit=_PARSER_BYTES, threads=1))
                self._parser.execute("set enable_external_access = false")
                self._parser.execute("set lock_configuration = true")
                self._views = frozenset(name for (name,) in self._parser.execute(_VIEWS_OF_DUCKDB).fetchall())
            cursor = self._parser.cursor()
        try:
            ((text,),) = cursor.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
            found = msgspec.json.decode(text)
        except RecursionError:
            raise _refused("the statement is nested too deep", "write it flatter") from None
        except Exception as problem:
            raise _refused(f"the statement cannot be read: {problem}", "mend it") from problem
        finally:
            cursor.close()
        if found["error"]:
            raise _unread(str(found.get("error_message", "")), _place(query, str(found.get("position", ""))))
        if not found["statements"]:
            raise _refused("there is nothing to run", "send one SELECT statement")
        if len(found["statements"]) != 1:
            raise _refused("there is not one statement, but several", "send them one by one")
        return found["statements"][0]


def _looked_at(tree: Any, parts: frozenset[str]) -> tuple[Checked, list[dict[str, Any]]]:  # Any: JSON
    """What a statement names, and the nodes whose values have a size; raises where it does more than read."""
    tables: dict[NamedTable, None] = {}
    own: set[str] = set()
    streamed: set[int] = set()  # table functions: their rows come one after the other
    sized: list[dict[str, Any]] = []
    for node in nodes_of(tree):
        kind = node.get("type")
        if kind == "BASE_TABLE":
            tables[_named(node)] = None
        elif kind == "TABLE_FUNCTION":
            _check_table_function(node)
            streamed.add(id(node["function"]))
        elif "class" not in node and isinstance(kind, str) and kind not in parts:
            raise _not_read(kind)
        if str(node.get("function_name", "")).lower() in _FORBIDDEN_FUNCTIONS:
            raise _refused(f"the function {node['function_name']} is not served", "leave it out")
        if id(node) not in streamed:
            sized.append(node)
        if isinstance(node.get("cte_map"), dict):
            own |= {_own_name(entry["key"]) for entry in node["cte_map"].get("map", [])}
    return Checked(tuple(tables), frozenset(own), tree), sized


def _named(node: dict[str, Any]) -> NamedTable:
    path = (node.get("qualified_name") or {}).get("path", [])
    if node.get("at_clause") is not None:
        raise _refused("AT is not served", "ask for a version with Flight's own commands")
    if len(path) > len(NamedTable.__struct_fields__):
        raise _refused(f"{'.'.join(path)[:200]} is no name of a table", "write catalog.schema.table")
    return NamedTable(node.get("catalog_name", ""), node.get("schema_name", ""), node["table_name"])


def _own_name(name: str) -> str:
    if _FILE_NAME.search(name):
        raise _refused(f"{name[:100]!r} cannot be the name of a WITH clause", "use letters, digits and _")
    return name.lower()


def _check_table_function(node: dict[str, Any]) -> None:
    name = str((node.get("function") or {}).get("function_name", "")).lower()
    if name not in _TABLE_FUNCTIONS:
        raise _refused(
            f"the table function {name[:100]!r} is not served",
            f"read served tables; there are also {', '.join(sorted(_TABLE_FUNCTIONS))}",
        )


def _not_read(kind: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{kind} is not served: statements read tables, and nothing else",
        "SQL",
        "send a SELECT; tables and columns are listed by the driver",
    )


def _unread(message: str, where: str) -> InvalidRequestError | UnsupportedTableError:
    if message.startswith(_NOT_SELECT):
        return UnsupportedTableError(
            "only SELECT is served: tables are read only here (PIVOT is a statement of its own, too)",
            "SQL",
            "send one SELECT statement",
        )
    what, fix = f"the SQL does not parse: {message}", "mend the statement; it is DuckDB's SQL"
    return InvalidRequestError(what, where, fix)


def _place(query: str, position: str) -> str:
    """Where DuckDB's parser stopped, as `engines/sql_errors.py` tells places; it counts bytes."""
    if not (position.isascii() and position.isdecimal()):
        return "SQL"
    offset = len(query.encode()[: int(position)].decode(errors="ignore"))
    line, column = place_of(query, offset)
    lines = query.splitlines()
    shown = lines[line - 1][:_SHOWN_CHARS] if line <= len(lines) else ""
    return f"SQL, line {line}, column {column}: {shown}"


def _refused(what: str, fix: str) -> InvalidRequestError:
    return InvalidRequestError(what, "SQL", fix)
