"""Azurite as a store that checks who asks: over TLS, with bearer tokens and two accounts.

Contract: `secure_azurite` accepts keys and signatures of `ACCOUNT` and `OTHER_ACCOUNT`, and bearer tokens;
both have the container `tables`. One process per run.
"""

from __future__ import annotations

import base64
import datetime as dt
import http.client
import ipaddress
import secrets
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support import servers
from tests.support.node import node
from tests.support.servers import CONTAINER, TableServer, container_request

ACCOUNT, OTHER_ACCOUNT = "accountone", "accounttwo"


class Certificate(NamedTuple):
    """Files of a certificate and its key, and the text of who signed it."""

    file: Path
    key_file: Path
    authority: str


@dataclass(frozen=True)
class SecureAzurite:
    """Where it listens, and the keys of its accounts."""

    port: int
    certificate: Certificate
    keys: dict[str, str] = field(repr=False)

    def options(self, account: str = ACCOUNT, **credentials: str) -> dict[str, str]:
        """Storage options for an account, with these credentials and no others."""
        authority = self.certificate.authority
        return {"endpoint": self.endpoint(account), "root_certificate": authority, **credentials}

    def endpoint(self, account: str = ACCOUNT) -> str:
        """The account's address."""
        return f"https://127.0.0.1:{self.port}/{account}"

    def server(self, account: str = ACCOUNT) -> TableServer:
        """A place to put tables, with the account's key."""
        return TableServer(
            kind="azurite",
            port=self.port,
            base_url=f"abfss://{CONTAINER}@{account}",
            options=self.options(account, account_key=self.keys[account]),
        )


@pytest.fixture(scope="session")
def secure_azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureAzurite]:
    certificate = make_certificate(tmp_path_factory.mktemp("certificate"))
    keys = {name: base64.b64encode(secrets.token_bytes(64)).decode() for name in (ACCOUNT, OTHER_ACCOUNT)}
    port = servers._free_port()
    command = [node(), str(servers._azurite_script()), "--silent", "--skipApiVersionCheck"]
    command += ["--disableTelemetry", "--location", str(tmp_path_factory.mktemp("secure-azurite"))]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--oauth", "basic"]
    command += ["--cert", str(certificate.file), "--key", str(certificate.key_file)]
    environment = {"AZURITE_ACCOUNTS": ";".join(f"{name}:{key}" for name, key in keys.items())}
    log = tmp_path_factory.mktemp("secure-azurite-log")
    with servers._running(command, port, log, environment):
        for name, key in keys.items():
            _create_container(port, name, key)
        yield SecureAzurite(port=port, certificate=certificate, keys=keys)


def make_certificate(folder: Path) -> Certificate:
    """A certificate for 127.0.0.1, and the authority that signed it."""
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _certificate("authority", authority, authority, issuer="authority", is_authority=True)
    leaf = _certificate("127.0.0.1", key, authority, issuer="authority", is_authority=False)
    (folder / "authority.pem").write_bytes(issuer.public_bytes(serialization.Encoding.PEM))
    (folder / "cert.pem").write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return Certificate(folder / "cert.pem", folder / "key.pem", (folder / "authority.pem").read_text())


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    issuer: str,
    is_authority: bool,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if not is_authority:
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))])
        builder = builder.add_extension(here, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _create_container(port: int, account: str, key: str) -> None:
    path, headers = container_request(account, key)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    try:
        connection.request("PUT", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    assert answer.status == 201, (answer.status, body)
