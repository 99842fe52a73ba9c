"""Azure tokens of the machine or of whoever is logged in: managed identity first, then the Azure CLI.

Why: obstore asks one of them and gives up. What runs on a laptop and in Azure should need no option.
Contract: a provider (`providers.py`) for when neither options nor environment name a way of signing in. Both
ways that failed are named in the error, with nothing of what they said.
Spec: Azure documentation, "How to use managed identities … to acquire an access token", "Using HTTP".
"""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from lazydelta import limits
from lazydelta.storage.providers import ProviderProblem

IDENTITY_URL = "http://169.254.169.254/metadata/identity/oauth2/token"
_RESOURCE = "https://storage.azure.com"
Credential = dict[str, Any]  # Any: text, and a datetime


def machine_identity() -> Callable[[], Credential]:
    """A provider that takes the first of the two ways that works, and stays with it."""
    ways: list[Callable[[], Credential]] = [_managed, _by_cli]

    def ask() -> Credential:
        problems = []
        for way in list(ways):
            try:
                found = way()
            except ProviderProblem as problem:
                problems.append(str(problem))
            else:
                ways[:] = [way]
                return found
        raise ProviderProblem(f"none were given, and {'; '.join(problems)}")

    return ask


def _managed() -> Credential:
    parts = urlsplit(IDENTITY_URL)
    query = urlencode({"api-version": "2019-08-01", "resource": _RESOURCE})
    # Not by a proxy: the address exists on this machine alone.
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=limits.IDENTITY_CONNECT_SECONDS
    )
    try:
        connection.request("GET", f"{parts.path}?{query}", headers={"Metadata": "true"})
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException):
        raise ProviderProblem("no managed identity answers") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise ProviderProblem(f"the managed identity has no token (HTTP {answer.status})")
    return _token(body, "access_token", "expires_on", "the managed identity")


def _by_cli() -> Credential:
    program = shutil.which("az")
    if program is None:
        raise ProviderProblem("the Azure CLI is not installed")
    command = [program, "account", "get-access-token", "--output", "json", "--resource", _RESOURCE]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=limits.IDENTITY_CLI_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        raise ProviderProblem("the Azure CLI does not answer") from None
    if done.returncode != 0:
        raise ProviderProblem("the Azure CLI has no token: run az login")
    return _token(done.stdout, "accessToken", "expires_on", "the Azure CLI")


def _token(body: bytes, name: str, end: str, whose: str) -> Credential:
    try:
        answer = json.loads(body)
        token, expires_on = answer[name], answer.get(end)
        if expires_on is None:  # an older CLI: local time, without a zone
            expires_at = datetime.fromisoformat(answer["expiresOn"]).astimezone()
        else:
            expires_at = datetime.fromtimestamp(float(expires_on)).astimezone()
    except (ValueError, KeyError, TypeError, OverflowError, AttributeError, OSError):
        raise ProviderProblem(f"the answer of {whose} is no token") from None
    return {"token": token, "expires_at": expires_at}
