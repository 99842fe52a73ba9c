"""The many spellings of a store's options, reduced to one each.

Why: delta-rs users write `AZURE_STORAGE_ACCOUNT_KEY`, obstore users `account_key`, others copy variables of
the Azure or AWS command line. Which option wins can only be said of one name.
Contract: case does not matter. The same option in two spellings with two values is an error that names them
and never their values. Pure: the environment is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from lazydelta.errors import InvalidRequestError

SIGNATURE = "sas_token"
CLIENT_NAMES = frozenset(
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
_AZURE_ALIASES = {
    "access_key": "account_key",
    "account": "account_name",
    "authority_id": "tenant_id",
    "bearer_token": "token",
    "identity_endpoint": "msi_endpoint",
    "key": "account_key",
    "master_key": "account_key",
    "sas_key": SIGNATURE,
}
_AZURE_NAMES = frozenset(
    {
        "account_key",
        "account_name",
        "authority_host",
        "client_id",
        "client_secret",
        "connection_string",
        "container_name",
        "credential_type",
        "disable_tagging",
        "encryption_key",
        "endpoint",
        "fabric_cluster_identifier",
        "fabric_session_token",
        "fabric_token_service_url",
        "fabric_workload_host",
        "federated_token_file",
        "msi_endpoint",
        "msi_resource_id",
        "object_id",
        SIGNATURE,
        "skip_signature",
        "tenant_id",
        "token",
        "use_azure_cli",
        "use_emulator",
        "use_fabric_endpoint",
    }
)
_S3_ALIASES = {
    "bucket_name": "bucket",
    "endpoint_url": "endpoint",
    "endpoint_url_s3": "endpoint",
    "sts_endpoint": "endpoint_url_sts",
    "token": "session_token",
}
_S3_NAMES = frozenset(
    {
        "access_key_id",
        "bucket",
        "container_authorization_token_file",
        "container_credentials_full_uri",
        "container_credentials_relative_uri",
        "default_region",
        "endpoint",
        "endpoint_url_sts",
        "imdsv1_fallback",
        "metadata_endpoint",
        "profile",
        "region",
        "role_arn",
        "role_session_name",
        "secret_access_key",
        "session_token",
        "skip_signature",
        "virtual_hosted_style_request",
        "web_identity_token_file",
    }
)

# Flags that are looked at here; obstore judges the others.
_FLAGS = frozenset({"skip_signature", "use_azure_cli", "use_emulator", "virtual_hosted_style_request"})
_ADDRESSES = frozenset(
    {
        "authority_host",
        "container_credentials_full_uri",
        "endpoint",
        "endpoint_url_sts",
        "fabric_token_service_url",
        "metadata_endpoint",
        "msi_endpoint",
    }
)
_SENT = frozenset({"access_key_id", "session_token", "token"})  # in headers, which are ASCII
_URL = re.compile(r"https?://[A-Za-z0-9._~%:@\[\]-]+[^\s\"<>\\^`{|}]*", re.IGNORECASE)
_DELETE = 0x7F
# Names that become part of a host or a path.
_FORMS = {
    "account_name": (re.compile(r"[a-z0-9-]+(\.z[0-9]{1,2})?"), "the account's name alone, as in mylake"),
    "bucket": (re.compile(r"[A-Za-z0-9._-]+"), "the bucket's name alone, as in my-lake"),
    "container_credentials_relative_uri": (re.compile(r"/[^\s]*"), "a path, as in /v2/credentials/x"),
    "default_region": (re.compile(r"[A-Za-z0-9-]+"), "a region, as in eu-central-1"),
    "region": (re.compile(r"[A-Za-z0-9-]+"), "a region, as in eu-central-1"),
    "tenant_id": (re.compile(r"[A-Za-z0-9.-]+"), "the tenant's id or domain"),
}
_YES, _NO = ("true", "1", "yes", "on", "y"), ("false", "0", "no", "off", "n")


def azure_name(given: str) -> str:
    """The one spelling of an option of Azure."""
    key = given.lower()
    bare = key.removeprefix("azure_storage_") if key.startswith("azure_storage_") else key
    bare = bare.removeprefix("azure_")
    return _AZURE_ALIASES.get(bare, bare)


def s3_name(given: str) -> str:
    """The one spelling of an option of S3."""
    bare = given.lower().removeprefix("aws_")
    return _S3_ALIASES.get(bare, bare)


def told_options(options: Mapping[str, Any], *, kind: str) -> dict[str, Any]:  # Any: obstore judges them
    """The caller's options, each under its one name; options without a value (None) are none."""
    told = _renamed(options, azure_name if kind == "azure" else s3_name)
    for name in _FLAGS & set(told):
        if told[name].strip().lower() not in (*_YES, *_NO):
            raise InvalidRequestError(
                f"the storage option {name} is neither true nor false", "storage_options", "give one of them"
            )
    return told


