"""A table's address as Spark wants it.

Why: lazydelta and Hadoop spell the same stores differently (`s3://` and `s3a://`, `az://` and `abfss://`),
and Hadoop takes a path as it stands where lazydelta decodes a URL once.
Contract: pure. Local tables are plain paths. A scheme that Hadoop knows is kept: `abfs://` stays without TLS.
What neither side of lazydelta knows (`hdfs://`, hosts of other clouds) passes as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.config import IngestConfig
from lazydelta.storage.address import given_address

# Spellings that Hadoop reads differently, or, without a scheme, takes for names below a folder of its own.
_STORE = re.compile(r"^(?:az|azure|abfss?|https|s3a?)://", re.IGNORECASE)
_LOCAL = re.compile(r"^(?!\w[\w+.-]*:)|^file:", re.IGNORECASE)
_OTHER_CLOUD = re.compile(r"^abfss?://[^/]*\.", re.IGNORECASE)
_GLOB = re.compile(r"([\[\]{}*?\\])")


def spark_url(url: str, storage_options: Mapping[str, str] | None = None) -> str:
    """The address of the table for Spark; the options may name the Azure account."""
    address = given_address(url)
    if address.kind == "local":
        return address.path
    if address.kind == "s3":
        return f"s3a://{address.container}/{address.path}"
    from lazydelta.storage.azure_access import azure_account

    account = address.account or azure_account(storage_options or {}, {})
    if account is None:
        raise InvalidRequestError(
            "Spark needs the Azure account in the table's address",
            address.root,
            "write abfss://container@account/path, or give the storage option account_name",
        )
    scheme = "abfs" if url.lower().startswith("abfs://") else "abfss"
    return f"{scheme}://{address.container}@{account}.dfs.{address.azure_suffix}/{address.path}"


def with_spark_urls(config: IngestConfig) -> IngestConfig:
    """The same ingest with the addresses of its tables as Spark wants them; others pass as they are."""
    addresses = {"target": config.target, "rejects": config.rejects_path}
    respelled = {
        name: spark_url(url, config.storage_options) if _LOCAL.match(url) else store_url(url, config)
        for name, url in addresses.items()
    }
    location = config.checkpoint_location
    if location:
        respelled["checkpoint_location"] = store_url(location, config)
    return msgspec.structs.replace(config, **respelled)


def store_url(url: str, config: IngestConfig) -> str:
    """An address in a store as Spark wants it; any other stays as it is."""
    if not _STORE.match(url):
        return url
    try:
        return spark_url(url, config.storage_options)
    except InvalidRequestError:
        if _OTHER_CLOUD.match(url):
            return url  # a host that Hadoop may know
        raise


def reader_url(url: str) -> str:
    """An address that Spark has, as lazydelta's own readers want it: they decode it once."""
    if not _STORE.match(url):
        return url
    return url.replace("%", "%25").replace("?", "%3F").replace("#", "%23")


def literal_path(path: str) -> str:
    """The path for a reader that takes `*` and its like for patterns."""
    return _GLOB.sub(r"\\\1", path)
