"""Secrets stay secret: the whole read path with credentials of every kind, and not one in what it says.

Searched is everything that comes out: rows and pages, `repr` and `explain`, metrics, also as OpenTelemetry
exports them, log records at debug, standard output and error, the command line, errors of many kinds with
their tracebacks. Searched for are the secrets as they are, percent-encoded or decoded, and in base64.
"""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, quote_plus, unquote

import deltalake
import msgspec
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lazydelta as ld
from lazydelta import telemetry
from lazydelta.cli.app import app
from lazydelta.errors import LazyDeltaError
from lazydelta.settings import build_settings
from lazydelta.storage import open_storage
from tests.support.checked_s3 import CheckedS3
from tests.support.metric_exporter import MetricExporter
from tests.support.secure_stores import ACCOUNT, SecureAzurite
from tests.support.servers import CONTAINER
from tests.support.signing import account_signature, bearer_token, container_signature

ROWS = 50
SIGNING_KEY = "SIGNING-HUSHHUSHHUSH"
ERRORS_MIN = 8


class Case:
    """A URL, options with secrets in them, and those secrets."""

    def __init__(self, url: str, options: Mapping[str, Any], secrets: list[str]) -> None:
        self.url = url
        self.options = {**options, "delta.page.signing_key": SIGNING_KEY, "delta.cache.bytes": "1000000"}
        self.secrets = [*secrets, SIGNING_KEY]

    def flat(self) -> list[str]:
        """The options for the command line."""
        return [f"--storage-option={name}={value}" for name, value in self.options.items()]


class Listener(logging.Handler):
    """Every log record, with all that it carries."""

    def __init__(self) -> None:
        super().__init__(level=0)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{record.getMessage()} {record.__dict__!r}")


@pytest.fixture
def listener() -> Iterator[Listener]:
    root, handler = logging.getLogger(), Listener()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[MetricExporter]:
    """In the place of the process's own meters, which can be set only once."""
    found = MetricExporter()
    monkeypatch.setattr(telemetry, "otel", found)
    telemetry._instruments.cache_clear()
    try:
        yield found
    finally:
        found.close()
        telemetry._instruments.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secrets") / "t"
    for _ in range(2):
        deltalake.write_deltalake(str(path), pa.table({"id": range(ROWS), "x": ["v"] * ROWS}), mode="append")
    return path


@pytest.fixture(scope="module")
def azure_url(secure_azurite: SecureAzurite, folder: Path) -> str:
    server = secure_azurite.server()
    url = server.url("secrets")
    server.upload(folder, url)
    return url


@pytest.fixture(scope="module")
def s3_url(checked_s3: CheckedS3, folder: Path) -> str:
    url = checked_s3.server.url("secrets")
    checked_s3.server.upload(folder, url)
    return url


def azure_case(kind: str, stores: SecureAzurite, url: str) -> Case:
    key, signature = stores.keys[ACCOUNT], container_signature(ACCOUNT, stores.keys[ACCOUNT], CONTAINER)
    wide, token = account_signature(ACCOUNT, key), bearer_token(mark="HUSH")
    account = f"AccountName={ACCOUNT};BlobEndpoint={stores.endpoint()}"
    parts = {name: parse_qs(name)["sig"][0] for name in (signature, wide)}
    cases: dict[str, tuple[str, dict[str, Any], list[str]]] = {
        "account key": (url, {"account_key": key}, [key]),
        "connection string": (url, {"connection_string": f"{account};AccountKey={key}"}, [key]),
        "signature": (url, {"sas_token": wide}, [wide, parts[wide]]),
        "signature in the URL": (f"{url}?{signature}", {}, [signature, parts[signature]]),
        "bearer token": (url, {"token": token}, [token]),
        "provider": (url, {"credential_provider": lambda: {"token": token}}, [token]),
        "location": (
            url,
            {"account_key": key, "s3://other#secret_access_key": "LOCATION-HUSH"},
            [key, "LOCATION-HUSH"],
        ),
    }
    address, options, secrets = cases[kind]
    base = stores.options()
    if kind == "connection string":
        base.pop("endpoint")
    return Case(address, {**base, **options}, secrets)


AZURE_KINDS = [
    "account key",
    "connection string",
    "signature",
    "signature in the URL",
    "bearer token",
    "provider",
    "location",
]


@pytest.mark.parametrize("kind", AZURE_KINDS)
def test_nothing_that_reading_from_azure_says_has_the_secret(
    secure_azurite: SecureAzurite,
    azure_url: str,
    kind: str,
    *,
    listener: Listener,
    exporter: MetricExporter,
    capfd: pytest.CaptureFixture[str],
) -> None:
    case = azure_case(kind, secure_azurite, azure_url)
    said = [*reading(case), *failing(case), *commands(case), *listener.said, *capfd.readouterr()]
    assert_unsaid(case, [*said, *exporter.said()])


