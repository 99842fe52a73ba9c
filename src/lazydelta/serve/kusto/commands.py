"""Management commands: those that read are answered, those that would write are refused by name.

Contract: a command is known by its words, whatever their cases. What follows a `|` is a query over the rows
of the command (`piped_text`).
Spec: Kusto, "Management commands overview".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version as installed_version

import msgspec

from lazydelta.engines.kql.tokens import tokens
from lazydelta.errors import InvalidRequestError
from lazydelta.serve.kusto.query_log import QueryLog
from lazydelta.serve.kusto.query_record import RUNNING, QueryRecord
from lazydelta.serve.kusto.refusals import CommandRefusedError
from lazydelta.serve.kusto.requests import Asked
from lazydelta.serve.kusto.schema_tables import SchemaTables
from lazydelta.serve.kusto.seen import SeenTables, found_database
from lazydelta.serve.kusto.tables import SmallTable, columns
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client

_NAME = (
    r"""(?:\[\s*(?:'(?P<name1>[^']+)'|"(?P<name2>[^"]+)")\s*\]"""
    r"""|'(?P<name3>[^']+)'|"(?P<name4>[^"]+)"|(?P<name5>[\w\-]+))"""
)
_REASON = r"""(?: with \(\s*reason\s*=\s*(?:'(?P<r1>[^']*)'|"(?P<r2>[^"]*)")\s*\))?"""
_READS = frozenset({"show", "cancel"})
_WORD = re.compile(r"\.\s*(\w[\w\-]*)((?:\s+[a-z][\w\-]*){0,2})", re.IGNORECASE)
_OF_QUERIES = re.compile(r"\.\s*(?:cancel|show\s+(?:running\s+)?queries|show\s+version)\b", re.IGNORECASE)
_BEGAN_AT = datetime.now(UTC)
KNOWN = (
    ".show databases, .show database [NAME] schema [as json], .show schema [as json], .show tables,"
    " .show external tables, .show external table NAME, .show [external] table NAME schema [as json|csl],"
    " .show table NAME cslschema, .show functions, .show function NAME,"
    " .show queries, .show running queries, .show version, .show cluster, .cancel query 'ID'"
)


class Split(msgspec.Struct, frozen=True):
    """A command, and the query over its rows."""

    command: str
    query: str  # empty: none


def split(text: str) -> Split:
    """At the first `|` that stands in no text."""
    at = next((word.at for word in tokens(text) if word.text == "|"), None)
    if at is None:
        return Split(text.strip().rstrip(";").strip(), "")
    return Split(text[:at].strip(), text[at + 1 :].strip())


def is_at_once(command: str) -> bool:
    """Whether it is about queries that run, and opens no table."""
    return _OF_QUERIES.match(command) is not None


class Commands:
    """Answers them."""

    def __init__(self, served: Served, log: QueryLog) -> None:
        self._served = served
        self._log = log
        self._known: list[tuple[re.Pattern[str], Callable[[_Call], SmallTable]]] = [
            (_pattern(words), act)
            for words, act in (
                (r"show databases(?: details)?", lambda call: call.lists.databases()),
                (r"show version", lambda _: _version()),
                (r"show cluster", lambda _: _cluster()),
                (r"show tables(?: details)?", lambda call: call.lists.tables(call.database)),
                (
                    r"show external tables(?: details)?",
                    lambda call: call.lists.external_tables(call.database),
                ),
                (r"show external table {name}", lambda call: call.lists.external_tables(None, call["name"])),
                (
                    r"show (?:external )?table {name} (?:schema(?: as (?P<form>json|csl))?|cslschema)",
                    lambda call: call.lists.table_schema(
                        call["name"], "json" if call.found["form"] == "json" else "csl"
                    ),
                ),
                (
                    r"show (?:database(?:s)?(?: \(?{name}\)?)? )?schema(?: as csl)?",
                    lambda call: call.lists.database_schema(call["name"] or call.database),
                ),
                (
                    r"show (?:database(?:s)?(?: \(?{name}\)?)? )?schema(?: if_later_than \S+)? as json",
                    lambda call: call.lists.schema_json([call["name"] or call.database]),
                ),
                (r"show functions", lambda call: call.lists.functions()),
                (r"show function {name}", lambda call: call.lists.functions(call["name"])),
                (r"show queries", lambda call: self._queries(call.client, only_running=False)),
                (r"show running queries", lambda call: self._queries(call.client, only_running=True)),
                (
                    r"cancel query {name}" + _REASON,
                    self._cancel,
                ),
            )
        ]

    def run(self, command: str, asked: Asked, client: Client) -> SmallTable:
        """The rows of a command."""
        _check_reads(command)
        plain = " ".join(command.removeprefix(".").split())
        for pattern, act in self._known:
            if found := pattern.fullmatch(plain):
                tables = SeenTables(self._served, client)
                database = found_database(asked.database, tables)
                lists = SchemaTables(self._served, tables)
                return act(_Call(found=found, lists=lists, client=client, database=database))
        raise InvalidRequestError(f"the command is not known: {command[:200]}", "csl", f"there are: {KNOWN}")

    def _queries(self, client: Client, *, only_running: bool) -> SmallTable:
        found = columns(
            ClientActivityId="string",
            Text="string",
            Database="string",
            StartedOn="datetime",
            LastUpdatedOn="datetime",
            Duration="timespan",
            State="string",
            RootActivityId="guid",
            User="string",
            FailureReason="string",
            Application="string",
            Principal="string",
            ResultSetStatistics="dynamic",
        )
        shown = self._log.records(client=client, sees_all=self._sees_all(client))
        rows = [_query_row(one) for one in shown if not only_running or one.state == RUNNING]
        return SmallTable(found, rows)

    def _cancel(self, call: _Call) -> SmallTable:
        wanted = call["name"] or ""
        reason = call.found["r1"] or call.found["r2"] or "its client cancelled it"
        seen = self._log.records(client=call.client, sees_all=self._sees_all(call.client))
        running = [one for one in seen if one.state == RUNNING and one.asked.request_id == wanted]
        for one in running:
            one.cancel(reason)
        found = columns(RunningQueryCanceled="bool", ClientRequestId="string", ReasonPhrase="string")
        told = "" if running else "no such query runs"
        return SmallTable(found, [[bool(running), wanted, told]])

    def _sees_all(self, client: Client) -> bool:
        admins = self._served.config.server.query_admins
        return bool(admins) and client.may_read(frozenset(admins))


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    """One command with what it was asked by."""

    found: re.Match[str]
    lists: SchemaTables
    client: Client
    database: str | None

    def __getitem__(self, name: str) -> str:
        """A name in it; empty: none."""
        groups = self.found.groupdict()
        return next((groups[f"{name}{at}"] for at in range(1, 6) if groups.get(f"{name}{at}")), "")


