"""Every way of signing in to Azure, on Azurite over TLS; what needs Azure itself by emulated endpoints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import AccessDeniedError, LazyDeltaError, StorageError, TableNotFoundError
from lazydelta.storage import machine_identity as identity
from tests.support.secure_stores import ACCOUNT, OTHER_ACCOUNT, SecureAzurite
from tests.support.servers import AZURITE_ACCOUNT, AZURITE_KEY, CONTAINER, TableServer
from tests.support.signing import account_signature, bearer_token, blob_signature, container_signature
from tests.support.token_server import TokenServer

IDS = list(range(300))


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_CLIENT_ID", "IDENTITY_ENDPOINT", "AZURE_TENANT_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def table_url(secure_azurite: SecureAzurite, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("source") / "t"
    for first in range(0, len(IDS), 100):
        deltalake.write_deltalake(str(folder), pa.table({"id": IDS[first : first + 100]}), mode="append")
    server = secure_azurite.server()
    url = server.url("credentials")
    server.upload(folder, url)
    return url


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with TokenServer() as server:
        yield server


def ids(url: str, options: dict[str, Any], **more: Any) -> list[int]:
    table = ld.open(url, storage_options=options, **more)
    return sorted(table.to_arrow().column("id").to_pylist())


def key_of(stores: SecureAzurite, account: str = ACCOUNT) -> str:
    return stores.keys[account]


def test_an_account_key_opens_the_table(secure_azurite: SecureAzurite, table_url: str) -> None:
    assert ids(table_url, secure_azurite.options(account_key=key_of(secure_azurite))) == IDS


def test_a_connection_string_opens_the_table(secure_azurite: SecureAzurite, table_url: str) -> None:
    where = f"AccountName={ACCOUNT};BlobEndpoint={secure_azurite.endpoint()}"
    signature = account_signature(ACCOUNT, key_of(secure_azurite))
    pem = secure_azurite.options()["root_certificate"]
    for secret in (f"AccountKey={key_of(secure_azurite)}", f"SharedAccessSignature={signature}"):
        options = {"connection_string": f"{where};{secret}", "root_certificate": pem}
        assert ids(table_url, options) == IDS
        assert ids(table_url.replace(f"@{ACCOUNT}", "").replace("abfss", "az"), options) == IDS


def test_signatures_of_the_account_and_of_the_container_open_the_table(
    secure_azurite: SecureAzurite, table_url: str
) -> None:
    key = key_of(secure_azurite)
    for signature in (
        account_signature(ACCOUNT, key, permissions="rl"),
        container_signature(ACCOUNT, key, CONTAINER),
    ):
        assert ids(table_url, secure_azurite.options(sas_token=signature)) == IDS
        assert ids(table_url, secure_azurite.options(sas_token=f"?{signature}")) == IDS
        assert ids(f"{table_url}?{signature}", secure_azurite.options()) == IDS


def test_a_signature_in_the_url_wins_over_a_key_that_is_wrong(
    secure_azurite: SecureAzurite, table_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    signature = container_signature(ACCOUNT, key_of(secure_azurite), CONTAINER)
    wrong = key_of(secure_azurite, OTHER_ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", wrong)
    assert ids(f"{table_url}?{signature}", secure_azurite.options(account_key=wrong)) == IDS
    assert ids(table_url, secure_azurite.options(sas_token=signature)) == IDS
    with pytest.raises(AccessDeniedError):
        ids(table_url, secure_azurite.options())


def test_the_signature_of_one_blob_reads_it_and_lists_nothing(
    secure_azurite: SecureAzurite, table_url: str
) -> None:
    name = "_delta_log/00000000000000000000.json"
    blob = f"{CONTAINER}/{table_url.rpartition('/')[2]}/{name}"
    signature = blob_signature(ACCOUNT, key_of(secure_azurite), blob)
    storage = secure_azurite.server().open(table_url)
    signed = ld.storage.open_storage(
        table_url, ld.settings.Settings(storage_options=secure_azurite.options(sas_token=signature))
    )
    assert signed.get(name) == storage.get(name)
    with pytest.raises(AccessDeniedError):
        list(signed.list_from("_delta_log"))


def test_a_signature_without_list_says_that_it_lacks_list(
    secure_azurite: SecureAzurite, table_url: str
) -> None:
    key = key_of(secure_azurite)
    for signature in (
        account_signature(ACCOUNT, key, permissions="r"),
        container_signature(ACCOUNT, key, CONTAINER, permissions="r"),
    ):
        with pytest.raises(AccessDeniedError) as told:
            ids(table_url, secure_azurite.options(sas_token=signature))
        assert "do not allow to list here" in told.value.what
        assert "l (list)" in told.value.fix


def test_a_signature_without_read_says_that_it_lacks_read(
    secure_azurite: SecureAzurite, table_url: str
) -> None:
    signature = container_signature(ACCOUNT, key_of(secure_azurite), CONTAINER, permissions="l")
    with pytest.raises(AccessDeniedError, match="do not allow to read here"):
        ids(table_url, secure_azurite.options(sas_token=signature))


def test_a_bearer_token_opens_the_table(secure_azurite: SecureAzurite, table_url: str) -> None:
    assert ids(table_url, secure_azurite.options(token=bearer_token())) == IDS
    with pytest.raises(AccessDeniedError):
        ids(table_url, secure_azurite.options(token=bearer_token(audience="https://vault.azure.net")))
    with pytest.raises(AccessDeniedError, match="have expired"):
        ids(table_url, secure_azurite.options(token=bearer_token(seconds=-5)))


def test_the_emulator_needs_one_option(
    azurite: TableServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"id": IDS}))
    url = azurite.url("emulator")
    azurite.upload(tmp_path, url)
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", f"http://127.0.0.1:{azurite.port}")
    assert ids(url.replace(f"@{AZURITE_ACCOUNT}", "").replace("abfss", "az"), {"use_emulator": "true"}) == IDS
    assert ids(url, {"connection_string": "UseDevelopmentStorage=true"}) == IDS
    signature = container_signature(AZURITE_ACCOUNT, AZURITE_KEY, CONTAINER)
    assert ids(f"{url}?{signature}", {"use_emulator": True}) == IDS
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    assert ids(url, {}) == IDS


# --- identities, emulated ----------------------------------------------------


def test_a_client_secret_is_exchanged_for_a_token_emulated(
    secure_azurite: SecureAzurite, table_url: str, tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = {"client_id": "app", "client_secret": "s3cret", "tenant_id": "tenant"}
    place = {"authority_host": tokens.url, "allow_http": "true"}
    assert ids(table_url, secure_azurite.options(**who, **place)) == IDS
    method, path, told = tokens.asked[0]
    assert (method, path) == ("POST", "/tenant/oauth2/v2.0/token")
    assert (told["client_id"], told["client_secret"]) == ("app", "s3cret")
    assert len(tokens.asked) == 1, "one token serves the whole read"
    for name, value in who.items():
        monkeypatch.setenv(f"AZURE_{name.upper()}", f"{value}-env")
    assert ids(table_url, secure_azurite.options(**place)) == IDS
    assert tokens.asked[-1][2]["client_secret"] == "s3cret-env"


def test_a_client_secret_that_is_refused_says_so_emulated(
    secure_azurite: SecureAzurite, table_url: str, tokens: TokenServer
) -> None:
    tokens.status = 401
    who = {"client_id": "app", "client_secret": "HUSHHUSH", "tenant_id": "tenant"}
    with pytest.raises(
        AccessDeniedError, match=r"token endpoint refused \(HTTP 401, AADSTS7000215\)"
    ) as told:
        ids(table_url, secure_azurite.options(**who, authority_host=tokens.url, allow_http="true"))
    assert "HUSH" not in str(told.value)


def test_workload_identity_sends_the_token_of_its_file_emulated(
    secure_azurite: SecureAzurite,
    table_url: str,
    tokens: TokenServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "federated").write_text("assertion")
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(tmp_path / "federated"))
    monkeypatch.setenv("AZURE_CLIENT_ID", "app")
    monkeypatch.setenv("AZURE_TENANT_ID", "tenant")
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", tokens.url)
    assert ids(table_url, secure_azurite.options(allow_http="true")) == IDS
    assert tokens.asked[0][2]["client_assertion"] == "assertion"
    (tmp_path / "federated").unlink()
    with pytest.raises(AccessDeniedError, match="the file with the identity token cannot be read"):
        ids(table_url, secure_azurite.options(allow_http="true", client_id="another"))


def test_a_managed_identity_is_asked_at_its_endpoint_emulated(
    secure_azurite: SecureAzurite, table_url: str, tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{tokens.url}/metadata/identity/oauth2/token"
    options = secure_azurite.options(msi_endpoint=place, client_id="mine")
    assert ids(table_url, options) == IDS
    method, _, told = tokens.asked[0]
    assert (method, told["metadata"], told["client_id"]) == ("GET", "true", "mine")
    monkeypatch.setenv("IDENTITY_ENDPOINT", place)
    assert ids(table_url, secure_azurite.options()) == IDS


def test_without_any_option_the_machine_s_identity_is_asked_emulated(
    secure_azurite: SecureAzurite, table_url: str, tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{tokens.url}/metadata/identity/oauth2/token"
    monkeypatch.setattr(identity, "IDENTITY_URL", place)
    assert ids(table_url, secure_azurite.options(user_agent="identity")) == IDS
    assert [asked[2]["resource"] for asked in tokens.asked] == ["https://storage.azure.com"]


@pytest.mark.parametrize("way", ["chain", "option"])
def test_the_azure_cli_is_asked_where_no_identity_answers_emulated(
    secure_azurite: SecureAzurite, table_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    emulate_cli(tmp_path, bearer_token(), monkeypatch)
    monkeypatch.setattr(identity, "IDENTITY_URL", "http://127.0.0.1:9/nobody")
    more = {"use_azure_cli": "true"} if way == "option" else {"user_agent": "cli"}
    assert ids(table_url, secure_azurite.options(**more)) == IDS


def test_where_nothing_answers_everything_that_was_tried_is_named(
    secure_azurite: SecureAzurite, table_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "IDENTITY_URL", "http://127.0.0.1:9/nobody")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AccessDeniedError) as told:
        ids(table_url, secure_azurite.options(user_agent="nothing"))
    assert "no managed identity answers; the Azure CLI is not installed" in told.value.what
    assert "account_key" in told.value.fix


# --- mistakes ----------------------------------------------------------------


def test_a_wrong_key_a_wrong_account_and_a_missing_container_are_told_apart(
    secure_azurite: SecureAzurite, table_url: str
) -> None:
    wrong_key = secure_azurite.options(account_key=key_of(secure_azurite, OTHER_ACCOUNT))
    with pytest.raises(AccessDeniedError, match="does not accept the key") as told:
        ids(table_url, wrong_key)
    assert key_of(secure_azurite, OTHER_ACCOUNT) not in str(told.value)
    key = key_of(secure_azurite)
    with pytest.raises(LazyDeltaError) as unknown:
        ids(table_url.replace(ACCOUNT, "nobody"), secure_azurite.options("nobody", account_key=key))
    assert isinstance(unknown.value, AccessDeniedError | TableNotFoundError | StorageError)
    with pytest.raises(TableNotFoundError, match="container does not exist"):
        ids(table_url.replace(CONTAINER, "no-such"), secure_azurite.options(account_key=key))


# --- two accounts ------------------------------------------------------------


def test_data_files_in_another_account_are_read_with_their_own_credentials(
    secure_azurite: SecureAzurite, tmp_path: Path
) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"id": IDS}))
    here, there = secure_azurite.server(), secure_azurite.server(OTHER_ACCOUNT)
    log_url, data_url = here.url("clone"), there.url("source")
    there.upload(tmp_path, data_url)
    root = there.open(data_url).root
    log = "_delta_log/00000000000000000000.json"
    text = (tmp_path / log).read_text().replace('"path":"', f'"path":"{root}/')
    here.put_all(log_url, {log: text.encode()})
    own = secure_azurite.options(account_key=key_of(secure_azurite))
    with pytest.raises(LazyDeltaError, match="another store than its own") as told:
        ids(log_url, own)
    assert root in told.value.fix
    signature = container_signature(OTHER_ACCOUNT, key_of(secure_azurite, OTHER_ACCOUNT), CONTAINER)
    other = secure_azurite.options(OTHER_ACCOUNT, sas_token=signature)
    assert ids(log_url, {**own, root: other}) == IDS
    assert ids(log_url, {**own, **{f"{root}#{name}": value for name, value in other.items()}}) == IDS
    bare = {name: value for name, value in other.items() if name != "sas_token"}
    assert ids(log_url, {**own, f"{root}?{signature}": bare}) == IDS
    wrong = secure_azurite.options(OTHER_ACCOUNT, account_key=key_of(secure_azurite))
    with pytest.raises(AccessDeniedError) as denied:
        ids(log_url, {**own, root: wrong})
    assert OTHER_ACCOUNT in denied.value.where


def emulate_cli(folder: Path, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program `az` that gives out the token."""
    script = folder / "az"
    script.write_text(
        f"#!{sys.executable}\nimport datetime, json\n"
        "end = datetime.datetime.now() + datetime.timedelta(hours=1)\n"
        f"print(json.dumps({{'accessToken': {token!r}, 'tokenType': 'Bearer', "
        "'expiresOn': end.strftime('%Y-%m-%d %H:%M:%S.%f'), 'expires_on': int(end.timestamp())}))\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
