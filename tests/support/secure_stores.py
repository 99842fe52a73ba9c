"""Emulated stores that check who asks: Azurite over TLS, with tokens and two accounts; moto with policies.

Contract: `secure_azurite` accepts keys and signatures of `ACCOUNT` and `OTHER_ACCOUNT`, and bearer tokens;
both have the container `tables`. `checked_s3` knows one user who may do everything, one who may read and not
list, and the session keys of a role. Both are one process each per run.
"""

from __future__ import annotations

import base64
import datetime as dt
import email.utils
import hashlib
import hmac
import http.client
import ipaddress
import json
import secrets
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import boto3
import pytest
from botocore.config import Config
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support import servers
from tests.support.servers import CONTAINER, TableServer

ACCOUNT, OTHER_ACCOUNT = "accountone", "accounttwo"
_ROLE = "arn:aws:iam::123456789012:role/reader"


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


@dataclass(frozen=True)
class CheckedS3:
    """An S3 server that checks signatures and policies, and the keys that it knows."""

    server: TableServer
    reader_without_list: dict[str, str] = field(repr=False)
    session: dict[str, str] = field(repr=False)

    def options(self, **credentials: str) -> dict[str, str]:
        """Storage options with these credentials and no others."""
        names = ("endpoint", "region", "allow_http")
        return {**{name: self.server.storage_options[name] for name in names}, **credentials}


@pytest.fixture(scope="session")
def secure_azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureAzurite]:
    certificate = make_certificate(tmp_path_factory.mktemp("certificate"))
    keys = {name: base64.b64encode(secrets.token_bytes(64)).decode() for name in (ACCOUNT, OTHER_ACCOUNT)}
    port = servers._free_port()
    command = [servers._node(), str(servers._azurite_script()), "--silent", "--skipApiVersionCheck"]
    command += ["--disableTelemetry", "--location", str(tmp_path_factory.mktemp("secure-azurite"))]
    command += ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--oauth", "basic"]
    command += ["--cert", str(certificate.file), "--key", str(certificate.key_file)]
    environment = {"AZURITE_ACCOUNTS": ";".join(f"{name}:{key}" for name, key in keys.items())}
    log = tmp_path_factory.mktemp("secure-azurite-log")
    with servers._running(command, port, log, environment):
        for name, key in keys.items():
            _create_container(port, name, key)
        yield SecureAzurite(port=port, certificate=certificate, keys=keys)


@pytest.fixture(scope="session")
def checked_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckedS3]:
    # The bucket, two users with a key and a policy each, the role with its policy, and taking the role.
    free_actions = 1 + 2 * 3 + 2 + 1
    environment = {"INITIAL_NO_AUTH_ACTION_COUNT": str(free_actions)}
    with servers._moto(tmp_path_factory.mktemp("checked-moto-log"), environment) as server:
        everything, without_list = _user(server, "all", ["s3:*"]), _user(server, "reader", ["s3:GetObject"])
        session = _role(server)
        options = {**server.storage_options, **everything}
        owner = TableServer(kind="s3", port=server.port, base_url=f"s3://{CONTAINER}", options=options)
        yield CheckedS3(server=owner, reader_without_list=without_list, session=session)


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
    date = email.utils.formatdate(usegmt=True)
    resource = f"/{account}/{account}/{CONTAINER}\nrestype:container"
    signed = "\n".join(["PUT", *[""] * 11, f"x-ms-date:{date}", "x-ms-version:2021-08-06", resource])
    digest = hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {account}:{base64.b64encode(digest).decode()}",
        "Content-Length": "0",
    }
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
    try:
        connection.request("PUT", f"/{account}/{CONTAINER}?restype=container", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    assert answer.status == 201, (answer.status, body)


def _user(server: TableServer, name: str, actions: list[str]) -> dict[str, str]:
    iam = _client(server, "iam")
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=_policy(actions))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {"access_key_id": key["AccessKeyId"], "secret_access_key": key["SecretAccessKey"]}


def _role(server: TableServer) -> dict[str, str]:
    iam = _client(server, "iam")
    anyone = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    trust = {"Version": "2012-10-17", "Statement": [anyone]}
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps(trust))
    iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=_policy(["s3:*"]))
    keys = _client(server, "sts").assume_role(RoleArn=_ROLE, RoleSessionName="tests")["Credentials"]
    return {
        "access_key_id": keys["AccessKeyId"],
        "secret_access_key": keys["SecretAccessKey"],
        "session_token": keys["SessionToken"],
    }


def _policy(actions: list[str]) -> str:
    allowed = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def _client(server: TableServer, service: str):  # type: ignore[no-untyped-def]  # boto3's classes are made at run time
    return boto3.client(
        service,
        endpoint_url=f"http://127.0.0.1:{server.port}",
        region_name="us-east-1",
        aws_access_key_id="unchecked",
        aws_secret_access_key="unchecked",
        config=Config(retries={"max_attempts": 1}),
    )
