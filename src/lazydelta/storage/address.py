"""Where a table is: the spellings of one address, reduced to store, container, path and canonical root.

Why: `abfss://`, `az://` and `https://` may all name the same table, and identity (cache keys, absolute paths
in a log) must not depend on which one the user typed. Pure: nothing is opened, nothing is looked up.
Contract: URLs are percent-decoded exactly once; plain local paths are not decoded. A shared access signature
in the query of an Azure URL is split off first (`without_signature`); an address that carries any other
query, or a password, is refused without repeating it, so that no secret reaches an error message.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.storage.names import uri_path

SCHEMES_TEXT = (
    "a local path, file://, abfss://container@account/path (or abfs://), az://container/path (or azure://), "
    "https://account.blob.core.windows.net/container/path, s3://bucket/path (or s3a://), "
    "https://bucket.s3.region.amazonaws.com/path"
)
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/")  # one letter alone would be a drive
_AZURE_HOST = re.compile(
    r"^(?P<account>[a-z0-9-]+(?:\.z[0-9]{1,2})?)\.(?:blob|dfs)\."  # some accounts have a zone in their host
    r"(?P<suffix>core\.windows\.net|core\.chinacloudapi\.cn|core\.usgovcloudapi\.net|storage\.azure\.net"
    r"|fabric\.microsoft\.com)$"
)
_NO_CONTAINER = re.compile(r"[/\\:@?#\x00-\x1f]")
_ACCOUNT = re.compile(r"^[a-z0-9-]+$")
_S3_HOST = re.compile(
    r"^(?:(?P<bucket>[a-z0-9][a-z0-9.-]*)\.)?s3(?:[.-](?:dualstack\.)?(?P<region>[a-z]{2}(?:-[a-z]+)+-[0-9]+))?"
    r"\.amazonaws\.com(?:\.cn)?$"
)
_SIGNATURE = re.compile(r"(?:^|&)sig=", re.IGNORECASE)
_SIGNED_SCHEMES = ("https", "abfss", "abfs", "az", "azure")
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
    if not mark or "#" in query or not _SIGNATURE.search(query) or _S3_HOST.match(_host(bare)):
        return url, None
    return bare, query


def parse_address(url: str) -> TableAddress:
    """The address that `url` spells, or an `InvalidRequestError` that names the supported schemes."""
    if not _is_text(url):
        raise InvalidRequestError("the table's address is not UTF-8 text", "url", f"use {SCHEMES_TEXT}")
    found = _SCHEME.match(url)
    if found is None:
        return _local(url)
    scheme = found.group(1).lower()
    parts = _split(url)
    if scheme == "file":
        return _file_url(parts)
    if scheme in ("s3", "s3a"):
        return TableAddress(kind="s3", container=_container(parts.netloc, parts), path=_path(parts.path))
    if scheme in ("abfs", "abfss"):
        return _abfs(parts)
    if scheme in ("az", "azure"):
        return TableAddress(kind="azure", container=_container(parts.netloc, parts), path=_path(parts.path))
    if scheme == "https":
        in_s3 = _S3_HOST.match(parts.netloc.lower())
        return _azure_https(parts) if in_s3 is None else _s3_https(parts, in_s3)
    raise InvalidRequestError(
        f"{scheme}:// is not a scheme this reader opens", _shown(parts), f"use {SCHEMES_TEXT}"
    )


def _is_text(url: str) -> bool:
    try:
        url.encode()
    except UnicodeEncodeError:
        return False
    return True


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""  # refused where it is taken apart


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:  # its text may repeat a secret
        raise InvalidRequestError(
            "the table's URL cannot be taken apart", "url", f"use {SCHEMES_TEXT}"
        ) from None
    if (
        parts.query
        or parts.fragment
        or (parts.scheme.lower() not in ("abfs", "abfss") and "@" in parts.netloc)
    ):
        raise InvalidRequestError(
            "the table's URL carries a query, a fragment or a user",
            _shown(parts),
            "pass credentials as storage_options (sas_token, account_key, access_key_id, …), or the whole "
            "shared access signature (sv=…&sig=…) as the query of an Azure URL; "
            "write ? and # in a path as %3F and %23",
        )
    return parts


def _shown(parts: SplitResult) -> str:
    """The URL without anything that may be a secret."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


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
            f"file:// URLs name no host, but this one names {parts.netloc!r}",
            _shown(parts),
            "write file:///absolute/path with three slashes",
        )
    if not parts.path:
        raise InvalidRequestError("the URL names no folder", _shown(parts), "write file:///absolute/path")
    return _local(unquote(parts.path))


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
        f"{host!r} is not the host of an Azure storage account",
        _shown(parts),
        f"use {SCHEMES_TEXT}; a private endpoint goes into storage_options as endpoint",
    )


def _container(name: str, parts: SplitResult) -> str:
    found = unquote(name)
    if not found or _NO_CONTAINER.search(found):
        raise InvalidRequestError(
            "the table's URL names no container or bucket", _shown(parts), f"use {SCHEMES_TEXT}"
        )
    return found


def _path(path: str) -> str:
    return "/".join(segment for segment in unquote(path).split("/") if segment)
