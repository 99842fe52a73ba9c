"""Where a table is: the spellings of one address, reduced to store, container, path and canonical root.

Why: `abfss://`, `az://` and `https://` may all name the same table, and identity (cache keys, absolute paths
in a log) must not depend on which one the user typed. Pure: nothing is opened, nothing is looked up.
Contract: URLs are percent-decoded exactly once; plain local paths are not decoded. A shared access signature
in the query of an Azure URL is split off first (`without_signature`). An address that carries any other
query or a password is refused, and one that a user gave (`given_address`) also with a signature anywhere
else, encoded or in a local path: a table's `root` holds no secret. Refused ones are shown redacted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.redaction import HIDDEN, holds_parameters, redacted
from lazydelta.storage.names import uri_path

SCHEMES_TEXT = (
    "a local path, file://, abfss://container@account/path (or abfs://), az://container/path (or azure://), "
    "https://account.blob.core.windows.net/container/path, s3://bucket/path (or s3a://), "
    "https://bucket.s3.region.amazonaws.com/path"
)
_SCHEMES = ("file", "s3", "s3a", "abfs", "abfss", "az", "azure", "https")
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/")  # one letter alone would be a drive
_AZURE_HOST = re.compile(
    r"^(?P<account>[a-z0-9-]+(?:\.z[0-9]{1,2})?)\.(?:blob|dfs)\."  # some accounts have a zone in their host
    r"(?P<suffix>core\.windows\.net|core\.chinacloudapi\.cn|core\.usgovcloudapi\.net|storage\.azure\.net"
    r"|fabric\.microsoft\.com)$"
)
_NO_CONTAINER = re.compile(r"[/\\:@?#\x00-\x1f]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ACCOUNT = re.compile(r"^[a-z0-9-]+$")
_S3_HOST = re.compile(
    r"^(?:(?P<bucket>[a-z0-9][a-z0-9.-]*)\.)?s3(?:[.-](?:dualstack\.)?(?P<region>[a-z]{2}(?:-[a-z]+)+-[0-9]+))?"
    r"\.amazonaws\.com(?:\.cn)?$"
)
_SIGNATURE = re.compile(r"(?:^|&)sig=", re.IGNORECASE)
# Azure's names in one: `sv`, `srt`, `skdutid`, `rscd`. Others would be sent along with every request and
# change it: `comp=list`, `snapshot=…`.
_SIGNATURE_NAME = re.compile(r"s[a-z]{1,6}|rsc[cdelt]", re.IGNORECASE)
_SIGNED_SCHEMES = ("https", "abfss", "abfs", "az", "azure")
# What comes along when an address is copied: blanks, quotes, brackets, marks of the text's encoding.
_AROUND = " \t\r\n\v\f\"'`<>\u201c\u201d\u2018\u2019\u00a0\u200b\ufeff"
_AMONG_OPTIONS = (
    "pass credentials as storage_options (sas_token, account_key, access_key_id, …), or the whole shared "
    "access signature (sv=…&sig=…), and nothing else, as the query of an Azure URL"
)
PUBLIC_AZURE = "core.windows.net"
FABRIC = "fabric.microsoft.com"


class TableAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A table's place in a store. `path` is decoded, without slashes at either end (but `/…` when local)."""

    kind: Literal["local", "azure", "s3"]
    path: str
    container: str = ""  # the bucket, on S3
    account: str | None = None  # Azure: unknown when the URL leaves it to the options
    azure_suffix: str = PUBLIC_AZURE
    region: str | None = None  # S3: where the URL's host says it

    @property
    def root(self) -> str:
        """The canonical URI, without a trailing slash."""
        if self.kind == "local":
            return f"file://{uri_path(self.path)}".rstrip("/")
        if self.kind == "s3":
            return f"s3://{uri_path(self.container)}/{uri_path(self.path)}".rstrip("/")
        if self.account is None:
            return f"az://{uri_path(self.container)}/{uri_path(self.path)}".rstrip("/")
        host = f"{self.account}.dfs.{self.azure_suffix}"
        return f"abfss://{uri_path(self.container)}@{host}/{uri_path(self.path)}".rstrip("/")


