"""The sections of `serve.toml` as they stand in the file, each key with its default.

Contract: plain values; what they mean together is checked by `config.py`. docs/serve.md lists every key.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lazydelta import limits

DEFAULT_SHARE, DEFAULT_SCHEMA = "lazydelta", "main"


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a value stands that the file does not hold: one of the two."""

    env: str | None = None
    file: str | None = None


Value = str | int | float | bool | Reference
WhoLinks = Literal["server", "store"]


class ServerPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`."""

    host: str = "127.0.0.1"
    flight_port: int | None = None  # None: not served; 0: a free one
    http_port: int | None = None
    public_url: str = ""  # of HTTP as clients reach it; empty: by host and port
    unready_seconds: float = 0.0  # between "not ready" and the first request that is turned away, at the end
    drain_seconds: float = limits.SERVE_DRAIN_SECONDS
    ticket_seconds: float = limits.SERVE_TICKET_SECONDS
    file_links: WhoLinks = "server"  # who answers links to files: this server, or the store
    link_seconds: float = limits.SERVE_LINK_SECONDS
    signing_key: str | Reference = ""  # of tickets and links; empty: a random one, which no other process has
    metrics_readers: list[str] | None = None  # None: anyone on loopback, elsewhere whoever may sign in
    query_admins: list[str] = []  # who see and cancel queries of Kusto's clients other than their own


class TlsPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[tls]`: PEM files."""

    certificate: str
    key: str
    client_ca: str | None = None  # clients must have a certificate that this one signed


class LimitsPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[limits]`: of the process, and of each client; 0 is no limit."""

    scans: int = limits.SERVE_SCANS_MAX
    scans_per_client: int = limits.SERVE_CLIENT_SCANS_MAX
    waiting_seconds: float = limits.SERVE_WAITING_SECONDS
    scan_seconds: float = limits.SCAN_TIMEOUT_SECONDS
    stalled_seconds: float = limits.SERVE_STALLED_SECONDS  # that a client of HTTP may take nothing
    rows: int = 0  # that one scan may give
    memory_bytes: int = 0  # of the process; 0: as `delta.memory.bytes` says
    memory_bytes_per_client: int = 0
    request_bytes: int = limits.SERVE_REQUEST_BYTES_MAX
    kusto_records: int = limits.KUSTO_RECORDS_MAX  # of a result, where its client does not say
    kusto_bytes: int = limits.KUSTO_RESULT_BYTES_MAX  # likewise
    kusto_seconds: float = limits.KUSTO_SECONDS  # likewise


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`limits` of one of `[[clients]]`; None: as `[limits]` says."""

    scans: int | None = None
    scan_seconds: float | None = None
    rows: int | None = None
    memory_bytes: int | None = None


class ClientPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[clients]]`: who may sign in, by a token or by a certificate."""

    name: str
    token_sha256: str | None = None
    certificate: str | None = None  # its first alternative name, or its common name
    roles: list[str] = []
    limits: ClientLimits = ClientLimits()


class TablePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[tables.NAME]`."""

    url: str
    storage_options: dict[str, Value] = {}
    readers: list[str] | None = None  # names of clients and roles; None: whoever may sign in
    share: str = DEFAULT_SHARE
    schema: str = DEFAULT_SCHEMA
    comment: str = ""
    file_links: WhoLinks | None = None  # None: as [server] says

    def __repr__(self) -> str:
        return f"TablePart({self.share}.{self.schema}, options={sorted(self.storage_options)})"


class FunctionPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[functions.NAME]`: what queries of KQL may call."""

    body: str
    parameters: str = "()"
    comment: str = ""


class ConfigFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file as it stands."""

    server: ServerPart
    tls: TlsPart | None
    limits: LimitsPart
    clients: list[ClientPart]
    tables: dict[str, TablePart]
    functions: dict[str, FunctionPart]
