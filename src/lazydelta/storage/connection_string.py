"""Azure's connection strings, as the portal gives them: `AccountName=…;AccountKey=…;EndpointSuffix=…`.

Contract: pure. What cannot be read is an error that repeats none of it.
Spec: Azure Storage documentation, "Configure Azure Storage connection strings".
"""

from __future__ import annotations

from lazydelta.errors import InvalidRequestError
from lazydelta.storage.address import PUBLIC_AZURE
from lazydelta.storage.option_names import SIGNATURE, is_true
from lazydelta.storage.option_owner import endpoint_account

_WHERE = "storage option connection_string"


def connection_options(text: str) -> dict[str, str]:
    """The options that the string stands for, under their one names."""
    parts = _parts(text)
    if is_true(parts.get("usedevelopmentstorage")):
        return {"use_emulator": "true"}
    account = parts.get("accountname", "")
    found = {
        "account_name": account,
        "account_key": parts.get("accountkey", ""),
        SIGNATURE: parts.get("sharedaccesssignature", ""),
        "endpoint": parts.get("blobendpoint", "").rstrip("/"),
    }
    protocol = parts.get("defaultendpointsprotocol", "https").lower()
    suffix = parts.get("endpointsuffix", PUBLIC_AZURE)
    if account and not found["endpoint"] and (suffix != PUBLIC_AZURE or protocol != "https"):
        found["endpoint"] = f"{protocol}://{account}.blob.{suffix}"
    if not account and found["endpoint"]:
        found["account_name"] = endpoint_account(found["endpoint"])
    if found["endpoint"].lower().startswith("http://"):
        found["allow_http"] = "true"
    if not found["account_name"] or not (found["account_key"] or found[SIGNATURE]):
        raise _unreadable(
            "it names no account (AccountName), or neither AccountKey nor SharedAccessSignature"
        )
    return {name: value for name, value in found.items() if value}


def _parts(text: str) -> dict[str, str]:
    parts = {}
    for number, part in enumerate(filter(None, (part.strip() for part in text.split(";"))), start=1):
        name, equals, value = part.partition("=")
        if not equals:
            raise _unreadable(f"its part {number} is not NAME=VALUE")
        parts[name.strip().lower()] = value.strip()
    return parts


def _unreadable(why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the connection string cannot be read: {why}",
        _WHERE,
        "copy it from the portal: DefaultEndpointsProtocol=https;AccountName=…;AccountKey=…;EndpointSuffix=…",
    )