def without_signature(url: str) -> tuple[str, str | None]:
    """The URL, and the shared access signature that stood in its query, if one did."""
    found = _SCHEME.match(url)
    if found is None or found.group(1).lower() not in _SIGNED_SCHEMES:
        return url, None
    bare, mark, query = url.partition("?")
    if not mark or "#" in query or not is_signature(query) or _S3_HOST.match(_host(bare)):
        return url, None
    return bare, query


def is_signature(query: str) -> bool:
    """Whether the text, encoded or not, is a shared access signature and nothing else."""
    pairs = [pair for pair in unquote(query).lstrip("?").split("&") if pair.strip()]
    names = [pair.partition("=")[0].strip() for pair in pairs]
    return bool(_SIGNATURE.search("&".join(pairs))) and all(map(_SIGNATURE_NAME.fullmatch, names))


def given_address(url: str) -> TableAddress:
    """The address that a user gave: `parse_address`, once it is sure that nothing secret is a part of it."""
    _check_surroundings(url)
    _check_parameters(url)
    return parse_address(url)


def parse_address(url: str) -> TableAddress:
    """The address that `url` spells, or an `InvalidRequestError` that names the supported schemes."""
    if not _is_text(url):
        raise InvalidRequestError("the table's address is not UTF-8 text", "url", f"use {SCHEMES_TEXT}")
    found = _SCHEME.match(url)
    if found is None:
        return _local(url)
    scheme = found.group(1).lower()
    if scheme not in _SCHEMES:
        raise InvalidRequestError(
            f"{scheme}:// is not a scheme this reader opens", _shown(url), f"use {SCHEMES_TEXT}"
        )
    parts = _split(url)
    if scheme == "file":
        return _file_url(parts)
    if scheme in ("s3", "s3a"):
        return TableAddress(kind="s3", container=_container(parts.netloc, parts), path=_path(parts.path))
    if scheme in ("abfs", "abfss"):
        return _abfs(parts)
    if scheme in ("az", "azure"):
        return TableAddress(kind="azure", container=_container(parts.netloc, parts), path=_path(parts.path))
    in_s3 = _S3_HOST.match(parts.netloc.lower())
    return _azure_https(parts) if in_s3 is None else _s3_https(parts, in_s3)


def _is_text(url: str) -> bool:
    try:
        url.encode()
    except UnicodeEncodeError:
        return False
    return True


def _host(url: str) -> str:
    parts = _parts(url)
    return "" if parts is None else parts.netloc


