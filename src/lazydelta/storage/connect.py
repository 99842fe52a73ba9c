"""From an address and the user's options to an obstore client. The one place where credentials pass through.

Contract: option names are obstore's, in any case, with or without the `azure_`/`aws_` prefix that delta-rs
users write; an unknown one is an error that names it and never its value. What the caller says wins over the
environment (`azure_access.py`, `s3_access.py`). obstore's own retries are off: `retry.py` retries, so that
every attempt is counted. The client's `repr` and `config` are not touched: both panic in obstore 0.12 when a
value came from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import AzureStore, S3Store

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.redaction import redacted, shown_name
from lazydelta.settings import Settings, process_environment
from lazydelta.storage.address import TableAddress
from lazydelta.storage.aws_profile import aws_profile
from lazydelta.storage.azure_access import CHAIN, azure_access
from lazydelta.storage.machine_identity import machine_identity
from lazydelta.storage.option_names import CLIENT_NAMES, SIGNATURE, found_options, told_options
from lazydelta.storage.providers import RenewingProvider, options_of, provider_of
from lazydelta.storage.s3_access import s3_access
from lazydelta.storage.signature_end import end_of

Config = dict[str, Any]  # obstore's are TypedDicts, which cannot be built key by key


class Client(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A client, and what it asks for credentials, where that is Python."""

    store: AzureStore | S3Store
    provider: RenewingProvider | None = None
    host: str | None = None  # an endpoint of the user's own
    signature_end: datetime | None = None  # of what it signs in with, where that says it

    def __repr__(self) -> str:
        return f"Client({redacted(self.host or '')})"


def connect(address: TableAddress, settings: Settings) -> AzureStore | S3Store:
    """A client of obstore for the address's container, with the user's options."""
    return connected(address, settings, process_environment()).store


def connected(address: TableAddress, settings: Settings, environment: Mapping[str, str]) -> Client:
    """The same with its provider."""
    config, provider = _signing(address, settings, environment)
    client = {name: config.pop(name) for name in CLIENT_NAMES & set(config)}
    found = found_options(environment, kind=address.kind)
    client = {name: found[name] for name in CLIENT_NAMES & set(found)} | client
    _set_timeouts(client, settings)
    arguments: Config = {"config": config, "client_options": client, "retry_config": {"max_retries": 0}}
    if provider is not None:
        arguments["credential_provider"] = provider
    try:
        store = _client(address, arguments)
    except UnknownConfigurationKeyError:
        unknown = _unknown_key(address, config)
    except (BaseError, ValueError, TypeError) as error:
        unknown = None
        reason = str(error).partition("\n")[0]
    else:
        host = config.get("endpoint") or config.get("aws_endpoint_url_s3")
        signature = config.get(SIGNATURE) if config.get("credential_type") == SIGNATURE else None
        return Client(store=store, provider=provider, host=host, signature_end=end_of(signature))
    where = f"storage_options for {address.root}"
    if unknown is not None:
        raise InvalidRequestError(
            f"storage option {shown_name(unknown)!r} is not known", where, f"use {_known_options(address)}"
        )
    reason = _without_values(reason, [*config.values(), *client.values()])
    raise InvalidRequestError(
        f"the storage options do not make a client: {reason}",
        where,
        f"check {_known_options(address)}",
    )


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


def _signing(
    address: TableAddress, settings: Settings, environment: Mapping[str, str]
) -> tuple[Config, RenewingProvider | None]:
    """obstore's options, and what it asks for credentials if they do not have them."""
    sign = _azure_signing if address.kind == "azure" else _s3_signing
    config, asked = sign(address, settings, environment)
    if settings.credential_provider is not None:
        asked = settings.credential_provider
        config.pop("credential_type", None)
        config["skip_signature"] = "false"
    if asked is None:
        return config, None
    brought = told_options(options_of(asked), kind=address.kind)
    found = found_options(environment, kind=address.kind)
    if "region" in found or "default_region" in found:
        brought.pop("region", None)
    return {**brought, **config}, provider_of(asked, kind=address.kind)


def _azure_signing(
    address: TableAddress, settings: Settings, environment: Mapping[str, str]
) -> tuple[Config, Any]:  # Any: what is asked for credentials
    has_provider = settings.credential_provider is not None
    access = azure_access(address, settings.storage_options, environment, has_provider=has_provider)
    return access.options, machine_identity() if access.kind == CHAIN else None


def _s3_signing(
    address: TableAddress, settings: Settings, environment: Mapping[str, str]
) -> tuple[Config, Any]:  # Any: what is asked for credentials
    access = s3_access(address, settings.storage_options, environment)
    if access.keys is not None:
        keys = access.keys
        return access.options, lambda: keys
    is_named = settings.credential_provider is None and access.profile is not None
    return access.options, _session(access.profile or "", settings) if is_named else None


def _session(profile: str, settings: Settings) -> Any:  # Any: boto3's
    found = aws_profile(profile)
    if found is None and any(option.lower().endswith("profile") for option in settings.storage_options):
        raise InvalidRequestError(
            "a profile of the AWS command line needs boto3, which is not installed",
            "storage_options",
            "install boto3, or give access_key_id and secret_access_key",
        )
    return found


def _client(address: TableAddress, arguments: Config) -> AzureStore | S3Store:
    return S3Store(**arguments) if address.kind == "s3" else AzureStore(**arguments)


def _set_timeouts(client: Config, settings: Settings) -> None:
    """A stall ends an attempt early enough that every attempt fits before the request's deadline."""
    whole = min(settings.request_timeout_seconds, limits.SECONDS_MAX)
    stall = whole / settings.request_attempts_max
    client.setdefault("timeout", timedelta(seconds=whole))
    client.setdefault("read_timeout", timedelta(seconds=stall))
    client.setdefault("connect_timeout", timedelta(seconds=min(stall, limits.CONNECT_SECONDS_MAX)))


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


def _without_values(text: str, values: list[Any]) -> str:
    for value in sorted((str(value) for value in values), key=len, reverse=True):
        text = text.replace(value, "…") if len(value) > 3 else text
    return text
