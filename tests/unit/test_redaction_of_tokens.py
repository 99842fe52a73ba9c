"""Keys and tokens by the names that stores give them, and by their form."""

from __future__ import annotations

import pytest

from lazydelta.redaction import redacted

HUSH = "wJalrXUtnFEMIK7MDENGbPxRfiCY"


@pytest.mark.parametrize(
    "text",
    [
        f"fabric_session_token={HUSH}",
        f"AZURE_FABRIC_SESSION_TOKEN={HUSH}",
        f"azure_storage_encryption_key={HUSH}",
        f"aws_sse_customer_key_base64={HUSH}",
        f"access_token={HUSH}",
        f'{{"access_token": "{HUSH}", "expires_in": 3600}}',
        f'{{"refresh_token":"{HUSH}"}}',
        f"id-token: {HUSH}",
        f"Authorization: SharedKey acct:{HUSH}=",
        f"SharedKeyLite acct:{HUSH}=",
        f"the token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.{HUSH} is refused",
    ],
)
def test_it_is_left_out(text: str) -> None:
    assert HUSH not in redacted(text)
    assert "eyJzdWIi" not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "access_token = 5",
        "the column id_token is unknown",
        "refresh_token: string",
        "/lake/access_token=a/part-0.parquet",
        "encryption_key is not a column",
        "SharedKey is how an account key signs in",
        "eyJust.a.name",
    ],
)
def test_what_is_none_is_shown(text: str) -> None:
    assert redacted(text) == text
