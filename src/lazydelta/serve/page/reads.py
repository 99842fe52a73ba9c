"""What a query that is being typed would read of a table: files on the map, row groups of the sidecar.

Contract: nothing of the query runs. The files are those that the same scan would give; row groups are judged
as that scan judges them.
"""

from __future__ import annotations

from lazydelta.predicate import Expression
from lazydelta.scan.row_group_verdicts import RowGroupVerdicts, row_group_verdicts
from lazydelta.serve.calls import Call
from lazydelta.serve.kusto.query_record import QueryRecord
from lazydelta.serve.page.events import event
from lazydelta.serve.page.file_map import FileMap
from lazydelta.serve.page.map_stream import MapStreams, files_command
from lazydelta.serve.page.queries import PageQueries
from lazydelta.serve.page.requests import QueryBody, Question
from lazydelta.serve.page.response import Events
from lazydelta.serve.served import Served

_BINS_MAX = 256


class Reads:
    """Those of one server."""

    def __init__(self, served: Served, maps: MapStreams, queries: PageQueries) -> None:
        self._served = served
        self._maps = maps
        self._queries = queries

    def events(self, question: Question, body: QueryBody, record: QueryRecord, noted: Call) -> Events:
        """`plan`, then the map of the files that would be read, then `end`."""
        filters = self._queries.filters(body, question, record)
        if filters is None or question.table not in filters:
            yield event("plan", {"is_known": filters is not None, "is_read": False})
            return
        condition = filters[question.table]
        version, groups = self._row_groups(question, body.version, condition)
        text = None if condition is None else str(condition)
        yield event("plan", {"is_known": True, "is_read": True, "predicate": text, "row_groups": groups})
        if text is not None:  # otherwise all files may be read, and the page has their map
            command = files_command(question.table, version, text)
            yield from self._maps.scanned(command, question.client, FileMap(), noted)

    def _row_groups(
        self, question: Question, version: int | None, condition: Expression | None
    ) -> tuple[int, RowGroupVerdicts | None]:
        name, client = question.table, question.client
        with self._served.admission.admitted(client, f"row groups of {name}"):
            table = self._served.catalog.open(name, client, version=version)
            scan = table.scan(condition).source.files()
            return table.version, row_group_verdicts(scan, bins_max=_BINS_MAX)
