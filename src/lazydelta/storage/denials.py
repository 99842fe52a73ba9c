"""Why a store refused, in words that say what to change: the permission, the key, the token, the provider.

Why: "403" is one answer to many mistakes. Stores name them by a code, and what was being done tells which
permission a signature or a role lacks.
Contract: pure. Of the text only codes are repeated, and what `ProviderProblem` says; never URLs or bodies.
"""

from __future__ import annotations

import re

import msgspec

_PROVIDER = re.compile(r"ProviderProblem: ([^\n]{1,300})")
_DIRECTORY_CODE = re.compile(r"\bAADSTS[0-9]{4,8}\b")
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
# Marks of obstore's text -> what failed, and what to do; the first that is found counts.
_SOURCES = (
    (
        ("External Azure credential provider", "External AWS credential provider"),
        "no credentials: what the provider gave cannot be used",
        "an access key is base64, a signature is name=value&name=value (docs/storage.md)",
    ),
    (
        ("federated token file", "FederatedTokenFile", "Failed to read token file", "EKS token file"),
        "no credentials: the file with the identity token cannot be read",
        "check federated_token_file (Azure) or web_identity_token_file (S3)",
    ),
    (
        ("AzureCli", "get-access-token"),
        "no credentials: the Azure CLI gave no token",
        "run az login, or set {options}",
    ),
    (
        ("169.254.169.254", "169.254.170.2", "latest/api/token", "security-credentials"),
        "no credentials were given, and none were found",
        "set {options}",
    ),
    (
        ("token request", "TokenRequest", "://sts.", "AssumeRoleWithWebIdentity"),
        "",
        "check client_id, client_secret and tenant_id (Azure), role_arn and web_identity_token_file (S3), "
        "and that the token endpoint can be reached",
    ),
)
_PERMISSION_CODES = frozenset(
    {
        "AuthorizationPermissionMismatch",
        "AuthorizationResourceTypeMismatch",
        "InsufficientAccountPermissions",
    }
)
_EXPIRED_CODES = frozenset({"ExpiredToken", "TokenRefreshRequired", "RequestExpired"})
_CLOCK_CODE = "RequestTimeTooSkewed"  # of S3
_REFUSED_CODES = frozenset(
    {
        "AuthenticationFailed",
        "InvalidAccessKeyId",
        "InvalidAuthenticationInfo",
        "InvalidToken",
        "SignatureDoesNotMatch",
    }
)
DENIAL_CODES = _EXPIRED_CODES | _REFUSED_CODES  # whatever the status: some come with 400
_OUT_OF_TIME = "not valid in the specified time frame"  # Azure says so of a signature before its start, too
_EXPIRED_MARKS = (
    "token is expired",
    "token has expired",
    "Lifetime",
)
# Request -> (verb, letter of a signature, action of a policy).
_PERMISSIONS = {
    "list": ("list", "l (list)", "s3:ListBucket"),
    "get": ("read", "r (read)", "s3:GetObject"),
    "get_range": ("read", "r (read)", "s3:GetObject"),
    "head": ("read", "r (read)", "s3:GetObject"),
    "put": ("write", "c (create) or w (write)", "s3:PutObject"),
    "delete": ("delete", "d (delete)", "s3:DeleteObject"),
}


class Denial(msgspec.Struct, frozen=True):
    """What happened, and what to do about it."""

    what: str
    fix: str


def token_denial(text: str, options: str) -> Denial | None:
    """Credentials that could not be had at all, by obstore's text; `options` are those to set."""
    told = _PROVIDER.search(text)
    if told is not None:
        return Denial(f"no credentials: {told[1]}", f"mend the credential provider, or set {options}")
    for marks, what, fix in _SOURCES:
        if any(mark in text for mark in marks):
            return Denial(what or f"no credentials: {_endpoint_said(text)}", fix.format(options=options))
    return None


def refusal(code: str | None, text: str, *, kind: str, request: str, short: str, options: str) -> Denial:
    """Credentials that the store refused. `request` is what was asked, `short` its answer in brief."""
    verb, letter, action = _PERMISSIONS.get(request, _PERMISSIONS["get"])
    untimely = _untimely(code, text, short=short, options=options)
    if untimely is not None:
        return untimely
    if kind == "azure" and code in _PERMISSION_CODES:
        return Denial(
            f"the credentials do not allow to {verb} here ({short})",
            f"give the signature the permission {letter}"
            f"{' of a container or an account, not of one blob' if request == 'list' else ''}, "
            f"or the identity a role that may {verb} blobs (Storage Blob Data "
            f"{'Reader' if verb in ('read', 'list') else 'Contributor'})",
        )
    if kind == "s3" and code == "AccessDenied":
        return Denial(
            f"the credentials do not allow to {verb} here ({short})",
            f"allow {action} on this bucket and path; or set {options}",
        )
    if code in _REFUSED_CODES:
        return Denial(
            f"the store does not accept the key, signature or token ({short})",
            f"check that it belongs to this account and is not cut; set {options}",
        )
    return Denial(
        f"the store refused the credentials ({short})",
        f"set {options}; check that they may {verb} this path",
    )


def _untimely(code: str | None, text: str, *, short: str, options: str) -> Denial | None:
    """What was refused because of the time."""
    if _OUT_OF_TIME in text:
        return Denial(
            f"the credentials have expired, or do not hold yet ({short})",
            "check the signature's start and end (st and se) and this machine's clock; or get another one",
        )
    if code == _CLOCK_CODE:
        return Denial(
            f"the clock of this machine is not that of the store ({short})",
            "set the clock by the network's time",
        )
    if code in _EXPIRED_CODES or any(mark in text for mark in _EXPIRED_MARKS):
        return Denial(
            f"the credentials have expired ({short})",
            f"get new ones, or give a credential_provider that can; or set {options}",
        )
    return None


def _endpoint_said(text: str) -> str:
    status, code = _STATUS.search(text), _DIRECTORY_CODE.search(text)
    if status is None:
        return "the token endpoint cannot be reached"
    words = [f"HTTP {status[1]}", *([] if code is None else [code[0]])]
    return f"the token endpoint refused ({', '.join(words)})"
