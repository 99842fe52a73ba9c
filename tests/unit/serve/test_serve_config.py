"""`serve.toml`: what is wrong is told by file, key and what to write; references are followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.config import ServeConfig, load_config
from lazydelta.serve.sign_in import token_digest
from tests.support.certificates import Authority

PORT = "[server]\nflight_port = 0\n"
TABLE = PORT + "[tables.a]\nurl = 'a'\n"
HASH = token_digest("x")
CLIENT = f'[[clients]]\nname = "ann"\ntoken_sha256 = "{HASH}"\n'


def loaded(folder: Path, text: str, environment: dict[str, str] | None = None) -> ServeConfig:
    path = folder / "serve.toml"
    path.write_text(text, "utf-8")
    return load_config(str(path), environment=environment or {})


def refused(folder: Path, text: str, environment: dict[str, str] | None = None) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        loaded(folder, text, environment)
    assert caught.value.where == str(folder / "serve.toml")
    return caught.value


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("[server\n", "the settings file cannot be read: Expected ']'", "mend it"),
        ("[sever]\n", "sever: there is no such key", "did you mean server?"),
        ("server = 1\n", "server: it is no table", "write [server]"),
        (
            "[server]\nflight_prt = 1\n",
            "server.flight_prt: there is no such key",
            "did you mean flight_port?",
        ),
        ("[server]\nflight_port = 'x'\n", "server.flight_port: it is text", "give a whole number"),
        ("[server]\nflight_port = 70000\n", "server.flight_port: it is 70000", "65535"),
        ("[server]\nflight_port = 5\nhttp_port = 5\n", "server.http_port: it is flight_port, too", "another"),
        ("", "server: no port is given", "give flight_port, http_port, or both"),
        (PORT + "host = ''\n", "server.host: it is empty", "127.0.0.1"),
        (PORT + "host = '0.0.0.0'\n", "server.host: 0.0.0.0 is reached by other machines", "[[clients]]"),
        (PORT + "host = 'lake.example'\n", "server.host: lake.example is reached by other", "[[clients]]"),
        (PORT + "drain_seconds = -1\n", "server.drain_seconds: it is -1", "give 0 to"),
        (PORT + "drain_seconds = nan\n", "server.drain_seconds: it is nan", "give 0 to"),
        (PORT + "drain_seconds = inf\n", "server.drain_seconds: it is inf", "give 0 to"),
        (PORT + "ticket_seconds = 0\n", "server.ticket_seconds: tickets would never", "give 600"),
        (PORT + "link_seconds = 1e9\n", "server.link_seconds: links cannot be valid so long", "604800"),
        (PORT + "public_url = 'lake'\n", "server.public_url: it is no address", "https://HOST"),
        (PORT + "link_seconds = 0\n", "server.link_seconds: links cannot be valid for less than", "1 to"),
        (PORT + "file_links = 'mine'\n", "server.file_links: it is none of", '"server" or "store"'),
        (PORT + "signing_key = 5\n", "server.signing_key: it is a whole number, not text", "give text"),
        (PORT + "signing_key = 'short'\n", "server.signing_key: it has 5 bytes, less than 32", "serve-token"),
        (PORT + "[limits]\nscans = 'many'\n", "limits.scans: it is text, not a whole number", "give a whole"),
        (PORT + "[limits]\nrows = -5\n", "limits.rows: it is -5", "give 0 to"),
        (PORT + "[clients]\nname = 'a'\n", "clients: it is no list of tables", "[[clients]]"),
        (PORT + "[[clients]]\n", "clients[0].name: it is missing", "give name"),
        (PORT + "[[clients]]\nname = 'a'\n", "clients.a: it has not one way to sign in", "token_sha256 or"),
        (
            PORT + "[[clients]]\nname = 'a'\ntoken = 'b'\n",
            "clients.a.token: there is no such key",
            "token_sha256",
        ),
        (
            PORT + CLIENT.replace(HASH, "my-token"),
            "clients.ann.token_sha256: it is no SHA-256",
            "serve-token",
        ),
        (PORT + CLIENT.replace(HASH, HASH.upper()), "0-9 and a-f", "serve-token"),
        (PORT + CLIENT.replace("ann", ""), "clients.: that cannot be a name", "1 to 128"),
        (PORT + CLIENT.replace("ann", "anyone"), "clients.anyone: that cannot be a name", "1 to 128"),
        (PORT + CLIENT + CLIENT, "clients.ann.name: another client has the same", "its own"),
        (PORT + CLIENT + CLIENT.replace("ann", "ben"), "clients.ben.token_sha256: another client", "its own"),
        (
            PORT + "[[clients]]\nname = 'a'\ncertificate = 'b'\n",
            "clients.a.certificate: it needs",
            "client_ca",
        ),
        (PORT + CLIENT + "limits = {scan = 1}\n", "clients.ann.limits.scan: there is no such key", "scans"),
        (PORT + CLIENT + "limits = {rows = -1}\n", "clients.ann.limits.rows: it is -1", "give 0 to"),
        (PORT + "[tables.a]\n", "tables.a.url: it is missing", "give url in [tables.a]"),
        (PORT + "[tables.a]\nurl = ''\n", "tables.a.url: it is empty", "address"),
        (PORT + "[tables.a]\nurl = 'ftp://h/t'\n", "tables.a: ", ""),
        (TABLE + "ulr = 'b'\n", "tables.a.ulr: there is no such key", "did you mean url?"),
        (PORT + "[tables.'a b']\nurl = 'a'\n", "tables.a b: a b cannot be a name", "letters"),
        (TABLE + "share = '../x'\n", "tables.a: share cannot be a name", "letters"),
        (TABLE + "[tables.a]\nurl = 'b'\n", "Cannot declare ('tables', 'a') twice", "mend"),
        (TABLE + "[tables.A]\nurl = 'b'\n", "tables.A: it differs from tables.a in", "name"),
        (
            TABLE + "storage_options = {'delta.nope' = 1}\n",
            "tables.a: there is no option delta.nope",
            "there are:",
        ),
        (
            TABLE + "storage_options = {account_key = {enviroment = 'K'}}\n",
            "tables.a.storage_options.account_key.enviroment: there is no such key",
            "there are: env, file",
        ),
        (
            TABLE + "storage_options = {account_key = ['K']}\n",
            "tables.a.storage_options.account_key: it is a list",
            "text",
        ),
        (
            TABLE + "storage_options = {account_key = {env = 'K'}}\n",
            "tables.a.storage_options.account_key: the environment has no K",
            "set it before the start",
        ),
        (
            TABLE + "storage_options = {account_key = {env = 'K', file = 'k'}}\n",
            "tables.a.storage_options.account_key: it refers to nothing, or to two things",
            '{file = "path"}',
        ),
        (
            TABLE + "storage_options = {account_key = {file = 'none'}}\n",
            "none cannot be read: No such file",
            "name a file of text",
        ),
        (PORT + "[tls]\nkey = 'k'\n", "tls.certificate: it is missing", "give certificate in [tls]"),
        (
            PORT + "[tls]\ncertificate = 'c'\nkey = 'k'\n",
            "tls.certificate: there is no file",
            "name a PEM file",
        ),
        (
            PORT + "[tls]\ncertificate = 'serve.toml'\nkey = 'serve.toml'\n",
            "tls.certificate, tls.key: they are no pair",
            "name PEM files",
        ),
    ],
)
def test_what_is_wrong_is_told_by_its_key(tmp_path: Path, text: str, what: str, fix: str) -> None:
    error = refused(tmp_path, text)
    assert what in error.what
    assert fix in error.fix


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "nowhere.toml")
    with pytest.raises(InvalidRequestError, match="cannot be read") as caught:
        load_config(path, environment={})
    assert caught.value.where == path


def test_a_key_of_another_certificate_and_one_that_is_encrypted_are_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    authority = Authority(tmp_path)
    own, other = authority.of_server(), authority.of_client("other")
    mixed = f'{PORT}[tls]\ncertificate = "{own.certificate.name}"\nkey = "{other.key.name}"\n'
    assert "they are no pair" in refused(tmp_path, mixed).what
    key = serialization.load_pem_private_key(own.key.read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"secret")
    own.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    )
    text = f'{PORT}[tls]\ncertificate = "{own.certificate.name}"\nkey = "{own.key.name}"\n'
    assert "the key is encrypted" in refused(tmp_path, text).what
    text = text.replace(own.key.name, other.key.name).replace(own.certificate.name, other.certificate.name)
    assert "tls.client_ca: it is none" in refused(tmp_path, text + 'client_ca = "serve.toml"\n').what


def test_values_are_taken_from_the_environment_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("k" * 40 + "\n", "utf-8")
    text = """