def found_options(environment: Mapping[str, str], *, kind: str) -> dict[str, str]:
    """What the environment says, as far as a client would look at it."""
    prefix = "AZURE_" if kind == "azure" else "AWS_"
    known = CLIENT_NAMES | (_AZURE_NAMES if kind == "azure" else _S3_NAMES)
    rename = azure_name if kind == "azure" else s3_name
    found: dict[str, str] = {}
    for name in sorted(environment):  # more special spellings come later: AWS_ENDPOINT_URL, then …_URL_S3
        if name.startswith(prefix) and rename(name) in known and environment[name]:
            found[rename(name)] = _text(rename(name), environment[name])
    if kind == "azure" and environment.get("IDENTITY_ENDPOINT"):  # App Service and its like
        found["msi_endpoint"] = environment["IDENTITY_ENDPOINT"]
    return found


def check_values(options: Mapping[str, Any], where: str) -> None:
    """Raise where a value cannot be part of a request: obstore ends the thread that meets one."""
    for name in sorted(options):
        value = options[name]
        if not isinstance(value, str) or name == "root_certificate":
            continue
        is_broken = any(ord(character) < ord(" ") or ord(character) == _DELETE for character in value)
        if is_broken or (name in _SENT and not value.isascii()):
            raise InvalidRequestError(
                f"the option {name} has a line break or another character that cannot be sent",
                where,
                "give it without: a value that was read from a file may end with one",
            )
        form, wanted = _FORMS.get(name, (None, ""))
        if name in _ADDRESSES:
            _check_address(name, value, where)
        elif form is not None and not form.fullmatch(value):
            raise InvalidRequestError(
                f"the option {name} is not of the form it must have", where, f"write {wanted}"
            )


def is_true(value: str | None) -> bool:
    """Whether an option's text means yes."""
    return (value or "").strip().lower() in _YES


def _check_address(name: str, value: str, where: str) -> None:
    """Raise where it is no URL with a host; without what Python says of it, which may repeat a password."""
    try:
        has_host = _URL.fullmatch(value) is not None and bool(urlsplit(value).hostname)
    except ValueError:
        has_host = False
    what = "" if has_host else f"the option {name} is not the URL of a host"
    try:
        _ = urlsplit(value).port if has_host else None
    except ValueError:
        what = f"the {name} is no address: its port is not a number up to 65535"
    if what:
        raise InvalidRequestError(what, where, "write https://host or http://host:8080")


def _text(name: str, value: str) -> str:
    """The value without what a file or a portal puts around it."""
    return value.strip().rstrip("/") if name == "endpoint" else value.strip()


def _renamed(options: Mapping[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for given, value in options.items():
        if value is None:
            continue
        name = rename(given)
        if name in CLIENT_NAMES:  # obstore takes durations and bytes there
            text = value
        else:
            text = str(value).lower() if isinstance(value, bool) else _text(name, str(value))
        if named.setdefault(name, text) != text:
            raise InvalidRequestError(
                f"the storage option {name} is given in two spellings with two values",
                "storage_options",
                f"keep one of them: {name}",
            )
    return named
