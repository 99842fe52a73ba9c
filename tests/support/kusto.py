"""Kusto's HTTP interface spoken by hand, for what its clients do not show."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.support.serving import RunningServer

QUERY, QUERY_V1, MGMT = "/v2/rest/query", "/v1/rest/query", "/v1/rest/mgmt"
# The seeds' three, as they stand there.
SEEDS = [
    "external_table('TelemetryDelta')\n| where _event_hour >= '2026021022'\n"
    "| where device_id == 'sensor-42'\n| take 100",
    "external_table('TelemetryDelta')\n| take 100",
    "external_table('TelemetryDelta')\n| where _event_hour between ('2026021000' .. '2026021023')\n"
    "| summarize avg(value) by bin(timestamp, 1h), device_id",
]
SECONDS = 60.0
# Whose end no machine sees; it needs little memory, and can be stopped.
ENDLESS = (
    "range a from 1 to 90000000 step 1 | extend k = 1"
    " | join kind=inner (range b from 1 to 1000000 step 1 | extend k = 1) on k | summarize max(a + b)"
)


def post(
    server: RunningServer,
    text: str,
    *,
    path: str = QUERY,
    db: str = "main",
    options: dict[str, Any] | None = None,
    parameters: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """One request; commands go where commands go."""
    body: dict[str, Any] = {"db": db, "csl": text}
    if options is not None or parameters is not None:
        body["properties"] = {"Options": options or {}, "Parameters": parameters or {}}
    where = MGMT if text.lstrip().startswith(".") else path
    return httpx.post(server.http_url + where, json=body, headers=headers, timeout=SECONDS)


def frames(answer: httpx.Response) -> list[dict[str, Any]]:
    """Of version 2."""
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def primary(answer: httpx.Response) -> dict[str, Any]:
    """The table of the rows."""
    (table,) = [frame for frame in frames(answer) if frame.get("TableKind") == "PrimaryResult"]
    return table


def rows(server: RunningServer, text: str, **how: Any) -> list[Any]:
    """Of a query, or of a command."""
    answer = post(server, text, **how)
    if text.lstrip().startswith("."):
        assert answer.status_code == 200, answer.text
        return list(answer.json()["Tables"][0]["Rows"])
    return list(primary(answer)["Rows"])


def error(answer: httpx.Response) -> dict[str, Any]:
    """Of an answer that is one."""
    assert answer.status_code >= 400, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    found: dict[str, Any] = answer.json()["error"]
    assert {"code", "message", "@type", "@message", "@context", "@permanent"} <= found.keys()
    return found


def payloads(answer: httpx.Response) -> dict[str, Any]:
    """What the completion tells, by the name of the event."""
    (table,) = [one for one in frames(answer) if one.get("TableKind") == "QueryCompletionInformation"]
    return {row[10]: json.loads(row[11]) for row in table["Rows"]}
