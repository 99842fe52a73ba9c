"""How to sign in to Azure: the caller's options, then the environment, then what the machine itself has.

Why: obstore looks at the environment by itself and ranks ways of signing in by their kind, so a key in the
environment would win over a signature that the caller gave. Here the kind is chosen first, then told to it.
Contract: pure. A way of signing in that the options name wins over every one in the environment; where
several stand in the same place, obstore's order holds: token, account key, workload identity, client secret,
signature, Azure CLI, managed identity. Nothing named at all is `CHAIN`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.storage.address import FABRIC, PUBLIC_AZURE, TableAddress, is_signature
from lazydelta.storage.connection_string import connection_options
from lazydelta.storage.option_names import SIGNATURE, check_values, found_options, is_true, told_options
from lazydelta.storage.option_owner import check_owner, is_endpoint_of, same_account

CHAIN = "chain"  # nothing is named: managed identity, then the Azure CLI
ANONYMOUS = "anonymous"
EMULATOR_ACCOUNT = "devstoreaccount1"
# Azurite's published development key; it opens nothing else.
_EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_EMULATOR_URL = "http://127.0.0.1:10000"
_EMULATOR_VARIABLE = "AZURITE_BLOB_STORAGE_URL"
# Option -> kind, in obstore's order.
_KINDS = {
    "token": "bearer_token",
    "account_key": "access_key",
    "federated_token_file": "workload_identity",
    "client_secret": "client_secret",
    SIGNATURE: "sas_token",
}
# What is for one account and no other.
_OF_AN_ACCOUNT = ("account_name", "account_key", SIGNATURE, "endpoint", "connection_string", "use_emulator")
_IDENTITIES = ("client_id", "object_id", "msi_resource_id")
_FABRIC_SESSION = (
    "fabric_token_service_url",
    "fabric_workload_host",
    "fabric_session_token",
    "fabric_cluster_identifier",
)


class AzureAccess(msgspec.Struct, frozen=True, kw_only=True):
    """obstore's options for one container, and the kind of signing in. Holds secrets: never shown."""

    kind: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"AzureAccess({self.kind})"


def azure_access(
    address: TableAddress,
    options: Mapping[str, object],
    environment: Mapping[str, str],
    *,
    has_provider: bool = False,
) -> AzureAccess:
    """What to give to obstore for this container; `has_provider`: the caller signs in by one of its own."""
    told = _expanded(told_options(options, kind="azure"))
    is_told = has_provider or _named_kind(told) is not None or is_true(told.get("use_emulator"))
    found = _expanded_variables(found_options(environment, kind="azure"), is_signed=is_told)
    told, found = _emulated(told, found, environment)
    check_owner(address, told)
    found = _of_this_account(address, found, told, is_signed=has_provider or _named_kind(told) is not None)
    kind = azure_kind(told, found)
    merged = {**found, **told}
    where = f"storage_options or environment for {address.root}"
    check_values(merged, where)
    if kind == "sas_token" and not is_signature(merged.get(SIGNATURE, "")):
        raise InvalidRequestError(
            f"the option {SIGNATURE} is not a shared access signature",
            where,
            "give what stands behind the ? of a signed URL, and nothing else: sv=…&sig=…",
        )
    account = address.account or merged.get("account_name")
    if account is not None:
        merged["account_name"] = account
        merged |= _endpoint(address, account, merged)
    merged["container_name"] = address.container
    merged["use_emulator"] = "false"  # said as an endpoint and a key
    merged["skip_signature"] = "true" if kind == ANONYMOUS else "false"
    merged.pop("connection_string", None)
    merged.pop("credential_type", None)
    if kind not in (CHAIN, ANONYMOUS):
        merged["credential_type"] = kind
    return AzureAccess(kind=kind, options=merged)


def azure_account(options: Mapping[str, object], environment: Mapping[str, str]) -> str | None:
    """The account that the options name, or else the environment."""
    for place in (told_options(options, kind="azure"), found_options(environment, kind="azure")):
        expanded = _expanded(place)
        if "account_name" in expanded:
            return expanded["account_name"]
        if is_true(expanded.get("use_emulator")):
            return EMULATOR_ACCOUNT
    return None


