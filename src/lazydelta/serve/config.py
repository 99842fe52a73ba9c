"""`serve.toml`: which tables are served, on which ports, to whom, within which limits.

Contract: read whole and checked before anything starts; an error names the file, the key and what to write.
Secrets are not in the file: values of storage options may be `{env = "NAME"}` or `{file = "path"}`, tokens
are there as SHA-256. Relative paths are relative to the file. Nothing here shows a secret: not the errors,
not the `repr`.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Mapping
from pathlib import Path

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.serve.config_functions import ServedFunction, read_functions
from lazydelta.serve.config_keys import ConfigKeys
from lazydelta.serve.config_parts import (
    ClientPart,
    ConfigFile,
    LimitsPart,
    Reference,
    ServerPart,
    TablePart,
    TlsPart,
    Value,
)
from lazydelta.settings import Settings, build_settings, read_settings_file
from lazydelta.storage import open_storage

ANYONE_NAME = "anyone"  # who is not asked to sign in
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,127}\Z")
_CLIENT_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,128}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class ServedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table with everything that opening it takes."""

    name: str
    url: str
    settings: Settings
    readers: frozenset[str] | None
    share: str
    schema: str
    comment: str
    file_links: str

    def __repr__(self) -> str:
        return f"ServedTable({self.share}.{self.schema}.{self.name})"


class ServeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the server runs by."""

    path: str
    server: ServerPart
    tls: TlsPart | None
    limits: LimitsPart
    clients: tuple[ClientPart, ...]
    tables: dict[str, ServedTable]
    functions: dict[str, ServedFunction]
    signing_key: bytes
    files: tuple[str, ...]  # that it was read from: itself, and what it refers to
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return f"ServeConfig({self.path}, tables={sorted(self.tables)})"


def load_config(path: str, *, environment: Mapping[str, str]) -> ServeConfig:
    """Read and check the file."""
    reader = _Reader(path, environment)
    file = reader.keys.file(read_settings_file(path, named_by="--config"))
    reader.check(file)
    key = reader.value("server.signing_key", file.server.signing_key).encode()
    if 0 < len(key) < limits.SERVE_SIGNING_KEY_BYTES_MIN:
        raise reader.keys.wrong(
            "server.signing_key",
            f"it has {len(key)} bytes, less than {limits.SERVE_SIGNING_KEY_BYTES_MIN}",
            "give a long random one, as `lazydelta serve-token` makes them",
        )
    return ServeConfig(
        path=path,
        server=file.server,
        tls=None if file.tls is None else reader.tls(file.tls),
        limits=file.limits,
        clients=tuple(file.clients),
        tables={name: reader.table(name, part, file) for name, part in file.tables.items()},
        functions=read_functions(file, reader.keys),
        signing_key=key,
        files=tuple(reader.files),
        warnings=tuple(reader.warnings(file)),
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Reader:
    """Checks one file and follows its references."""

    def __init__(self, path: str, environment: Mapping[str, str]) -> None:
        self.keys = ConfigKeys(path)
        self.files = [path]
        self._folder = Path(path).absolute().parent
        self._environment = environment

    def check(self, file: ConfigFile) -> None:
        self._check_server(file.server)
        for part, name in ((file.server, "server"), (file.limits, "limits")):
            self._check_numbers(part, name)
        if not file.clients and not is_loopback(file.server.host):
            raise self.keys.wrong(
                "server.host",
                f"{file.server.host} is reached by other machines, and nobody has to sign in",
                "add [[clients]], or serve on 127.0.0.1",
            )
        self._check_clients(file)
        self._check_twins(file)

    def _check_server(self, server: ServerPart) -> None:
        ports = {"flight_port": server.flight_port, "http_port": server.http_port}
        if all(port is None for port in ports.values()):
            raise self.keys.wrong("server", "no port is given", "give flight_port, http_port, or both")
        for name, port in ports.items():
            if port is not None and not 0 <= port < 1 << 16:
                raise self.keys.wrong(f"server.{name}", f"it is {port}", "give 0 (a free one) to 65535")
        if server.flight_port and server.flight_port == server.http_port:
            raise self.keys.wrong("server.http_port", "it is flight_port, too", "give another one")
        if not server.host.strip():
            raise self.keys.wrong("server.host", "it is empty", "give 127.0.0.1, or 0.0.0.0 for all")
        if server.public_url and not re.match(r"https?://[^/?#\s]", server.public_url):
            raise self.keys.wrong("server.public_url", "it is no address", "give https://HOST")
        if not 1 <= server.link_seconds <= limits.SERVE_LINK_SECONDS_MAX:
            length = "so long" if server.link_seconds > 1 else "for less than a second"
            raise self.keys.wrong(
                "server.link_seconds", f"links cannot be valid {length}", "give 1 to 604800"
            )
        if not server.ticket_seconds > 0:
            raise self.keys.wrong("server.ticket_seconds", "tickets would never be valid", "give 600")

    def _check_numbers(self, part: msgspec.Struct, key: str) -> None:
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            most = limits.SECONDS_MAX if name.endswith("_seconds") else limits.NUMBER_MAX
            if not 0 <= value <= most:
                raise self.keys.wrong(f"{key}.{name}", f"it is {value}", f"give 0 to {most:,.0f}")

    def _check_clients(self, file: ConfigFile) -> None:
        seen: dict[str, set[str | None]] = {"name": set(), "token_sha256": set(), "certificate": set()}
        for client in file.clients:
            where = f"clients.{client.name}"
            if not _CLIENT_NAME.match(client.name) or client.name == ANYONE_NAME:
                raise self.keys.wrong(where, "that cannot be a name", "give 1 to 128 characters")
            if (client.token_sha256 is None) == (client.certificate is None):
                raise self.keys.wrong(
                    where, "it has not one way to sign in", "give token_sha256 or certificate"
                )
            if client.token_sha256 is not None and not _SHA256.match(client.token_sha256):
                raise self.keys.wrong(
                    f"{where}.token_sha256",
                    "it is no SHA-256: 64 digits of 0-9 and a-f",
                    "`lazydelta serve-token` makes a token and what to write here",
                )
            if client.certificate is not None and (file.tls is None or file.tls.client_ca is None):
                raise self.keys.wrong(f"{where}.certificate", "it needs an authority", "give [tls] client_ca")
            for name, values in seen.items():
                value = getattr(client, name)
                if value is not None and value in values:
                    raise self.keys.wrong(
                        f"{where}.{name}", "another client has the same", "give each its own"
                    )
                values.add(value)
            self._check_numbers(client.limits, f"{where}.limits")

    def warnings(self, file: ConfigFile) -> list[str]:
        """What may be a mistake, and may be meant.

        A reader that nobody is: misspelt, or the last who had a role has lost it, which must count at once.
        """
        known = {client.name for client in file.clients} | {
            role for one in file.clients for role in one.roles
        }
        lists = {f"tables.{name}.readers": table.readers for name, table in file.tables.items()}
        lists["server.metrics_readers"] = file.server.metrics_readers
        lists["server.query_admins"] = file.server.query_admins
        found = [
            f"{key}: {reader!r} is no client and no role, so that nobody reads by it"
            for key, readers in lists.items()
            for reader in readers or ()
            if reader not in known
        ]
        if 0 < file.limits.memory_bytes < 8 * limits.SERVE_SQL_MEMORY_BYTES_MIN:
            found.append("limits.memory_bytes: it is too small for statements of SQL, which are refused")
        if file.tls is None and not is_loopback(file.server.host):
            found.append("tls: there is none, so that tokens and data go over the network in the clear")
        return found

    def _check_twins(self, file: ConfigFile) -> None:
        seen: dict[tuple[str, str, str], str] = {}
        for name, table in file.tables.items():
            twin = seen.setdefault((table.share.lower(), table.schema.lower(), name.lower()), name)
            if twin != name:
                raise self.keys.wrong(
                    f"tables.{name}", f"it differs from tables.{twin} in case alone", "give it another name"
                )

    def tls(self, part: TlsPart) -> TlsPart:
        """The same with whole paths; the files are tried."""
        found = TlsPart(
            certificate=self._pem("tls.certificate", part.certificate),
            key=self._pem("tls.key", part.key),
            client_ca=None if part.client_ca is None else self._pem("tls.client_ca", part.client_ca),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(found.certificate, found.key, password=_no_password)
        except (OSError, ValueError) as problem:
            raise self.keys.wrong(
                "tls.certificate, tls.key",
                f"they are no pair: {problem}",
                "name PEM files, the key in the clear",
            ) from problem
        try:
            if found.client_ca is not None:
                context.load_verify_locations(found.client_ca)
        except (OSError, ValueError) as problem:
            raise self.keys.wrong("tls.client_ca", f"it is none: {problem}", "name a PEM file") from problem
        return found

    def table(self, name: str, part: TablePart, file: ConfigFile) -> ServedTable:
        for label, text in ((name, name), ("share", part.share), ("schema", part.schema)):
            if not _NAME.match(text):
                raise self.keys.wrong(
                    f"tables.{name}", f"{label} cannot be a name", "use letters, digits, _ and -, 128 at most"
                )
        key = f"tables.{name}.storage_options"
        options = {
            option: self.value(f"{key}.{option}", value) for option, value in part.storage_options.items()
        }
        if not part.url.strip():
            raise self.keys.wrong(f"tables.{name}.url", "it is empty", "give the address of the table")
        try:
            settings = build_settings(options, environment=self._environment)
            open_storage(self._address(part.url), settings)  # nothing is read yet
        except InvalidRequestError as problem:
            raise self.keys.wrong(f"tables.{name}", problem.what, problem.fix) from problem
        if file.limits.memory_bytes:  # what is said here counts, not each table's own
            settings = msgspec.structs.replace(settings, memory_bytes=file.limits.memory_bytes)
        return ServedTable(
            name=name,
            url=self._address(part.url),
            settings=settings,
            readers=None if part.readers is None else frozenset(part.readers),
            share=part.share,
            schema=part.schema,
            comment=part.comment,
            file_links=part.file_links or file.server.file_links,
        )

    def value(self, key: str, given: Value) -> str:
        """The text, or what it refers to."""
        if isinstance(given, bool):
            return str(given).lower()
        if not isinstance(given, Reference):
            return str(given)
        if (given.env is None) == (given.file is None):
            raise self.keys.wrong(
                key, "it refers to nothing, or to two things", 'write {env = "NAME"} or {file = "path"}'
            )
        if given.env is not None:
            if given.env not in self._environment:
                raise self.keys.wrong(key, f"the environment has no {given.env}", "set it before the start")
            return self._environment[given.env]
        assert given.file is not None
        path = self._folder / given.file
        try:
            found = path.read_text("utf-8").strip()
        except (OSError, ValueError) as problem:
            told = problem.strerror if isinstance(problem, OSError) else "it is no text"
            raise self.keys.wrong(key, f"{path} cannot be read: {told}", "name a file of text") from None
        self.files.append(str(path))
        return found

    def _pem(self, key: str, name: str) -> str:
        path = self._folder / name
        if not path.is_file():
            raise self.keys.wrong(key, f"there is no file {path}", "name a PEM file")
        return str(path)

    def _address(self, url: str) -> str:
        return url if "://" in url else str(self._folder / url)


def _no_password() -> str:
    raise ValueError("the key is encrypted")
