"""What is left of text that may hold a secret."""

from __future__ import annotations

import logging
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.errors import StorageError
from lazydelta.redaction import holds_parameters, redacted, shown_name
from lazydelta.rows import PageSettings
from lazydelta.telemetry import log_event

SECRET = "zzHUSH"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://AKIA1:wJal/zzHUSH/b@bucket/t", "s3://…"),
        ("s3://AKIA1:123/zzHUSH@bucket/t", "s3://…"),
        ("s3:/AKIA1:zzHUSH@bucket/t", "s3:/…"),
        ("https://user:zz/zzHUSH@host/c/t", "https://…"),
        ("https://zzHUSH@host/c/t", "https://…"),
        ("abfss://c@acct:zzHUSH/t", "abfss://…"),
        ("abfss://c:zzHUSH@acct/t", "abfss://…"),
        ("abfss://zzHUSH@c@acct/t", "abfss://…"),
        ("https://a.blob.core.windows.net/c/t?sv=1&sig=zzHUSH", "https://a.blob.core.windows.net/c/t…"),
        (
            "https://a.blob.core.windows.net/c/t%253Fsig%253DzzHUSH",
            "https://a.blob.core.windows.net/c/t…",
        ),
        ("az://c/t;sig=zzHUSH", "az://c/t…"),
        ("/data/t?sv=1&SIG=zzHUSH", "/data/t…"),
        ("user:zzHUSH@host/t", "…"),
        ("file:///work/user:zzHUSH@host/t", "file:///work/…"),
        ("sig=zzHUSH&sv=1", "…"),
        ("cannot read (account_key=zzHUSH)", "cannot read (…"),
        ("{'sas_token': 'zzHUSH'}", "{'…"),
        ("AccountName=a;AccountKey=zzHUSH", "AccountName=a…"),
        ("jdbc:db://host/x;user=a;password=zzHUSH", "jdbc:db://host/x;user=a…"),
        ("token=zzHUSH", "…"),
        ("password=zzHUSH", "…"),
        ("secret=zzHUSH", "…"),
        ("sas=zzHUSH", "…"),
        ("account-key=zzHUSH", "…"),
        ("delta.page.signing_key=zzHUSH", "…"),
        ("apikey=zzHUSH", "…"),
        ("api_key: 'zzHUSHzzHUSHzzHUSH'", "…"),
        ("x-api-key=zzHUSH", "…"),
        ("Bearer zzHUSH", "…"),
        ("s3://b/t,token=zzHUSH", "s3://b/t,…"),
        (r"\ufefftoken=zzHUSH", r"\ufeff…"),
        (r"\nBearer zzHUSH", r"\n…"),
        ("s3://b/Bearer%20zzHUSH", "s3://b/…"),
        ("s3://b/t?s%69g=zzHUSH", "s3://b/t…"),
        ("s3://b/t?x=%41&%74ok%2565n%3DzzHUSH", "s3://b/t…"),
        ("access_key: 'zzHUSHzzHUSHzzHUSH'", "…"),
        ("session_token = zzHUSHzzHUSHzzHUSH", "…"),
        ("/data/10:00/user:zzHUSH@host", "/data/10:00/…"),
    ],
)
def test_from_where_a_secret_may_begin_nothing_is_shown(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert redacted(shown) == shown
    assert redacted(f"no table at {text!r} here").startswith("no table at ")
    assert SECRET not in redacted(f"no table at {text!r} here")


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/path",
        "abfss://container@account/path (or abfs://), az://container/path",
        "http://127.0.0.1:10000/devstoreaccount1",
        "http://[::1]:9000/x",
        "s3://bucket/user@example.com/t",
        "file:///@home/me@work/t",
        "/data/sig=5/key=3/design=1&signal=2/t",
        'give {"account_key": "…"}, as in (sv=…&sig=…)',
        "set storage_options account_key, or sas_token, or token",
        "filter: \"sig = 5 and token = 'x'\"",
        "filter: access_key > 5 and access_key = 7 or access_key=8",
        "filter: session_token='x' and token=5",
        "the column 'access_key': int64, access_key: string",
        "{'access_key': 5}",
        "filter: api_key = 'x' or api_key=8",
        "a bearer token, or an account key",
        "/data/10:00/me@work/t",
        "no table at 'file:///data/10:00/me@work/t'",
        "s3://b/t/token=abc/part-0.parquet",
        "/data/100%25/a%20b%3Dc",
        "2026-02-08T12:30:00Z",
        'give storage_options={"abfss://c@other.dfs.core.windows.net": {…}}',
    ],
)
def test_what_holds_no_secret_is_shown_as_it_is(text: str) -> None:
    assert redacted(text) == text


