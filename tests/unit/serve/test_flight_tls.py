"""Flight over TLS, and clients that sign in by their certificate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from lazydelta.serve.sign_in import token_digest
from tests.support.certificates import Authority, KeyPair
from tests.support.row_tables import readings_table
from tests.support.serving import RunningServer, bearer, planned, running_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def server(folder: Path, authority: Authority) -> Iterator[RunningServer]:
    """Certificates are wanted of clients."""
    pair = authority.of_server()
    url = readings_table(folder, hours=1)
    more = f"""
[tls]
certificate = "{pair.certificate.name}"
key = "{pair.key.name}"
client_ca = "{authority.file.name}"
[[clients]]
name = "ann"
certificate = "ann.example"
[[clients]]
name = "ben"
certificate = "ben.example"
[[clients]]
name = "tom"
token_sha256 = "{token_digest("tom's")}"
[tables.of_ann]
url = {json.dumps(url)}
readers = ["ann"]
"""
    with running_server(folder, {"readings": url}, more) as running:
        yield running


def connected(server: RunningServer, authority: Authority, pair: KeyPair | None) -> flight.FlightClient:
    own = (
        {}
        if pair is None
        else {"cert_chain": pair.certificate.read_bytes(), "private_key": pair.key.read_bytes()}
    )
    address = f"grpc+tls://127.0.0.1:{server.ports.flight}"
    return flight.connect(address, tls_root_certs=authority.file.read_bytes(), **own)


def rows_of(client: flight.FlightClient, table: str, options: flight.FlightCallOptions | None = None) -> int:
    info = planned(client, options, table=table)
    return int(client.do_get(info.endpoints[0].ticket, options).read_all().num_rows)


def test_a_certificate_signs_its_client_in(server: RunningServer, authority: Authority) -> None:
    with connected(server, authority, authority.of_client("ann.example")) as client:
        assert rows_of(client, "of_ann") == 30
    with connected(server, authority, authority.of_client("ben.example")) as client:
        assert rows_of(client, "readings") == 30
        with pytest.raises(pa.ArrowKeyError, match="there is no table 'of_ann'"):
            planned(client, table="of_ann")


def test_a_certificate_that_nobody_has_does_not_sign_in(server: RunningServer, authority: Authority) -> None:
    pair = authority.of_client("eve.example")
    with connected(server, authority, pair) as client, pytest.raises(flight.FlightUnauthenticatedError):
        planned(client, table="readings")


def test_an_alternative_name_is_what_counts_where_there_is_one(
    server: RunningServer, authority: Authority
) -> None:
    with connected(server, authority, authority.of_client("x", alternative="ann.example")) as client:
        assert rows_of(client, "of_ann") == 30
    pair = authority.of_client("ann.example", alternative="x")
    with connected(server, authority, pair) as client, pytest.raises(flight.FlightUnauthenticatedError):
        planned(client, table="of_ann")


def test_a_token_comes_before_a_certificate(server: RunningServer, authority: Authority) -> None:
    with connected(server, authority, authority.of_client("ann.example")) as client:
        with pytest.raises(pa.ArrowKeyError):
            planned(client, bearer("tom's"), table="of_ann")
        with pytest.raises(flight.FlightUnauthenticatedError):
            planned(client, bearer("wrong"), table="of_ann")
        assert rows_of(client, "readings", bearer("tom's")) == 30


def test_clients_without_a_certificate_or_of_another_authority_do_not_connect(
    server: RunningServer, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger").of_client("ann.example")
    for pair in (None, stranger):
        with connected(server, authority, pair) as client, pytest.raises(flight.FlightUnavailableError):
            planned(client, table="readings")


def test_tls_without_certificates_of_clients(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.of_server()
    url = readings_table(tmp_path, hours=1)
    more = f"""
[tls]
certificate = "{pair.certificate.name}"
key = "{pair.key.name}"
[[clients]]
name = "tom"
token_sha256 = "{token_digest("tom's")}"
"""
    with running_server(tmp_path, {"readings": url}, more) as server:
        with connected(server, authority, None) as client:
            assert rows_of(client, "readings", bearer("tom's")) == 30
            with pytest.raises(flight.FlightUnauthenticatedError):
                planned(client, table="readings")
        pair = authority.of_client("tom")
        with connected(server, authority, pair) as client, pytest.raises(flight.FlightUnauthenticatedError):
            planned(client, table="readings")
        with server.flight() as plain, pytest.raises(flight.FlightUnavailableError):
            planned(plain, table="readings")
