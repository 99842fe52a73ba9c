"""What the footers of files tell of whether DuckDB reads their rows as we do.

Why: DuckDB does not know that dates may be in Spark's legacy calendar, takes the greatest of half floats for
NaN by their statistics, and has nothing against nulls where the table says NOT NULL.
Contract: nothing but footers is read. What a footer does not tell is taken for the worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lazydelta.engines.session import Duck, text_literal
from lazydelta.rows.legacy_calendar import DATE_TIME, INT96, VERSION, legacy_calendar


def path_list(paths: Sequence[str]) -> str:
    """The files as SQL has a list."""
    return f"[{', '.join(map(text_literal, paths))}]"


def schema_digests(session: Duck, paths: Sequence[str]) -> dict[str, str]:
    """For each file a digest of its schema."""
    rows = f"select *, row_number() over () as place from parquet_schema({path_list(paths)})"
    found = session.execute(
        "select file_name, md5(cast(list((name, type, type_length, repetition_type, num_children, "
        "converted_type, scale, precision, logical_type, duckdb_type) order by place) as varchar)) "
        f"from ({rows}) group by file_name"
    ).fetchall()
    return dict(found)


def unfit_files(
    session: Duck, paths: Sequence[str], stored: Mapping[str, str], required: Sequence[str]
) -> frozenset[str]:
    """The files that stay with us. `stored`: columns that are needed; `required`: those that are NOT NULL."""
    return (
        _legacy(session, paths, stored)
        | _half_floats(session, paths, stored)
        | _perhaps_null(session, paths, required)
    )


def _half_floats(session: Duck, paths: Sequence[str], stored: Mapping[str, str]) -> frozenset[str]:
    """The files that have numbers of half the size, where the table has floats."""
    if not any("FLOAT" in kind for kind in stored.values()):
        return frozenset()
    return _named(session, f"parquet_schema({path_list(paths)})", "contains(lower(logical_type), 'float16')")


def _perhaps_null(session: Duck, paths: Sequence[str], required: Sequence[str]) -> frozenset[str]:
    """The files whose statistics do not rule out nulls in these columns; of nested ones they never do."""
    if not required:
        return frozenset()
    names = ", ".join(map(text_literal, required))
    counted = (
        f"select file_name from parquet_metadata({path_list(paths)}) where path_in_schema in ({names}) "
        f"group by file_name having count(distinct path_in_schema) = {len(required)} "
        "and count(*) = count(stats_null_count) and max(stats_null_count) = 0"
    )
    sure = {name for (name,) in session.execute(counted).fetchall()}
    return frozenset(paths) - sure


def _named(session: Duck, what: str, condition: str) -> frozenset[str]:
    found = session.execute(f"select distinct file_name from {what} where {condition}").fetchall()
    return frozenset(name for (name,) in found)


def _legacy(session: Duck, paths: Sequence[str], stored: Mapping[str, str]) -> frozenset[str]:
    """The files whose dates or times, of the columns that are needed, may be in Spark's legacy calendar."""
    has_times = any("TIME ZONE" in kind for kind in stored.values())
    if not has_times and not any("DATE" in kind for kind in stored.values()):
        return frozenset()
    keys = ", ".join(f"{text_literal(key.decode())}::blob" for key in (VERSION, DATE_TIME, INT96))
    footers: dict[str, dict[bytes, bytes]] = {}
    for name, key, value in session.execute(
        f"select file_name, key, value from parquet_kv_metadata({path_list(paths)}) where key in ({keys})"
    ).fetchall():
        footers.setdefault(name, {})[key] = value
    calendars = {name: legacy_calendar(footer) for name, footer in footers.items()}
    return frozenset(
        name
        for name, calendar in calendars.items()
        if calendar is not None and (calendar.has_dates or (has_times and calendar.has_int96))
    )
