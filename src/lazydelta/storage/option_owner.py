"""Whose options these are: an account, a container or a bucket that options name must be the address's.

Why: an endpoint or a key of one account that serves another reads another table under the right name, or
sends the signature of one to the host of the other.
Contract: pure. What the caller gives for another store is an error. No value is repeated but names.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from lazydelta.errors import InvalidRequestError
from lazydelta.redaction import HIDDEN
from lazydelta.storage.address import TableAddress

_NAME = re.compile(r"[a-z0-9$][a-z0-9.-]{0,62}")
_CONTAINERS = {"container_name": "container", "bucket": "bucket"}


def stranger(address: TableAddress, told: Mapping[str, str]) -> str | None:
    """What the options name that is not the address's, in words; None where there is no such thing."""
    account = told.get("account_name")
    is_azure = address.kind == "azure" and address.account is not None
    if is_azure and account is not None and not same_account(account, address.account or ""):
        source = "connection string is" if "connection_string" in told else "storage options are"
        return f"the {source} for the account {_shown(account)!r}"
    for option, word in _CONTAINERS.items():
        if told.get(option, address.container) != address.container:
            return f"the storage options are for the {word} {_shown(told[option])!r}"
    return None


def check_owner(address: TableAddress, told: Mapping[str, str]) -> None:
    """Raise where the caller's options, under their one names, are for another store than the address."""
    what = stranger(address, told)
    if what is not None:
        raise InvalidRequestError(
            f"{what}, and the URL names another",
            f"storage_options for {address.root}",
            "give the options of what the URL names, or leave out account_name, container_name and bucket; "
            "az://container/path takes the account from the options",
        )


def is_endpoint_of(endpoint: str | None, account: str) -> bool:
    """Whether the endpoint names the account, in its host or, as emulators do, in its path; or is none."""
    try:
        parts = urlsplit(endpoint or "")
        host, path = parts.hostname, parts.path.strip("/").partition("/")[0]
    except ValueError:
        return True
    return not host or same_account(path, account) or (not is_ip(host) and same_account(host, account))


def endpoint_account(endpoint: str) -> str:
    """The account in the endpoint's host or, where that has no labels, in its path; empty where none is."""
    try:
        parts = urlsplit(endpoint)
        host = parts.hostname or ""
    except ValueError:
        return ""
    return (
        parts.path.strip("/").partition("/")[0] if is_ip(host) or "." not in host else host.partition(".")[0]
    )


def is_ip(host: str) -> bool:
    """Whether the host is a number, which has no labels to read a name from."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def same_account(one: str, other: str) -> bool:
    """Whether both are one account; one may have the zone of its host behind it."""
    return one.partition(".")[0] == other.partition(".")[0]


def _shown(name: str) -> str:
    """The name, if it can be one: a key may have been given in its place."""
    return name if _NAME.fullmatch(name) else HIDDEN
