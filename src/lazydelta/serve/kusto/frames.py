"""A result as text: the frames of version 2 of the protocol, whole or in fragments, or version 1's tables.

Contract: a writer is asked in order: `begin`, `rows` any number of times, `end`; each gives the next bytes.
What went wrong after `begin` is told by `end`, in the places where clients look: after the rows, in the
completion, and at the end. Each frame of version 2 is on a line of its own.
Spec: Kusto, "Query V2 HTTP response", "Query/management HTTP response".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from lazydelta.engines.kql.columns import KqlColumn
from lazydelta.engines.kql.statements import NO_VISUALIZATION
from lazydelta.serve.kusto.completion import Ending, completion_v1, completion_v2
from lazydelta.serve.kusto.faults import error_body
from lazydelta.serve.kusto.requests import Asked, Settings
from lazydelta.serve.kusto.tables import SmallTable, columns, columns_v1, columns_v2

Visualization = Mapping[str, Any]  # Any: text and numbers
_PRIMARY = 1
_PROPERTIES = columns(TableId="int", Key="string", Value="dynamic")
_CONTENTS = columns(Ordinal="long", Kind="string", Name="string", Id="string", PrettyName="string")


class Writer(Protocol):
    """One result under way."""

    def begin(self, found: Sequence[KqlColumn], visualization: Visualization | None) -> bytes:
        """What stands before the rows."""

    def rows(self, texts: bytes) -> bytes:
        """Some rows, by commas."""

    def end(self, ending: Ending) -> bytes:
        """What stands after them."""


def writer_v2(asked: Asked, settings: Settings) -> Writer:
    """As the options ask for it."""
    if settings.is_progressive or settings.is_fragmented:
        return _Fragments(asked, settings)
    return _Frames(asked, settings)


def writer_v1(asked: Asked, settings: Settings) -> Writer:
    """Of version 1."""
    return _Tables(asked, settings)


def small_answer(table: SmallTable) -> bytes:
    """The answer to a command."""
    return msgspec.json.encode({"Tables": [_table_v1("Table_0", table)]})


class _Frames:
    """Each table in one frame."""

    is_progressive = is_fragmented = False

    def __init__(self, asked: Asked, settings: Settings) -> None:
        self._asked = asked
        self._settings = settings
        self._has_rows = False
        self._columns: Sequence[KqlColumn] = ()

    def begin(self, found: Sequence[KqlColumn], visualization: Visualization | None) -> bytes:
        self._columns = found
        header = {
            "FrameType": "DataSetHeader",
            "IsProgressive": self.is_progressive,
            "Version": "v2.0",
            "IsFragmented": self.is_fragmented,
            "ErrorReportingPlacement": "EndOfTable" if self.is_fragmented else "InData",
        }
        shown = msgspec.json.encode(_visualization(visualization)).decode()
        properties = SmallTable(_PROPERTIES, [[_PRIMARY, "Visualization", shown]])
        frames = [header, _frame(0, "QueryProperties", "@ExtendedProperties", properties)]
        return b"[" + b"\n,".join(map(msgspec.json.encode, frames)) + b"\n," + self._opened()

    def rows(self, texts: bytes) -> bytes:
        before, self._has_rows = b"," if self._has_rows else b"", True
        return before + texts

    def end(self, ending: Ending) -> bytes:
        errors = _errors(self._asked, ending)
        done: dict[str, Any] = {
            "FrameType": "DataSetCompletion",
            "HasErrors": bool(errors),
            "Cancelled": ending.fault is not None and ending.fault.is_cancelled,
        }
        if errors:
            done["OneApiErrors"] = errors
        completion = completion_v2(self._asked, ending)
        information = _frame(2, "QueryCompletionInformation", "QueryCompletionInformation", completion)
        frames = [self._closed(ending, errors), *map(msgspec.json.encode, [information, done])]
        return b"\n,".join(frames) + b"\n]"

    def _opened(self) -> bytes:
        head = {
            "FrameType": "DataTable",
            "TableId": _PRIMARY,
            "TableKind": "PrimaryResult",
            "TableName": "PrimaryResult",
            "Columns": columns_v2(self._columns),
        }
        return msgspec.json.encode(head).removesuffix(b"}") + b',"Rows":['

    def _closed(self, ending: Ending, errors: list[Any]) -> bytes:  # Any: JSON
        del ending
        last = b""
        if errors and not self._settings.errors_are_deferred:
            last = self.rows(msgspec.json.encode({"OneApiErrors": errors}))
        return last + b"]}"


class _Fragments(_Frames):
    """The rows in a frame for each batch."""

    def __init__(self, asked: Asked, settings: Settings) -> None:
        super().__init__(asked, settings)
        self.is_progressive = settings.is_progressive
        self.is_fragmented = not settings.is_progressive

    def rows(self, texts: bytes) -> bytes:
        head = {
            "FrameType": "TableFragment",
            "TableFragmentType": "DataAppend",
            "TableId": _PRIMARY,
            "FieldCount": len(self._columns),
        }
        return msgspec.json.encode(head).removesuffix(b"}") + b',"Rows":[' + texts + b"]}\n,"

    def _opened(self) -> bytes:
        head = {
            "FrameType": "TableHeader",
            "TableId": _PRIMARY,
            "TableKind": "PrimaryResult",
            "TableName": "PrimaryResult",
            "Columns": columns_v2(self._columns),
        }
        return msgspec.json.encode(head) + b"\n,"

    def _closed(self, ending: Ending, errors: list[Any]) -> bytes:
        completion: dict[str, Any] = {
            "FrameType": "TableCompletion",
            "TableId": _PRIMARY,
            "RowCount": ending.rows,
        }
        if errors:
            completion["OneApiErrors"] = errors
        progress = {"FrameType": "TableProgress", "TableId": _PRIMARY, "TableProgress": 100.0}
        frames = [progress, completion] if self.is_progressive and not errors else [completion]
        return b"\n,".join(map(msgspec.json.encode, frames))


class _Tables:
    """Version 1: the rows first, then what is told of them, and the list of all tables last."""

    def __init__(self, asked: Asked, settings: Settings) -> None:
        self._asked = asked
        self._settings = settings
        self._has_rows = False
        self._visualization: Visualization | None = None

    def begin(self, found: Sequence[KqlColumn], visualization: Visualization | None) -> bytes:
        self._visualization = visualization
        told = msgspec.json.encode(columns_v1(found))
        return b'{"Tables":[{"TableName":"Table_0","Columns":' + told + b',"Rows":['

    def rows(self, texts: bytes) -> bytes:
        before, self._has_rows = b"," if self._has_rows else b"", True
        return before + texts

    def end(self, ending: Ending) -> bytes:
        errors, last, exceptions = _errors(self._asked, ending), b"", b""
        if ending.fault is not None:
            told = {"Exceptions": [ending.fault.text], "OneApiErrors": errors}
            if not self._settings.errors_are_deferred:
                last = self.rows(msgspec.json.encode(told))
            exceptions = b',"Exceptions":' + msgspec.json.encode([ending.fault.text])
        shown = msgspec.json.encode(_visualization(self._visualization)).decode()
        properties = SmallTable(columns(Value="string"), [[shown]])
        ids = [self._asked.activity_id] * 3
        kinds = [
            ("QueryResult", "PrimaryResult"),
            ("QueryProperties", "@ExtendedProperties"),
            ("QueryStatus", "QueryStatus"),
        ]
        contents = [
            [at, kind, name, id_, ""] for at, ((kind, name), id_) in enumerate(zip(kinds, ids, strict=True))
        ]
        tables = [
            _table_v1("Table_1", properties),
            _table_v1("Table_2", completion_v1(self._asked, ending)),
            _table_v1("Table_3", SmallTable(_CONTENTS, contents)),
        ]
        return last + b"]}," + b",".join(map(msgspec.json.encode, tables)) + b"]" + exceptions + b"}"


def _errors(asked: Asked, ending: Ending) -> list[Any]:  # Any: JSON
    return [] if ending.fault is None else [error_body(ending.fault, asked)]


def _frame(table_id: int, kind: str, name: str, table: SmallTable) -> dict[str, Any]:
    return {
        "FrameType": "DataTable",
        "TableId": table_id,
        "TableKind": kind,
        "TableName": name,
        "Columns": columns_v2(table.columns),
        "Rows": table.rows,
    }


def _table_v1(name: str, table: SmallTable) -> dict[str, Any]:
    return {"TableName": name, "Columns": columns_v1(table.columns), "Rows": table.rows}


def _visualization(given: Visualization | None) -> dict[str, Any]:
    return {**NO_VISUALIZATION, **(given or {})}
