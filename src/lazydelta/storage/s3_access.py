"""How to sign in to S3: the caller's options, then the environment, then a profile, then the machine.

Why: obstore merges options and environment name by name, so a session token of the environment would be sent
with the caller's keys, and keys of the environment would win over a role that the caller named.
Contract: pure, but for whether files of the AWS command line exist. Keys of the caller stand alone. A role or
a container's credentials in the options beside keys in the environment is an error: obstore would take those.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.storage.address import TableAddress
from lazydelta.storage.option_names import (
    CLIENT_NAMES,
    check_values,
    found_options,
    is_true,
    told_options,
)
from lazydelta.storage.option_owner import check_owner, is_ip

_KEYS = ("access_key_id", "secret_access_key")
_ROLES = (
    "web_identity_token_file",
    "role_arn",
    "container_credentials_relative_uri",
    "container_credentials_full_uri",
    "metadata_endpoint",
)


class S3Access(msgspec.Struct, frozen=True, kw_only=True):
    """obstore's options for one bucket. Holds secrets: never shown.

    `keys`: static credentials that must be handed over as they are; `profile`: one of the AWS command line
    ("" for the usual one); at most one of them is set.
    """

    options: dict[str, str]
    keys: dict[str, str | None] | None = None
    profile: str | None = None

    def __repr__(self) -> str:
        return "S3Access()"


def s3_access(
    address: TableAddress, options: Mapping[str, object], environment: Mapping[str, str]
) -> S3Access:
    """What to give to obstore for this bucket."""
    told, found = told_options(options, kind="s3"), found_options(environment, kind="s3")
    where = f"storage_options or environment for {address.root}"
    check_values({**found, **told, "bucket": address.container}, where)
    check_owner(address, told)
    _check(told, found, address)
    asked_profile = told.pop("profile", None)
    config = _config(address, told, found)
    if is_true(told.get("skip_signature")):
        return S3Access(options=config)
    if _KEYS[0] in told:
        config["skip_signature"] = "false"
        is_mixed = "session_token" in found and "session_token" not in told
        return S3Access(options=config, keys=_static(told) if is_mixed else None)
    if asked_profile is not None:
        config["skip_signature"] = "false"
        return S3Access(options=config, profile=asked_profile)
    has_role = any(name in told or name in found for name in _ROLES)
    if any(name in found for name in _KEYS) or has_role or is_true(found.get("skip_signature")):
        return S3Access(options=config)
    return S3Access(options=config, profile=_usual_profile(environment))


def _check(told: Mapping[str, str], found: Mapping[str, str], address: TableAddress) -> None:
    where = f"storage_options for {address.root}"
    given = [name for name in _KEYS if name in told]
    if len(given) == 1:
        missing = next(name for name in _KEYS if name not in told)
        raise InvalidRequestError(
            f"the storage options have {given[0]} without {missing}", where, "give both"
        )
    roles = [name for name in _ROLES if name in told]
    if roles and not given and any(name in found for name in _KEYS):
        raise InvalidRequestError(
            f"the storage options name {roles[0]}, but the environment has keys, and those would be used",
            where,
            "unset AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give a credential_provider",
        )


def _config(address: TableAddress, told: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    """Options and environment as one; keys of the caller stand alone."""
    passed_by = {*CLIENT_NAMES, "bucket", "profile"} | (
        {*_KEYS, "session_token"} if _KEYS[0] in told else set()
    )
    config = {name: value for name, value in found.items() if name not in passed_by} | dict(told)
    config["bucket"] = address.container
    default = config.pop("default_region", None)
    region = told.get("region") or told.get("default_region") or config.get("region") or default
    if region or address.region:
        config["region"] = region or address.region or ""
    endpoint = config.pop("endpoint", None)
    if endpoint is not None:  # under the name that no variable wins over
        hosted = is_true(config.get("virtual_hosted_style_request"))
        config["aws_endpoint_url_s3"] = _with_bucket(endpoint, address.container) if hosted else endpoint
    return config


def _with_bucket(endpoint: str, bucket: str) -> str:
    """The endpoint with the bucket in its host, where it is not there yet."""
    scheme, mark, host = endpoint.partition("://")
    if is_ip(urlsplit(endpoint).hostname or ""):
        raise InvalidRequestError(
            "the endpoint is a number, which cannot have the bucket before it",
            "storage option virtual_hosted_style_request",
            "leave it out, so that the bucket stands in the path, or give an endpoint with a name",
        )
    return endpoint if not mark or host.startswith(f"{bucket}.") else f"{scheme}://{bucket}.{host}"


def _static(told: Mapping[str, str]) -> dict[str, str | None]:
    return {
        "access_key_id": told["access_key_id"],
        "secret_access_key": told["secret_access_key"],
        "token": told.get("session_token"),
    }


def _usual_profile(environment: Mapping[str, str]) -> str | None:
    """The profile that the AWS command line would take, where it has any."""
    named = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE")
    if named:
        return named
    home = environment.get("HOME") or environment.get("USERPROFILE") or ""
    files = (
        environment.get("AWS_SHARED_CREDENTIALS_FILE") or f"{home}/.aws/credentials",
        environment.get("AWS_CONFIG_FILE") or f"{home}/.aws/config",
    )
    return "" if any(Path(file).is_file() for file in files) else None