def piped_text(table: SmallTable, query: str) -> str:
    """A query over the rows of a command."""
    shape = ", ".join(f"['{one.name}']:{one.type}" for one in table.columns)
    kinds = [one.type for one in table.columns]
    cells = [_literal(value, kind) for row in table.rows for value, kind in zip(row, kinds, strict=True)]
    return f"datatable({shape})[{', '.join(cells)}]\n| {query}"


def _literal(value: object, kind: str) -> str:
    if kind == "string":
        return msgspec.json.encode(value or "").decode()
    if value is None:
        return f"{kind}(null)"
    if kind == "bool":
        return str(value).lower()
    told = msgspec.json.encode(value).decode() if kind == "dynamic" else value
    return f"{kind}({told})"


def _check_reads(command: str) -> None:
    found = _WORD.match(command)
    if found is None:
        raise InvalidRequestError(f"that is no command: {command[:200]}", "csl", f"there are: {KNOWN}")
    if found[1].lower() not in _READS:
        name = " ".join((found[1] + found[2]).split())
        raise CommandRefusedError(
            f"the command .{name[:100]} is refused: tables are read only here", "csl", f"there are: {KNOWN}"
        )


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(words.replace("{name}", _NAME), re.IGNORECASE)


def _query_row(one: QueryRecord) -> list[object]:
    ended = one.ended_at
    seconds = max(0.0, (ended or datetime.now(UTC).timestamp()) - one.began_at)
    statistics = {"TableCount": 1, "TablesStatistics": [{"RowCount": one.rows, "TableSize": one.text_bytes}]}
    return [
        one.asked.request_id,
        one.text,
        one.asked.database,
        _moment(one.began_at),
        _moment(ended or datetime.now(UTC).timestamp()),
        _timespan(seconds),
        one.state,
        one.asked.activity_id,
        one.client,  # who signed in; what the request says of itself proves nothing
        one.reason,
        one.asked.application,
        one.client,
        statistics,
    ]


def _version() -> SmallTable:
    found = columns(
        BuildVersion="string",
        BuildTime="datetime",
        ServiceType="string",
        ProductVersion="string",
        ServiceOffering="string",
    )
    version = installed_version("lazydelta")
    began = _moment(_BEGAN_AT.timestamp())
    return SmallTable(found, [[version, began, "Engine", f"lazydelta {version}", "lazydelta"]])


def _cluster() -> SmallTable:
    found = columns(NodeId="string", Address="string", Name="string", StartTime="datetime", IsAdmin="bool")
    return SmallTable(found, [["lazydelta", "", "lazydelta", _moment(_BEGAN_AT.timestamp()), True]])


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def _timespan(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours // 24}.{hours % 24:02}:{minutes:02}:{rest:09.6f}0"