[server]
http_port = 0
signing_key = {file = "key.txt"}
[tables.a]
url = "s3://bucket/a"
[tables.a.storage_options]
access_key_id = {env = "ID"}
secret_access_key = {file = "key.txt"}
region = "eu"
virtual_hosted_style_request = true
"""
    config = loaded(tmp_path, text, {"ID": "me"})
    assert config.tables["a"].settings.storage_options == {
        "access_key_id": "me",
        "secret_access_key": "k" * 40,
        "region": "eu",
        "virtual_hosted_style_request": "true",
    }
    assert config.signing_key == b"k" * 40
    assert str(tmp_path / "key.txt") in config.files
    assert "kkkk" not in repr(config) + repr(config.tables)


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    config = loaded(tmp_path, PORT + '[tables.a]\nurl = "a/b"\n[tables.b]\nurl = "/c"\n')
    assert {name: table.url for name, table in config.tables.items()} == {"a": f"{tmp_path}/a/b", "b": "/c"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_nobody_has_to_sign_in_on_loopback(tmp_path: Path, host: str) -> None:
    assert loaded(tmp_path, f'{PORT}host = "{host}"\n').clients == ()


def test_the_memory_of_the_server_counts_for_its_tables(tmp_path: Path) -> None:
    table = '[tables.a]\nurl = "a"\nstorage_options = {"delta.memory.bytes" = 1000}\n'
    assert loaded(tmp_path, PORT + table).tables["a"].settings.memory_bytes == 1000
    limited = loaded(tmp_path, f"{PORT}[limits]\nmemory_bytes = 5000\n{table}")
    assert limited.tables["a"].settings.memory_bytes == 5000


def test_a_reader_that_nobody_is_and_tokens_in_the_clear_are_warned_of(tmp_path: Path) -> None:
    """Not refused: the last who had a role may have lost it, and keeps it where the file is refused."""
    text = f'{TABLE}readers = ["ann", "bne"]\n{CLIENT}'
    assert loaded(tmp_path, text).warnings == (
        "tables.a.readers: 'bne' is no client and no role, so that nobody reads by it",
    )
    outside = loaded(tmp_path, f'[server]\nhttp_port = 0\nhost = "0.0.0.0"\n{CLIENT}')
    assert outside.warnings == (
        "tls: there is none, so that tokens and data go over the network in the clear",
    )


def test_a_file_that_is_not_there_is_named_by_the_servers_own_option(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"(?s)cannot be read.*serve\.toml.*\(--config\)"):
        load_config(str(tmp_path / "serve.toml"), environment={})