NAMES = ["sig", "token", "password", "secret", "sas", "account-key", "account_key", "X-Amz-Signature"]


@st.composite
def marks(draw: st.DrawFn) -> str:
    """A separator, the name of a parameter and a `=`, each character encoded as often as it happens."""
    plain = draw(st.sampled_from("?&;#")) + draw(st.sampled_from(NAMES)) + "="
    return "".join(f"%{'25' * (times - 1)}{ord(char):02x}" if times else char
                   for char in plain for times in [draw(st.sampled_from([0, 0, 0, 1, 2]))])  # fmt: skip


@given(st.text(max_size=60), marks())
def test_whatever_stands_before_a_parameter_what_comes_after_it_is_hidden(before: str, mark: str) -> None:
    text = f"{before}{mark}{SECRET}"
    assert holds_parameters(text)
    assert SECRET not in redacted(text)
    assert redacted(redacted(text)) == redacted(text)


@given(
    st.lists(st.sampled_from([*"ab1:/@?&;=%#. '\"s3…", "25", "73", "3d", "token=", "Bearer ", *NAMES])).map(
        "".join
    )
)
def test_what_was_redacted_stays_as_it_is(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "piece",
    [
        "a:",
        "&",
        "a",
        "%25",
        "://",
        "a@",
        ":/a:1",
        "&aaa-",
        "sig",
        "@ :/a:1",
        "account_",
        "?token",
        "%73",
        "bearer ",
        "token=5 ",
        "'access_key: ",
        "/a:b",
        "/a:b@ ",
    ],
)
@pytest.mark.timeout(120)  # with time that grows with the square of the length it would not end
def test_a_long_text_does_not_take_long(piece: str) -> None:
    redacted(piece * (250_000 // len(piece)))


def test_an_error_holds_no_secret_wherever_it_was_put() -> None:
    error = StorageError("no: az://c/t;sig=zzHUSH", "s3://k:zzHUSH@b/t", "write user:zzHUSH@host")
    for text in (str(error), repr(error), error.what, error.where, error.fix, repr(error.args)):
        assert SECRET not in text
    assert pickle.loads(pickle.dumps(error)).args == error.args


def test_a_log_record_holds_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "lazydelta"):
        log_event("x", table="s3://k:zzHUSH@b", reason=ValueError("t?sig=zzHUSH"), count=3)
    (record,) = caplog.records
    assert SECRET not in f"{record.getMessage()} {record.__dict__!r}"
    assert record.__dict__["fields"]["count"] == 3


def test_the_key_of_page_tokens_is_not_shown() -> None:
    assert SECRET not in repr(PageSettings(signing_key=SECRET))


@pytest.mark.parametrize("name", ["account_key", "AZURE_STORAGE_KEY", "http1_only", "delta.batch_sise"])
def test_the_name_of_an_option_is_shown(name: str) -> None:
    assert shown_name(name) == name


@pytest.mark.parametrize("name", ["account_key zzHUSH", "wJalrXUtnFEMI", "deadbeef0123", "a" * 40, "", "k/x"])
def test_what_does_not_look_like_the_name_of_an_option_is_not_shown(name: str) -> None:
    assert shown_name(name) == "…"
