"""How a query ended, as both versions of the protocol tell it after the rows.

Contract: a query that failed has a line of level 2, which clients raise as an error; statistics and what
`query_explain` asks for have levels that they pass over.
Spec: Kusto, "The meaning of tables in the response".
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from lazydelta.engines.kql.report import KqlReport
from lazydelta.serve.kusto.faults import Fault
from lazydelta.serve.kusto.requests import Asked
from lazydelta.serve.kusto.tables import Row, SmallTable, columns

_ERROR, _INFO, _STATS = (2, "Error"), (4, "Info"), (6, "Stats")
_OF_QUERY, _OF_USE, _OF_EXPLAIN = (4, "QueryInfo"), (5, "QueryResourceConsumption"), (1000, "QueryExplain")
_OK = (0, "S_OK (0)")
_V2 = columns(
    Timestamp="datetime",
    ClientRequestId="string",
    ActivityId="guid",
    SubActivityId="guid",
    ParentActivityId="guid",
    Level="int",
    LevelName="string",
    StatusCode="int",
    StatusCodeName="string",
    EventType="int",
    EventTypeName="string",
    Payload="string",
)
_V1 = columns(
    Timestamp="datetime",
    Severity="int",
    SeverityName="string",
    StatusCode="int",
    StatusDescription="string",
    Count="int",
    RequestId="guid",
    ActivityId="guid",
    SubActivityId="guid",
    ClientActivityId="string",
)


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a query."""

    rows: int
    text_bytes: int
    seconds: float
    fault: Fault | None = None
    explained: dict[str, Any] | None = None  # Any: as JSON has it
    report: KqlReport | None = None  # what it did, for who does not speak Kusto's protocol


class _Event(msgspec.Struct, frozen=True):
    level: tuple[int, str]
    status: tuple[int, str]
    kind: tuple[int, str]
    payload: str


def completion_v2(asked: Asked, ending: Ending) -> SmallTable:
    """`QueryCompletionInformation`."""
    now, ids = _now(), [asked.activity_id] * 3
    rows: list[Row] = [
        [now, asked.request_id, *ids, *event.level, *event.status, *event.kind, event.payload]
        for event in _events(ending)
    ]
    return SmallTable(_V2, rows)


def completion_v1(asked: Asked, ending: Ending) -> SmallTable:
    """`QueryStatus`."""
    now, ids = _now(), [asked.activity_id] * 3
    rows: list[Row] = [
        [now, *event.level, event.status[0], event.payload, 1, *ids, asked.request_id]
        for event in _events(ending)
    ]
    return SmallTable(_V1, rows)


def _events(ending: Ending) -> list[_Event]:
    fault = ending.fault
    found = [
        _Event(_INFO, _OK, _OF_QUERY, _told({"Count": 1, "Text": "Query completed successfully"}))
        if fault is None
        else _Event(
            _ERROR, (fault.status_code, fault.name), _OF_QUERY, _told({"Count": 1, "Text": fault.text})
        ),
        _Event(_STATS, _OK, _OF_USE, _told(_use(ending))),
    ]
    if ending.explained is not None:
        found.append(_Event(_STATS, _OK, _OF_EXPLAIN, _told(ending.explained)))
    return found


def _use(ending: Ending) -> dict[str, Any]:
    return {
        "ExecutionTime": ending.seconds,
        "dataset_statistics": [{"table_row_count": ending.rows, "table_size": ending.text_bytes}],
    }


def _told(payload: dict[str, Any]) -> str:
    return msgspec.json.encode(payload).decode()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
