"""What an error says about credentials that were refused, and what it does not."""

from __future__ import annotations

import pytest
from obstore.exceptions import GenericError, PermissionDeniedError, UnauthenticatedError

from lazydelta.errors import AccessDeniedError
from lazydelta.storage.failures import judge

WHERE = "abfss://c@acct.dfs.core.windows.net/t/_delta_log"
BODY = (
    "Error performing GET https://acct.blob.core.windows.net/c?sig=HUSH in 1ms - Server returned non-2xx "
    "status code: {status} Status: <?xml version='1.0'?>"
    "<Error><Code>{code}</Code><Message>HUSH {message}</Message></Error>"
)


def told(error: Exception, *, kind: str = "azure", request: str = "get") -> AccessDeniedError:
    found = judge(error, kind=kind, where=WHERE, request=request)
    assert isinstance(found, AccessDeniedError), found
    assert "HUSH" not in str(found)
    assert found.where == WHERE
    return found


def refused(code: str, status: int = 403, message: str = "") -> PermissionDeniedError:
    return PermissionDeniedError(BODY.format(code=code, status=status, message=message))


@pytest.mark.parametrize(
    ("request_kind", "verb", "letter"),
    [
        ("list", "list", "l (list)"),
        ("get", "read", "r (read)"),
        ("get_range", "read", "r (read)"),
        ("put", "write", "c (create)"),
    ],
)
def test_a_signature_without_a_permission_says_which_one(request_kind: str, verb: str, letter: str) -> None:
    error = told(refused("AuthorizationPermissionMismatch"), request=request_kind)
    assert f"do not allow to {verb} here (HTTP 403, AuthorizationPermissionMismatch)" in error.what
    assert letter in error.fix


def test_a_policy_without_a_permission_says_which_action() -> None:
    error = told(refused("AccessDenied"), kind="s3", request="list")
    assert "do not allow to list here" in error.what
    assert "s3:ListBucket" in error.fix


@pytest.mark.parametrize(
    "error",
    [
        GenericError(BODY.format(code="ExpiredToken", status=400, message="")),
        refused("AuthenticationFailed", 403, "Signature not valid in the specified time frame"),
        UnauthenticatedError(
            BODY.format(code="InvalidAuthenticationInfo", status=401, message="The token is expired.")
        ),
    ],
)
def test_credentials_that_ran_out_are_called_so(error: Exception) -> None:
    assert "have expired" in told(error, kind="s3").what


@pytest.mark.parametrize(
    "code", ["InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed", "InvalidToken"]
)
def test_a_wrong_key_is_called_so(code: str) -> None:
    assert "does not accept the key, signature or token" in told(refused(code), kind="s3").what


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Error performing token request: Error performing POST https://login/oauth2/v2.0/token?HUSH - "
            "Server returned non-2xx status code: 401 Unauthorized: {'error': 'AADSTS7000215: HUSH'}",
            "the token endpoint refused (HTTP 401, AADSTS7000215)",
        ),
        (
            "Error performing token request: Error performing POST https://login: HttpError HUSH",
            "cannot be reached",
        ),
        (
            "path External Azure credential provider: ValueError: HUSH",
            "what the provider gave cannot be used",
        ),
        ("Error reading federated token file ", "the file with the identity token cannot be read"),
        ("'az account get-access-token' command failed: HUSH", "the Azure CLI gave no token"),
        (
            "path External Azure credential provider: ProviderProblem: the provider raised OSError\nHUSH",
            "raised OSError",
        ),
        ("Error performing PUT http://169.254.169.254/latest/api/token HUSH", "none were found"),
    ],
)
def test_credentials_that_could_not_be_had_say_where_it_failed(text: str, words: str) -> None:
    assert words in told(GenericError(text)).what


@pytest.mark.parametrize("name", ["tests.parquet", "requests.json", "sts.parquet", "lifetime.json"])
def test_a_file_s_name_is_no_reason_to_speak_of_credentials(name: str) -> None:
    text = f"Error performing GET https://acct/c/{name} - HTTP error: HttpError kind: Connect"
    assert not isinstance(judge(GenericError(text), kind="azure", where=WHERE), AccessDeniedError)


def test_a_signature_that_does_not_hold_yet_is_not_told_as_one_that_ended() -> None:
    text = (
        "status code: 403: <Code>AuthenticationFailed</Code> Signature not valid in the specified time frame"
    )
    found = judge(PermissionDeniedError(text), kind="azure", where=WHERE)
    assert "do not hold yet" in str(found)
    assert "clock" in str(found)
