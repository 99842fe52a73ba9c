"""The web page's questions asked by hand, and a table for it that looks like something."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.serving import RunningServer

SECONDS = 60.0
# Checkpoints come where they are asked for, of commits that are dated already, and clean up none of them.
_SETTINGS = {"delta.checkpointInterval": "1000000", "delta.enableExpiredLogCleanup": "false"}
Event = tuple[str, Any]


def get(server: RunningServer, path: str, **headers: str) -> httpx.Response:
    """A question without a body."""
    return httpx.get(f"{server.http_url}/ui/api/{path}", headers=headers, timeout=SECONDS)


def post(
    server: RunningServer, path: str, headers: dict[str, str] | None = None, **body: Any
) -> httpx.Response:
    """A question with one."""
    return httpx.post(f"{server.http_url}/ui/api/{path}", json=body, headers=headers, timeout=SECONDS)


def events(answer: httpx.Response) -> list[Event]:
    """What an answer tells bit by bit."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("\n\n")
    return [_event(block) for block in answer.text.split("\n\n") if block and not block.startswith(":")]


def value_of(found: list[Event], name: str) -> Any:
    """Of the one event of that name."""
    (value,) = [value for one, value in found if one == name]
    return value


def query(server: RunningServer, language: str, text: str) -> tuple[list[str], list[Any], dict[str, Any]]:
    """Names of the columns, rows, and the end."""
    found = events(post(server, "query", language=language, text=text))
    rows = [row for name, value in found if name == "rows" for row in value]
    columns = [column["name"] for column in value_of(found, "columns")["columns"]]
    return columns, rows, value_of(found, "end")


def cells(found: list[Event]) -> dict[tuple[int, int], tuple[int, int]]:
    """The map that the events tell, as the page puts it together."""
    known: dict[tuple[int, int], tuple[int, int]] = {}
    for name, value in found:
        if name == "map":
            known = {} if value["is_whole"] else known
            known |= {(at, size): (files, total) for at, size, files, total in value["cells"]}
    return known


def error(answer: httpx.Response) -> dict[str, Any]:
    """What is wrong."""
    found: dict[str, Any] = answer.json()["error"]
    return found


def machines_table(folder: Path, *, days: int = 6, name: str = "machines") -> str:
    """Measurements, a file for each two hours, written when they ended; a sidecar before the last day."""
    url = str(folder / name)
    first = dt.datetime(2026, 2, 4, tzinfo=dt.UTC)
    for number in range(12 * days):
        began = first + dt.timedelta(hours=2 * number)
        write_deltalake(
            url,
            _measured(began, number),
            mode="append",
            partition_by=["_event_hour"],
            configuration=None if number else _SETTINGS,
        )
        _date(Path(url), number, began + dt.timedelta(hours=2))
        if number == 12 * (days - 1) - 1:
            DeltaTable(url).create_checkpoint()
            build_sidecar(open_storage(url, Settings()), config=SidecarConfig(row_group_rows=2))
    return url


def _measured(began: dt.datetime, number: int) -> pa.Table:
    """Rows of two hours."""
    rows = 40 + 37 * (number * number % 23)
    moments = [began + dt.timedelta(seconds=7200 * at / rows) for at in range(rows)]
    warmth = [(began.hour + 2 * at / rows - 12) ** 2 / 20 for at in range(rows)]
    return pa.table(
        {
            "machine": [f"press-{at % 5}" for at in range(rows)],
            "celsius": [60 + 5 * (at % 5) - warmth[at] + (at % 9) / 3 for at in range(rows)],
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "_event_hour": [f"{began:%Y%m%d%H}"] * rows,
        }
    )


def _date(table: Path, version: int, moment: dt.datetime) -> None:
    """Have the commit and its file look as if they had been written then."""
    path, at = table / "_delta_log" / f"{version:020d}.json", int(moment.timestamp() * 1000)
    text = path.read_text("utf-8")
    path.write_text(re.sub(r'("(?:modificationTime|timestamp)":)\d+', rf"\g<1>{at}", text), "utf-8")
    os.utime(path, (at / 1000, at / 1000))


def _event(block: str) -> Event:
    lines = block.split("\n")
    assert len(lines) == 2, block
    return lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))