@pytest.mark.parametrize("kind", ["keys", "session"])
def test_nothing_that_reading_from_s3_says_has_the_secret(
    checked_s3: CheckedS3,
    s3_url: str,
    kind: str,
    *,
    listener: Listener,
    exporter: MetricExporter,
    capfd: pytest.CaptureFixture[str],
) -> None:
    keys = checked_s3.session
    if kind == "keys":
        keys = {
            name: checked_s3.server.storage_options[name] for name in ("access_key_id", "secret_access_key")
        }
    secrets = [value for name, value in keys.items() if name != "access_key_id"]
    case = Case(s3_url, checked_s3.options(**keys), secrets)
    said = [*reading(case), *failing(case), *commands(case), *listener.said, *capfd.readouterr()]
    assert_unsaid(case, [*said, *exporter.said()])


@pytest.mark.parametrize(
    "options",
    [
        {"account_key": base64.b64encode(b"HUSHHUSH" * 8).decode()},
        {"account_key": "HUSH HUSH no base64"},
        {"sas_token": "sv=2021-08-06&sp=rl&sig=HUSHHUSH%3D"},
        {"sas_token": "HUSHHUSH no signature"},
        {"token": "HUSHHUSH"},
        {"connection_string": "AccountName=accountone;HUSHHUSH"},
        {"connection_string": "AccountName=another;AccountKey=SFVTSEhVU0g="},
        {
            "client_id": "i",
            "client_secret": "HUSHHUSH",
            "tenant_id": "t",
            "authority_host": "http://127.0.0.1:9",
        },
        {"client_id": "i", "client_secret": "HUSHHUSH", "tenant_id": "t", "authority_host": "HUSHHUSH"},
        {"use_emulator": "HUSHHUSH", "account_key": "SFVTSEhVU0g="},
        {"skip_signature": "HUSHHUSH"},
        {"credential_type": "HUSHHUSH"},
        {"endpoint": "http://user:HUSHHUSH@127.0.0.1:9"},
        {"proxy_url": "http://user:HUSHHUSH@127.0.0.1:9"},
        {"root_certificate": "HUSHHUSH"},
        {"no_such_option": "HUSHHUSH"},
        {"account_key": "SFVTSEhVU0g=", "ACCESS_KEY": "SFVTSEhVU0h="},
        {"credential_provider": "HUSHHUSH"},
        {"credential_provider": {"token": "HUSHHUSH"}},
        {"credential_provider": lambda: {"tokn": "HUSHHUSH"}},
        {"credential_provider": lambda: "HUSHHUSH"},
        {"credential_provider": lambda: 1 / len("HUSHHUSH" * 0)},
        {"s3://other": "HUSHHUSH"},
        {"https://accountone.blob.core.windows.net/c?sig=HUSHHUSH": "HUSHHUSH"},
        {"delta.allowed_roots": "https://accountone.blob.core.windows.net/c?sig=HUSHHUSH"},
    ],
)
def test_secrets_that_do_not_work_are_not_repeated_either(
    secure_azurite: SecureAzurite, azure_url: str, options: dict[str, Any], listener: Listener
) -> None:
    given = {**secure_azurite.options(allow_http="true"), "delta.request.timeout_seconds": "2", **options}
    case = Case(azure_url, given, ["HUSHHUSH", "SFVTSEhVU0"])
    assert_unsaid(case, [*refusing(case), *commands(case, [["info", azure_url, "--debug"]]), *listener.said])


@pytest.mark.parametrize(
    "url",
    [
        "https://accountone.blob.core.windows.net/c/t?token=HUSHHUSH",
        "https://accountone.blob.core.windows.net?sv=1&sig=HUSHHUSH",
        "abfss://c@accountone/t?sv=1&sig=HUSHHUSH#HUSHHUSH",
        "s3://user:HUSHHUSH@bucket/t",
        "https://bucket.s3.eu-west-1.amazonaws.com/t?X-Amz-Signature=HUSHHUSH",
        "gs://bucket/t?sig=HUSHHUSH",
        "https://user:HUSHHUSH@\u2100.blob.core.windows.net/c/t",
        "https://[HUSHHUSH/c/t?sig=HUSHHUSH",
    ],
)
def test_a_secret_in_a_url_that_is_refused_is_not_repeated(url: str, listener: Listener) -> None:
    case = Case(url, {}, ["HUSHHUSH"])
    assert_unsaid(case, [*refusing(case), *commands(case), *listener.said])


# --- everything that reads ---------------------------------------------------