def azure_kind(told: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Which way of signing in the options ask for, or else the environment."""
    asked = _named_kind(told)
    if asked is not None:
        return asked
    if any(name in told for name in _IDENTITIES):  # an identity without a secret of its own
        if "federated_token_file" in found and "client_id" in told:
            return "workload_identity"
        return "client_secret" if "client_secret" in found and "client_id" in told else "managed_identity"
    if all(name in told or name in found for name in _FABRIC_SESSION):
        return "auto"  # a notebook of Fabric; obstore takes its session only where it chooses
    return _named_kind(found) or CHAIN


def _named_kind(options: Mapping[str, str]) -> str | None:
    """The kind that these options name by themselves."""
    asked = options.get("credential_type", "auto").lower()
    if asked != "auto":
        return asked
    if is_true(options.get("skip_signature")):
        return ANONYMOUS
    for name, kind in _KINDS.items():
        if name in options:
            return kind
    if is_true(options.get("use_azure_cli")):
        return "azure_cli"
    return "managed_identity" if "msi_endpoint" in options else None


def _expanded(options: dict[str, str]) -> dict[str, str]:
    """With what a connection string stands for, where there is one; options beside it win."""
    text = options.get("connection_string")
    return options if text is None else {**connection_options(text), **options}


def _expanded_variables(found: dict[str, str], *, is_signed: bool) -> dict[str, str]:
    """The same of the environment, whose string need not be readable where the caller signs in otherwise."""
    try:
        return _expanded(found)
    except InvalidRequestError as problem:
        if not is_signed:
            raise InvalidRequestError(problem.what, "AZURE_STORAGE_CONNECTION_STRING", problem.fix) from None
    return {name: value for name, value in found.items() if name != "connection_string"}


def _of_this_account(
    address: TableAddress, found: dict[str, str], told: Mapping[str, str], *, is_signed: bool
) -> dict[str, str]:
    """The environment without what belongs to another account than the URL's.

    An endpoint there serves the account beside it, or the one that it names itself, and no other.
    """
    other = found.get("account_name")
    if address.account is None or (other is not None and same_account(other, address.account)):
        return found
    if other is None:
        if "endpoint" not in told and not is_endpoint_of(found.get("endpoint"), address.account):
            raise InvalidRequestError(
                "the environment has an endpoint (AZURE_STORAGE_ENDPOINT), but not the account it is for",
                f"environment for {address.root}",
                "set AZURE_STORAGE_ACCOUNT_NAME beside it, or give the endpoint as a storage option",
            )
        return found
    kept = {name: value for name, value in found.items() if name not in _OF_AN_ACCOUNT}
    if not is_signed and _named_kind(kept) is None and _named_kind(found) is not None:
        raise InvalidRequestError(
            f"the environment signs in to the account {other!r}",
            f"environment for {address.root}",
            "give storage_options for the account in the URL, or write az://container/path",
        )
    return kept


def _emulated(
    told: dict[str, str], found: dict[str, str], environment: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Azurite's account, key and endpoint, where the options or the environment ask for it."""
    in_told = is_true(told.get("use_emulator"))
    in_found = "use_emulator" not in told and is_true(found.get("use_emulator"))
    if not in_told and not in_found:
        return told, found
    place = told if in_told else found
    account = place.get("account_name", EMULATOR_ACCOUNT)
    base = environment.get(_EMULATOR_VARIABLE) or _EMULATOR_URL
    usual = {"account_name": account, "endpoint": f"{base.rstrip('/')}/{account}", "allow_http": "true"}
    place = {**usual, **place}
    if _named_kind(place) is None:
        place["account_key"] = _EMULATOR_KEY
    return (place, found) if in_told else (told, place)


def _endpoint(address: TableAddress, account: str, options: Mapping[str, str]) -> dict[str, str]:
    """Where the account answers, unless the options say; and its name without the zone of its host."""
    has_zone = "." in account
    own_name = (
        {"account_name": account.partition(".")[0]} if has_zone and address.azure_suffix != FABRIC else {}
    )
    if "endpoint" in options:
        return own_name
    if address.azure_suffix == FABRIC and not has_zone:
        return {"use_fabric_endpoint": "true"}
    if address.azure_suffix == PUBLIC_AZURE and not has_zone:
        return {}
    return {"endpoint": f"https://{account}.blob.{address.azure_suffix}", **own_name}
