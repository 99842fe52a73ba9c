"""Random adds of a table that has a column of every type, with statistics as writers leave them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.support import actions
from tests.support.actions import Action

PARTITIONS: dict[str, str] = {"_event_hour": "string", "part_day": "date", "part_no": "integer"}


def cut_to_ms(moment: datetime) -> str:
    """As writers cut timestamps."""
    return moment.isoformat(timespec="milliseconds")


_TEXT = st.text(max_size=6)
_SHORT_FLOAT = st.floats(width=32, allow_nan=False, allow_infinity=False).map(
    lambda number: float(str(np.float32(number)))  # the digits a writer gives a float
)
_WORDS = st.sampled_from(["NaN", "Infinity", "-Infinity"])
BOUNDS: dict[str, st.SearchStrategy[Any]] = {
    "string": _TEXT,
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "short": st.integers(-(1 << 15), 1 << 15),  # one more than fits
    "byte": st.integers(-128, 127),
    "float": _SHORT_FLOAT | _WORDS,
    "double": st.floats(allow_nan=False, allow_infinity=False) | _WORDS,
    "boolean": st.booleans(),
    "date": st.dates().map(str),
    "timestamp": st.datetimes().map(lambda moment: f"{cut_to_ms(moment)}Z"),
    "timestamp_ntz": st.datetimes().map(cut_to_ms),
    "decimal(10,2)": st.integers(-(10**10) + 1, 10**10 - 1).map(lambda cents: cents / 100),
    "decimal(38,18)": st.integers(-(10**15), 10**15),
}


def bounds_of(columns: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """One side's bounds: any column may be missing or null."""
    inside: dict[str, st.SearchStrategy[Any]] = {}
    for name, of in columns.items():
        if isinstance(of, dict):
            inside[name] = bounds_of(of)
        elif isinstance(of, str) and of in BOUNDS:
            inside[name] = BOUNDS[of] | st.none()
    return st.fixed_dictionaries({}, optional=inside)


def null_counts_of(columns: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    counts = st.integers(0, 1 << 60)
    inside = {
        name: null_counts_of(of) if isinstance(of, dict) else counts | st.none()
        for name, of in columns.items()
    }
    return st.fixed_dictionaries({}, optional=inside)


def statistics_of(columns: dict[str, Any]) -> st.SearchStrategy[Any]:
    """A document, a broken one, or none."""
    document = st.fixed_dictionaries(
        {},
        optional={
            "numRecords": st.integers(0, 1 << 62),
            "tightBounds": st.booleans(),
            "minValues": bounds_of(columns),
            "maxValues": bounds_of(columns),
            "nullCount": null_counts_of(columns),
        },
    )
    broken = st.sampled_from(["", "{", "[]", "null", '{"numRecords":1}}', '{"numRecords":1', "{}\n{}"])
    return st.none() | broken | document | document


_PARTITION_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "_event_hour": st.none() | _TEXT,
        "part_day": st.none() | st.dates().map(str) | st.sampled_from(["", "soon", "2026-2-1"]),
        "part_no": st.none() | st.integers(-(1 << 31), (1 << 31) - 1).map(str) | st.sampled_from(["", "x"]),
    },
)
_VECTORS = st.none() | st.builds(
    actions.relative_dv, _TEXT.filter(bool), offset=st.none() | st.integers(0, 9)
)


def adds_of(columns: dict[str, Any], *, max_size: int = 12) -> st.SearchStrategy[list[Action]]:
    """Adds with distinct paths, as the log spells them."""
    one = st.builds(
        _add,
        st.sampled_from(["a b", "a%20b", "ü", "x/y", "file:///else/where", "z"]),
        st.integers(0, 1 << 40),
        _PARTITION_VALUES,
        statistics_of(columns),
        _VECTORS,
        extra=st.fixed_dictionaries(
            {},
            optional={
                "tags": st.dictionaries(_TEXT, st.none() | _TEXT, max_size=2),
                "baseRowId": st.integers(0, 1 << 60),
                "defaultRowCommitVersion": st.integers(0, 100),
                "clusteringProvider": st.just("liquid"),
            },
        ),
    )
    return st.lists(one, max_size=max_size).map(
        lambda adds: [add | {"path": f"{add['path']}{number:03}"} for number, add in enumerate(adds)]
    )


def _add(
    path: str, size: int, partition: dict[str, Any], stats: Any, vector: Any, *, extra: dict[str, Any]
) -> Action:
    return actions.add(
        path,
        size=size,
        partition=partition,
        stats=json.dumps(stats) if isinstance(stats, dict) else stats,
        deletion_vector=vector,
        **extra,
    )
