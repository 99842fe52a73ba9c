"""From an address and the user's options to an obstore client. The one place where credentials pass through.

Contract: option names are obstore's, in any case, with or without the `azure_`/`aws_` prefix that delta-rs
users write; an unknown one is an error that names it and never its value. obstore's own retries are off:
`retry.py` retries, so that every attempt is counted. The client's `repr` and `config` are not touched:
both panic in obstore 0.12 when a value came from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import AzureStore, S3Store

from lazydelta.errors import InvalidRequestError
from lazydelta.settings import Settings
from lazydelta.storage.address import FABRIC, PUBLIC_AZURE, TableAddress

Config = dict[str, Any]  # obstore's are TypedDicts, which cannot be built key by key
CONNECT_TIMEOUT_SECONDS_MAX = 5.0
_CLIENT_KEYS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
# The address decides these; the same thing said twice would be an error in obstore.
_ACCOUNT_KEYS = ("account_name", "azure_storage_account_name")
_CONTAINER_KEYS = (
    "container_name",
    "azure_container_name",
    "bucket",
    "bucket_name",
    "aws_bucket",
    "aws_bucket_name",
)


def connect(address: TableAddress, settings: Settings) -> AzureStore | S3Store:
    """A client for the address's container, with the user's options."""
    config, client = _split_options(settings)
    _set_timeouts(client, settings)
    common: Config = {
        "client_options": client,
        "retry_config": {"max_retries": 0},
    }
    for key in _CONTAINER_KEYS:
        config.pop(key, None)
    try:
        if address.kind == "s3":
            config["bucket"] = address.container
        else:
            config.update(_azure_config(address, config))
        return _client(address, {"config": config, **common})
    except UnknownConfigurationKeyError:
        unknown = _unknown_key(address, config)
    except (BaseError, ValueError, TypeError) as error:
        unknown = None
        reason = str(error).partition("\n")[0]
    where = f"storage_options for {address.root}"
    if unknown is not None:
        raise InvalidRequestError(
            f"storage option {unknown!r} is not known", where, f"use {_known_options(address)}"
        )
    raise InvalidRequestError(
        f"the storage options do not make a client: {_without_values(reason, settings.storage_options)}",
        where,
        f"check {_known_options(address)}",
    )


def account_in(options: Mapping[str, str]) -> str | None:
    """The Azure account that the options name, if they do."""
    named = {key.lower(): value for key, value in options.items()}
    if str(named.get("use_emulator", "")).lower() in ("true", "1"):
        return "devstoreaccount1"
    return next((named[key] for key in _ACCOUNT_KEYS if key in named), None)


def credential_options(kind: str) -> str:
    """The options to set when credentials are missing or refused, for error messages."""
    if kind == "s3":
        return (
            "access_key_id and secret_access_key (and session_token), "
            "or skip_signature=true for a public bucket"
        )
    return (
        "account_key, or sas_token, or token, or client_id with client_secret and tenant_id, "
        "or skip_signature=true for a public container"
    )


def _client(address: TableAddress, arguments: Config) -> AzureStore | S3Store:
    return S3Store(**arguments) if address.kind == "s3" else AzureStore(**arguments)


def _split_options(settings: Settings) -> tuple[Config, Config]:
    config: Config = {}
    client: Config = {}
    for given, value in settings.storage_options.items():
        key = given.lower()
        bare = key.removeprefix("azure_").removeprefix("aws_")
        if bare in _CLIENT_KEYS:
            client[bare] = value
        else:
            config[key] = value
    return config, client


def _set_timeouts(client: Config, settings: Settings) -> None:
    """A stall ends an attempt early enough that every attempt fits before the request's deadline."""
    whole = settings.request_timeout_seconds
    stall = whole / settings.request_attempts_max
    client.setdefault("timeout", timedelta(seconds=whole))
    client.setdefault("read_timeout", timedelta(seconds=stall))
    client.setdefault("connect_timeout", timedelta(seconds=min(stall, CONNECT_TIMEOUT_SECONDS_MAX)))


def _azure_config(address: TableAddress, config: Config) -> Config:
    found: Config = {"container_name": address.container}
    if address.account is not None:
        for key in _ACCOUNT_KEYS:
            config.pop(key, None)
        found["account_name"] = address.account
    has_endpoint = any("endpoint" in key and "msi" not in key and "identity" not in key for key in config)
    if not has_endpoint and address.azure_suffix == FABRIC:
        found["use_fabric_endpoint"] = "true"
    elif not has_endpoint and address.azure_suffix != PUBLIC_AZURE:
        found["endpoint"] = f"https://{address.account}.blob.{address.azure_suffix}"
    return found


def _unknown_key(address: TableAddress, config: Config) -> str:
    """Which of the options obstore does not know: asked one by one, as its message may carry more."""
    for key in config:
        try:
            _client(address, {"config": {key: "x"}})
        except UnknownConfigurationKeyError:
            return key
        except (BaseError, ValueError, TypeError):
            continue
    return "?"


def _known_options(address: TableAddress) -> str:
    endpoint = "endpoint and region" if address.kind == "s3" else "account_name and endpoint"
    return f"obstore's names: {credential_options(address.kind)}; {endpoint}; allow_http"


def _without_values(text: str, options: Mapping[str, str]) -> str:
    for value in sorted((str(value) for value in options.values()), key=len, reverse=True):
        text = text.replace(value, "…") if len(value) > 3 else text
    return text
