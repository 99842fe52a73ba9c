"""An authority, and certificates that it signs, as files: for servers and clients of a test."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class KeyPair(NamedTuple):
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; its own is `file`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(_pem(self._signed(name, self._key, is_authority=True)))

    def of_server(self) -> KeyPair:
        """A certificate for 127.0.0.1."""
        here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        return self._pair("127.0.0.1", here)

    def of_client(self, name: str, *, alternative: str | None = None) -> KeyPair:
        """A certificate with that common name."""
        if alternative is None:
            return self._pair(name)
        return self._pair(name, x509.SubjectAlternativeName([x509.DNSName(alternative)]))

    def _pair(self, name: str, *extensions: x509.ExtensionType) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        pair = KeyPair(self._folder / f"{name}-cert.pem", self._folder / f"{name}-key.pem")
        pair.certificate.write_bytes(_pem(self._signed(name, key, *extensions)))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return pair

    def _signed(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        *extensions: x509.ExtensionType,
        is_authority: bool = False,
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_distinguished(name))
            .issuer_name(_distinguished(self._name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _distinguished(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
