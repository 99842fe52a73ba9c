"""What the server says of itself to drivers, by the numbers of the protocol.

Contract: what is not known here is left out, as the protocol allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow as pa

from lazydelta.serve.flight_sql.statements import PREPARED_SECONDS
from lazydelta.serve.served import Served

_LIST = pa.list_(pa.field("string_data", pa.string()))
_MAP = pa.map_(pa.int32(), pa.list_(pa.field("$data$", pa.int32())))
# The protocol's order: what a value is tells by its place.
_KINDS: tuple[tuple[str, pa.DataType], ...] = (
    ("string_value", pa.string()),
    ("bool_value", pa.bool_()),
    ("bigint_value", pa.int64()),
    ("int32_bitmask", pa.int32()),
    ("string_list", _LIST),
    ("int32_to_int32_list_map", _MAP),
)
_TEXT, _FLAG, _BIGINT, _INT, _TEXTS = range(5)
INFO = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field(
            "value",
            pa.dense_union([pa.field(name, kind) for name, kind in _KINDS], list(range(len(_KINDS)))),
            nullable=False,
        ),
    ]
)
_ALL_SUBQUERIES, _BOTH = 15, 3
_KEYWORDS = ["ANTI", "ASOF", "EXCLUDE", "POSITIONAL", "QUALIFY", "REPLACE", "SEMI", "SUMMARIZE"]
_NUMERIC = ["abs", "ceil", "exp", "floor", "ln", "log10", "pi", "pow", "round", "sign", "sqrt", "trunc"]
_TEXTUAL = ["chr", "concat", "left", "length", "lower", "replace", "right", "substring", "trim", "upper"]
_OF_TIME = ["current_date", "date_diff", "date_part", "date_trunc", "extract", "now", "strftime"]


def sql_info(served: Served, wanted: Iterable[int]) -> pa.Table:
    """The facts that are wanted; all of them where none is named."""
    facts = _facts(served)
    numbers = sorted(set(wanted) & set(facts)) or (sorted(facts) if not list(wanted) else [])
    return pa.table(
        [pa.array(numbers, pa.uint32()), _union([facts[number] for number in numbers])], schema=INFO
    )


def _union(values: list[tuple[int, Any]]) -> pa.UnionArray:  # Any: as the kind has it
    columns: list[list[Any]] = [[] for _ in _KINDS]
    offsets = []
    for kind, value in values:
        offsets.append(len(columns[kind]))
        columns[kind].append(value)
    return pa.UnionArray.from_dense(
        pa.array([kind for kind, _ in values], pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(column, kind) for column, (_, kind) in zip(columns, _KINDS, strict=True)],
        [name for name, _ in _KINDS],
        list(range(len(_KINDS))),
    )


def _facts(served: Served) -> Mapping[int, tuple[int, Any]]:
    return {
        0: (_TEXT, "lazydelta"),
        1: (_TEXT, _version("lazydelta")),
        2: (_TEXT, pa.__version__),
        3: (_FLAG, True),  # read only
        4: (_FLAG, True),  # SQL
        5: (_FLAG, False),  # Substrait
        8: (_INT, 0),  # transactions: none
        9: (_FLAG, True),  # a statement can be cancelled
        100: (_INT, int(PREPARED_SECONDS * 1000)),
        101: (_INT, 0),
        500: (_FLAG, False),  # catalogs, schemas and tables cannot be made
        501: (_FLAG, False),
        502: (_FLAG, False),
        503: (_INT, 1),  # cases do not matter
        504: (_TEXT, '"'),
        505: (_INT, 1),
        506: (_FLAG, True),  # every table that is listed can be read
        507: (_INT, 3),  # nulls come last
        508: (_TEXTS, _KEYWORDS),
        509: (_TEXTS, _NUMERIC),
        510: (_TEXTS, _TEXTUAL),
        511: (_TEXTS, []),
        512: (_TEXTS, _OF_TIME),
        513: (_TEXT, "\\"),
        514: (_TEXT, ""),
        515: (_FLAG, True),  # columns may be given other names, and tables
        516: (_FLAG, True),
        518: (_FLAG, True),
        519: (_FLAG, False),
        520: (_FLAG, True),  # ORDER BY takes expressions, and columns that are not selected
        521: (_FLAG, True),
        522: (_INT, _BOTH),
        523: (_FLAG, True),
        524: (_FLAG, True),
        525: (_INT, 7),
        526: (_INT, 1),
        527: (_FLAG, False),
        528: (_INT, 2),  # outer joins, all of them
        529: (_TEXT, "schema"),
        530: (_TEXT, ""),
        531: (_TEXT, "catalog"),
        532: (_FLAG, True),  # a name begins with its catalog
        533: (_INT, 0),
        534: (_INT, 0),
        535: (_INT, 0),
        536: (_FLAG, False),  # SELECT FOR UPDATE
        537: (_FLAG, False),  # stored procedures
        538: (_INT, _ALL_SUBQUERIES),
        539: (_FLAG, True),  # subqueries may refer to what is around them
        540: (_INT, _BOTH),  # UNION and UNION ALL
        557: (_BIGINT, served.admission.limits.request_bytes),
        562: (_INT, 0),  # transactions: none
        563: (_FLAG, False),
        564: (_INT, 1),
        565: (_FLAG, False),
        566: (_FLAG, False),
        567: (_INT, 2),  # results are read forwards
        568: (_INT, 0),
        569: (_INT, 2),
        570: (_INT, 0),
        571: (_INT, 0),
        572: (_FLAG, False),
        573: (_FLAG, False),
        574: (_FLAG, False),
        575: (_FLAG, False),
        576: (_FLAG, False),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "0"