def reading(case: Case) -> list[str]:
    """What a table, its scans, queries, pages and reports say."""
    table = ld.open(case.url, storage_options=case.options)
    scan = table.scan("id >= 0")
    said = [repr(table), table.url, repr(table.info()), repr(table.metadata), repr(scan), repr(scan.source)]
    said += [repr(file) for file in scan.files(with_stats=True)]
    said += [repr(scan.explain()), str(scan.explain()), msgspec.json.encode(scan.explain()).decode()]
    said += [repr(batch.to_pylist()) for batch in scan.batches()]
    said += [repr(scan.explain()), str(scan.explain()), repr(scan.estimate())]
    page = scan.page(rows=10)
    said += [
        page.next_token or "",
        repr(page),
        repr(scan.page(rows=10, after=page.next_token)),
        str(scan.explain()),
    ]
    said += [repr(scan.file_page(files=1)), repr(list(table.history()))]
    result = table.sql("select count(*) as n, max(x) as x from t")
    said += [repr(result), repr(result.fetchall() if hasattr(result, "fetchall") else list(result))]
    said += [
        repr(table.to_pyarrow_dataset()),
        table.to_polars().explain(),
        repr(table.get_stats_for_files([], ["id"])),
    ]
    settings = build_settings(case.options, environment={})
    storage = open_storage(case.url, settings)
    said += [repr(settings), str(settings), repr(storage), str(storage), repr(settings.locations)]
    linked = {name: value for name, value in vars(storage._link).items() if name != "store"}  # type: ignore[attr-defined]
    said += [repr(ld.metrics()), repr(linked), repr(storage.places)]  # type: ignore[attr-defined]
    assert any("id" in text for text in said)
    return said


def refusing(case: Case) -> list[str]:
    """What the error says with which the table cannot be opened."""
    with pytest.raises(LazyDeltaError) as told:
        ld.open(case.url, storage_options=case.options)
    return texts(told.value)


def failing(case: Case) -> list[str]:
    """What errors of many kinds say, with their tracebacks."""
    opened = lambda **more: ld.open(case.url, storage_options=case.options, **more)  # noqa: E731
    bare, mark, query = case.url.partition("?")
    elsewhere = f"{bare}-nothing-here{mark}{query}"
    container = f"{bare.replace(CONTAINER, 'no-such-container')}{mark}{query}"
    unreachable = {**case.options, "endpoint": "http://127.0.0.1:9/x", "delta.request.timeout_seconds": "0.5"}
    calls: list[Callable[[], object]] = [
        lambda: opened(version=99),
        lambda: opened(timestamp="1999-01-01"),
        lambda: opened().scan("no_such_column = 1").to_arrow(),
        lambda: opened().scan("id ===").to_arrow(),
        lambda: opened().sql("select no_such_column from t").fetchall(),
        lambda: opened().scan().page(rows=3, after="x" * 40),
        lambda: ld.open(elsewhere, storage_options=case.options),
        lambda: ld.open(container, storage_options=case.options),
        lambda: ld.open(case.url, storage_options={**case.options, "delta.no_such": "1"}),
        lambda: ld.open(case.url, storage_options={**case.options, "no_such_option": "1"}),
        lambda: ld.open(bare, storage_options={**unreachable, "allow_http": "true"}),
        lambda: ld.open(bare, storage_options={**unreachable, "allow_http": "false"}),
    ]
    said = []
    for call in calls:
        try:
            call()
        except (LazyDeltaError, TypeError, ValueError) as error:
            said += texts(error)
    assert len(said) >= ERRORS_MIN
    return said


def texts(error: Exception) -> list[str]:
    return [str(error), repr(error), "".join(traceback.format_exception(error)), repr(error.args)]


def commands(case: Case, given: list[list[str]] | None = None) -> list[str]:
    """What the command line writes, whether it works or not."""
    if not all(isinstance(value, str) for value in case.options.values()):
        return []
    commands = given or [
        ["files", case.url, "--json", "--explain", "--debug"],
        ["info", case.url, "--debug"],
        ["explain", case.url, "--debug"],
        ["history", case.url],
        ["sql", case.url, "select count(*) from t", "--debug"],
        ["sql", case.url, "select nothing from t"],
        ["sidecar", "show", case.url],
        ["files", case.url, "--version", "99"],
    ]
    said = []
    for words in commands:
        result = CliRunner().invoke(app, [*words, *case.flat()])
        said += [result.output, repr(result.exception)]
        with suppress(ValueError):
            said.append(result.stderr)
    return said


# --- the search --------------------------------------------------------------


@pytest.mark.parametrize("spell", [str, quote_plus, lambda text: base64.b64encode(text.encode()).decode()])
def test_the_search_finds_what_is_there(spell: Callable[[str], str]) -> None:
    case = Case("/t", {}, ["a secret/with+signs=="])
    with pytest.raises(AssertionError, match="a secret of 21 characters"):
        assert_unsaid(case, ["nothing", f"something {spell(case.secrets[0])} something"])


def assert_unsaid(case: Case, said: list[str]) -> None:
    text = "\n".join(said)
    for secret in case.secrets:
        for form in forms(secret):
            assert form not in text, f"a secret of {len(secret)} characters was said: …{around(text, form)}…"


def forms(secret: str) -> set[str]:
    raw = secret.encode()
    spelled = {secret, unquote(secret), quote(secret), quote(secret, safe=""), quote_plus(secret)}
    encoded = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    return {form for form in spelled | {each.rstrip("=") for each in encoded} if len(form) >= 8}


def around(text: str, form: str) -> str:
    at = text.index(form)
    return text[max(0, at - 200) : at]