def _parts(url: str) -> SplitResult | None:
    """The URL's parts; None where it has none. The error that says why may repeat a secret."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _check_surroundings(url: str) -> None:
    bare = url.strip(_AROUND)
    if bare != url and _SCHEME.match(bare):
        raise InvalidRequestError(
            "the table's address has a blank, a quote or the like before or after it",
            _shown(bare),
            "give the address alone",
        )


def _check_parameters(url: str) -> None:
    """Refuse a signature or a key where none is looked for: it would be a part of the table's name.

    A local path that begins like `user:password@host` can be given as `./user:…`.
    """
    is_local = _SCHEME.match(url) is None
    if holds_parameters(url if is_local else url.partition("?")[0]) or (is_local and redacted(url) == HIDDEN):
        raise InvalidRequestError(
            "the table's address holds a signature or a key where it cannot be used",
            _shown(url),
            f"{_AMONG_OPTIONS}, which begins with https:// and has ? before the signature",
        )


def _split(url: str) -> SplitResult:
    if _CONTROL.search(url):  # `urlsplit` would leave it out: what is left is the address of another table
        raise InvalidRequestError(
            "the table's URL has a line break, a tab or the like in it", _shown(url), "give it in one piece"
        )
    parts = _parts(url)
    if parts is None:
        raise InvalidRequestError("the table's URL cannot be taken apart", "url", f"use {SCHEMES_TEXT}")
    if (
        parts.query
        or parts.fragment
        or (parts.scheme.lower() not in ("abfs", "abfss") and "@" in parts.netloc)
    ):
        raise InvalidRequestError(
            "the table's URL carries a query, a fragment or a user",
            _shown(url),
            f"{_AMONG_OPTIONS}; write ? and # in a path as %3F and %23",
        )
    return parts


def _shown(url: str) -> str:
    """The URL without anything that may be a secret: no query, no fragment, and what is left redacted."""
    return redacted(re.split("[?#]", url, maxsplit=1)[0])


def _local(path: str) -> TableAddress:
    if not path or "\0" in path:
        raise InvalidRequestError(f"the table's address is {path!r}", "url", f"use {SCHEMES_TEXT}")
    try:
        place = Path(path).expanduser() if path.startswith("~") else Path(path)
    except RuntimeError as unknown:
        raise InvalidRequestError(
            f"there is no home folder for {path.partition('/')[0]!r}", "url", "write the path in full"
        ) from unknown
    # absolute() keeps symbolic links as the user wrote them; ".." is resolved by the system on opening.
    return TableAddress(kind="local", path=str(place.absolute()))


def _file_url(parts: SplitResult) -> TableAddress:
    if parts.netloc not in ("", "localhost"):
        raise InvalidRequestError(
            "file:// URLs name no host, but this one does",
            _shown(parts.geturl()),
            "write file:///absolute/path with three slashes",
        )
    if not parts.path:
        raise InvalidRequestError(
            "the URL names no folder", _shown(parts.geturl()), "write file:///absolute/path"
        )
    return _local(_decoded(parts.path))


def _abfs(parts: SplitResult) -> TableAddress:
    container, at, host = parts.netloc.rpartition("@")
    if not at:  # fsspec's spelling: the account comes from the options
        return TableAddress(kind="azure", container=_container(host, parts), path=_path(parts.path))
    account, suffix = _account(host, parts)
    return TableAddress(
        kind="azure",
        container=_container(container, parts),
        account=account,
        azure_suffix=suffix,
        path=_path(parts.path),
    )


def _azure_https(parts: SplitResult) -> TableAddress:
    account, suffix = _account(parts.netloc, parts)
    container, _, path = parts.path.lstrip("/").partition("/")
    return TableAddress(
        kind="azure",
        container=_container(container, parts),
        account=account,
        azure_suffix=suffix,
        path=_path(path),
    )


def _s3_https(parts: SplitResult, host: re.Match[str]) -> TableAddress:
    bucket, path = host["bucket"], parts.path
    if bucket is None:  # path style: the bucket is the first part of the path
        bucket, _, path = parts.path.lstrip("/").partition("/")
    return TableAddress(
        kind="s3", container=_container(bucket, parts), path=_path(path), region=host["region"]
    )


def _account(host: str, parts: SplitResult) -> tuple[str, str]:
    known = _AZURE_HOST.match(host.lower())
    if known is not None:
        return known.group("account"), known.group("suffix")
    if parts.scheme != "https" and _ACCOUNT.match(host.lower()):
        return host.lower(), PUBLIC_AZURE
    raise InvalidRequestError(
        "the URL's host is not that of an Azure storage account",
        _shown(parts.geturl()),
        f"use {SCHEMES_TEXT}; a private endpoint goes into storage_options as endpoint",
    )


def _decoded(text: str) -> str:
    """The text, percent-decoded once. Bytes that are no UTF-8 are refused: all would become one character."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        pass
    raise InvalidRequestError(
        "the table's URL has an escape (%…) that is not UTF-8 text", "url", "write % in a path as %25"
    )


def _container(name: str, parts: SplitResult) -> str:
    found = _decoded(name)
    if not found or _NO_CONTAINER.search(found):
        raise InvalidRequestError(
            "the table's URL names no container or bucket", _shown(parts.geturl()), f"use {SCHEMES_TEXT}"
        )
    return found


def _path(path: str) -> str:
    return "/".join(segment for segment in _decoded(path).split("/") if segment)
