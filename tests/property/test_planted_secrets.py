"""Secrets planted in odd places of addresses and options: none comes out again, whatever is made of them.

Searched are errors with their tracebacks and causes, `repr` of what was opened, log records at debug and all
that the command line writes. Nothing answers at the endpoint that is asked, so every address fails.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import lazydelta as ld
from lazydelta.cli.app import app
from lazydelta.errors import LazyDeltaError
from lazydelta.settings import build_settings
from lazydelta.storage import open_storage
from tests.support.hypothesis_profile import examples

MARK = "hUsh7"
NO_TABLE = "/no/such/table"
NOBODY = {"endpoint": "http://127.0.0.1:9/x", "allow_http": "true", "delta.request.attempts_max": "1"}
AZURE = {**NOBODY, "account_key": "YQ=="}
S3 = {**NOBODY, "access_key_id": "a", "secret_access_key": "b", "region": "eu-west-1"}
# A secret is the mark, several times, with what keys and signatures have between their letters.
secrets = st.lists(
    st.sampled_from(["/", "+", "==", "%2F", "%2B", "%3D", "-", "_", ".", ":", "~"]), max_size=3
).map(lambda between: "".join([MARK, *(f"{mark}{MARK}" for mark in between)]))
PASSWORDS = [
    "s3://AKIA1:{}@bucket/t",
    "s3a://AKIA1:9/{}@bucket/t",
    "s3:/AKIA1:{}@bucket/t",
    "https://user:{}@acct.blob.core.windows.net/c/t",
    "https://{}@acct.blob.core.windows.net/c/t",
    "https://AKIA:9/{}@bucket.s3.eu-central-1.amazonaws.com/t",
    "abfss://c:{}@acct/t",
    "abfss://c@acct:{}/t",
    "abfss://c@acct.dfs.core.windows.net:{}/t",
    "abfss://{}@c@acct/t",
    "az://user:{}@c/t",
    "gs://user:{}@bucket/t",
    "file://user:{}@host/t",
    "user:{}@host/t",
    "https:user:{}@host/t",
    "token={}",
    "password={}",
    "secret={}",
    "sas={}",
    "account-key={}",
    "delta.page.signing_key={}",
    "Bearer {}",
    "s3://bucket/t,token={}",
    "az://c/Bearer {}",
]
SIGNATURES = [
    "https://acct.blob.core.windows.net/c/t{}",
    "https://acct.blob.core.windows.net:443/c/t{}",
    "https://acct.blob.core.windows.net{}",
    "https://acct.blob.core.windows.net/c{}/t",
    "https://example.com/c/t{}",
    "http://acct.blob.core.windows.net/c/t{}",
    "https:acct.blob.core.windows.net/c/t{}",
    "acct.blob.core.windows.net/c/t{}",
    "wasbs://c@acct.blob.core.windows.net/t{}",
    "abfss://c@acct/t{}",
    "abfss://c@acct/t{}#x",
    "az://c/t{}",
    "s3://bucket/t{}",
    "https://b.s3.eu-central-1.amazonaws.com/t{}",
    "file:///no/such/t{}",
    "/no/such/t{}",
    "no such/t{}",
    "{}",
]
QUERIES = [
    "?sv=1&sig={}",
    "?sig={}&sv=1",
    "%3Fsv=1&sig={}",
    "%3Fsv%3D1%26sig%3D{}",
    "%253Fsig%253D{}",
    "&sv=1&sig={}",
    ";sig={}",
    "#sig={}",
    "?X-Amz-Signature={}",
    "?X-Amz-Security-Token={}",
    "?access_key_id=a&secret_access_key={}",
    "?account_key={}",
    "?token={}",
    "?s%69g={}",
    "%26tok%2565n={}",
]
addresses = st.builds(
    lambda form, secret: form.format(secret),
    st.sampled_from(PASSWORDS + [form.format(query) for form in SIGNATURES for query in QUERIES]),
    secrets,
)
surroundings = st.sampled_from(
    ["{}", " {}", "{}\n", '"{}"', "'{}'", "<{}>", "\ufeff{}", "\u201c{}\u201d", "\t{} "]
)
given_urls = st.builds(lambda around, url: around.format(url), surroundings, addresses)
given_options = st.builds(
    lambda form, secret: form.format(secret),
    st.sampled_from(
        [
            "account_key {}==",
            "account_key:{}=",
            "{}==",
            "={}",
            "sas_token?sv=1&sig={}",
            "sas_tokn={}",
            "DELTA.{}=1",
            "delta.{}=1",
            "delta.batch_size {}=1",
            "s3://k:{}@bucket=x",
            "s3://k:{}@bucket#access_key_id=x",
            "https://acct.blob.core.windows.net/c?sv=1&sig={}",
            "abfss://c@acct/t?sig={}#account_key=x",
            "delta.allowed_roots=az://c/t;sig={}",
            "delta.allowed_roots=s3://k:{}@bucket",
            "endpoint=http://user:{}@127.0.0.1:9",
            "endpoint=http://{}@[",
            "proxy_url=http://user:{}@127.0.0.1:9",
            "connection_string=AccountName=a;{}",
            "credential_type={}",
        ]
    ),
    secrets,
)


@settings(max_examples=examples(20))
@given(given_urls)
@example("https://acct.blob.core.windows.net/c/t?sv=1&sig=hUsh7#hUsh7")
@example("s3://[hUsh7/t?sig=hUsh7")
@example("https://user:hUsh7@\u2100.blob.core.windows.net/c/t")
def test_a_secret_in_an_address_is_not_repeated(url: str) -> None:
    options = S3 if url.lower().strip("\ufeff\u201c\"'< \t").startswith("s3") or "amazonaws" in url else AZURE
    with listening() as said:
        said.extend(opening(url, options))
        said.extend(opening(NO_TABLE, {"delta.allowed_roots": url.replace(",", "")}))
        said.extend(opening(NO_TABLE, {url: {"account_key": "YQ=="}}))
        said.extend(commands(["info", url, *flat(options)], ["sidecar", "show", url, *flat(options)]))
        said.extend(commands(["info", NO_TABLE, url], [url]))
        said.extend(commands(["sql", NO_TABLE, "select 1", f"--table={url}"]))
    assert_unsaid(said)


@settings(max_examples=examples(20))
@given(given_options)
def test_a_secret_in_an_option_is_not_repeated(option: str) -> None:
    name, _, value = option.partition("=")
    azure = "abfss://c@acct/t"
    with listening() as said:
        said.extend(opening(azure, {**AZURE, name: value}))
        said.extend(opening(NO_TABLE, {name: value}))
        said.extend(commands(["info", azure, *flat(AZURE), "--storage-option", option]))
        said.extend(commands(["info", NO_TABLE, option], ["info", NO_TABLE, "--storage-option", option]))
    assert_unsaid(said)


@pytest.mark.parametrize("planted", [True, False])
def test_the_search_finds_what_is_there(planted: bool) -> None:
    with listening() as said:
        logging.getLogger("x").debug("%s", MARK if planted else "nothing")
    assert any(MARK in text for text in said) is planted


def opening(url: str, options: Mapping[str, object]) -> list[str]:
    """What comes of it, and what is said of what was opened."""
    settings = caught(lambda: repr(build_settings(options, environment={})))
    storage = caught(lambda: repr(open_storage(url, build_settings(options, environment={}))))
    return settings + storage + caught(lambda: repr(ld.open(url, storage_options=options)))


def flat(options: dict[str, str]) -> list[str]:
    return [f"--storage-option={name}={value}" for name, value in options.items()]


def caught(call: Callable[[], str]) -> list[str]:
    try:
        return [call()]
    except LazyDeltaError as error:
        found: BaseException | None = error
        texts = ["".join(traceback.format_exception(error))]
        while found is not None:
            texts += [str(found), repr(found)]
            found = found.__cause__ or found.__context__
        return texts


def commands(*given: list[str]) -> list[str]:
    said = []
    for words in given:
        result = CliRunner().invoke(app, words)
        assert isinstance(result.exception, SystemExit), result.exception
        said += [result.output, result.stderr]
    return said


@contextmanager
def listening() -> Iterator[list[str]]:
    """Every log record, with all that it carries."""
    said: list[str] = []
    root, handler = logging.getLogger(), logging.Handler(level=0)
    handler.emit = lambda record: said.append(f"{record.getMessage()} {record.__dict__!r}")  # type: ignore[method-assign]
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield said
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def assert_unsaid(said: list[str]) -> None:
    for text in said:
        assert MARK not in text, (
            f"a secret was said: …{text[max(0, text.index(MARK) - 120) : text.index(MARK)]}…"
        )
