"""Every way of signing in to S3, on a server that checks keys and policies; roles by emulated endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import deltalake
import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import AccessDeniedError, InvalidRequestError, TableNotFoundError
from tests.support.checked_s3 import CheckedS3
from tests.support.secure_stores import make_certificate
from tests.support.servers import CONTAINER, TableServer
from tests.support.token_server import TokenServer

IDS = list(range(300))


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="module")
def table_url(checked_s3: CheckedS3, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("source") / "t"
    for first in range(0, len(IDS), 100):
        deltalake.write_deltalake(str(folder), pa.table({"id": IDS[first : first + 100]}), mode="append")
    url = checked_s3.server.url("credentials")
    checked_s3.server.upload(folder, url)
    return url


@pytest.fixture
def tokens(checked_s3: CheckedS3) -> Iterator[TokenServer]:
    with TokenServer(keys=checked_s3.session) as server:
        yield server


def ids(url: str, options: dict[str, Any], **more: Any) -> list[int]:
    table = ld.open(url, storage_options=options, **more)
    return sorted(table.to_arrow().column("id").to_pylist())


def owner(store: CheckedS3) -> dict[str, str]:
    names = ("access_key_id", "secret_access_key")
    return {name: store.server.storage_options[name] for name in names}


def test_keys_and_session_keys_open_the_table(checked_s3: CheckedS3, table_url: str) -> None:
    assert ids(table_url, checked_s3.options(**owner(checked_s3))) == IDS
    assert ids(table_url, checked_s3.options(**checked_s3.session)) == IDS
    without = {name: value for name, value in checked_s3.session.items() if name != "session_token"}
    with pytest.raises(AccessDeniedError):
        ids(table_url, checked_s3.options(**without))


def test_variables_open_the_table_and_the_caller_wins_over_them(
    checked_s3: CheckedS3, table_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in checked_s3.session.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    assert ids(table_url, checked_s3.options()) == IDS
    assert ids(table_url, checked_s3.options(**owner(checked_s3))) == IDS, "without the other session's token"
    wrong = {"access_key_id": "AKIAWRONG", "secret_access_key": "HUSHHUSH"}
    with pytest.raises(AccessDeniedError, match="does not accept the key") as told:
        ids(table_url, checked_s3.options(**wrong))
    assert "HUSH" not in str(told.value)


def test_a_profile_opens_the_table(
    checked_s3: CheckedS3, table_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = owner(checked_s3)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[work]\naws_access_key_id = {keys['access_key_id']}\n"
        f"aws_secret_access_key = {keys['secret_access_key']}\n"
    )
    assert ids(table_url, checked_s3.options(profile="work")) == IDS
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert ids(table_url, checked_s3.options()) == IDS
    with pytest.raises(InvalidRequestError, match="'nobody' of the AWS command line cannot be used"):
        ids(table_url, checked_s3.options(profile="nobody"))


def test_a_session_of_boto3_is_a_provider(checked_s3: CheckedS3, table_url: str) -> None:
    keys = checked_s3.session
    session = boto3.Session(
        aws_access_key_id=keys["access_key_id"],
        aws_secret_access_key=keys["secret_access_key"],
        aws_session_token=keys["session_token"],
    )
    assert ids(table_url, checked_s3.options(), credential_provider=session) == IDS
    assert ids(table_url, {**checked_s3.options(), "credential_provider": session}) == IDS


def test_a_user_who_may_not_list_is_told_so(checked_s3: CheckedS3, table_url: str) -> None:
    with pytest.raises(AccessDeniedError, match="do not allow to list here") as told:
        ids(table_url, checked_s3.options(**checked_s3.reader_without_list))
    assert "s3:ListBucket" in told.value.fix


def test_a_bucket_that_does_not_exist_is_named(checked_s3: CheckedS3, table_url: str) -> None:
    with pytest.raises(TableNotFoundError, match="bucket or container does not exist"):
        ids(table_url.replace(CONTAINER, "no-such-bucket"), checked_s3.options(**owner(checked_s3)))


def test_a_public_bucket_needs_no_keys(
    s3_server: TableServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"id": IDS}))
    url = s3_server.url("public")
    s3_server.upload(tmp_path / "t", url)
    make_public(s3_server, url)
    place = {name: s3_server.storage_options[name] for name in ("endpoint", "region", "allow_http")}
    assert ids(url, {**place, "skip_signature": "true"}) == IDS
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    assert ids(url, place) == IDS


# --- roles, emulated ---------------------------------------------------------


def test_the_instance_s_role_is_taken_emulated(
    checked_s3: CheckedS3, table_url: str, tokens: TokenServer
) -> None:
    assert ids(table_url, checked_s3.options(metadata_endpoint=tokens.url)) == IDS
    assert [asked[:2] for asked in tokens.asked] == [
        ("PUT", "/latest/api/token"),
        ("GET", "/latest/meta-data/iam/security-credentials/"),
        ("GET", "/latest/meta-data/iam/security-credentials/reader-role"),
    ]


def test_a_container_s_role_is_taken_emulated(
    checked_s3: CheckedS3,
    table_url: str,
    tokens: TokenServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "token").write_text("pod-token")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{tokens.url}/v1/credentials")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    assert ids(table_url, checked_s3.options()) == IDS
    assert tokens.asked[0][2]["authorization"] == "pod-token"


def test_a_web_identity_takes_its_role_emulated(
    checked_s3: CheckedS3, table_url: str, tmp_path: Path
) -> None:
    (tmp_path / "identity").write_text("web-token")
    certificate = make_certificate(tmp_path)
    with TokenServer(keys=checked_s3.session, certificate=certificate[:2]) as tokens:
        options = checked_s3.options(
            web_identity_token_file=str(tmp_path / "identity"),
            role_arn="arn:aws:iam::123456789012:role/reader",
            endpoint_url_sts=tokens.url,
            root_certificate=certificate.authority,
        )
        assert ids(table_url, options) == IDS
        assert tokens.asked[0][2]["WebIdentityToken"] == "web-token"
        assert tokens.asked[0][2]["Action"] == "AssumeRoleWithWebIdentity"


def test_where_no_role_answers_the_options_to_set_are_named(checked_s3: CheckedS3, table_url: str) -> None:
    with pytest.raises(AccessDeniedError, match="no credentials") as told:
        ids(table_url, checked_s3.options(metadata_endpoint="http://127.0.0.1:9"))
    assert "access_key_id" in told.value.fix


def test_a_role_beside_keys_of_the_environment_is_refused_before_anything_is_asked(
    checked_s3: CheckedS3, table_url: str, tokens: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in owner(checked_s3).items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    with pytest.raises(InvalidRequestError, match="the environment has keys"):
        ids(table_url, checked_s3.options(metadata_endpoint=tokens.url))
    assert tokens.asked == []


def make_public(server: TableServer, url: str) -> None:
    """Let everybody read what lies below the URL."""
    keys = {f"aws_{name}": server.storage_options[name] for name in ("access_key_id", "secret_access_key")}
    endpoint = server.storage_options["endpoint"]
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
    prefix = url.partition(f"{CONTAINER}/")[2]
    for found in client.list_objects_v2(Bucket=CONTAINER, Prefix=prefix)["Contents"]:
        client.put_object_acl(Bucket=CONTAINER, Key=found["Key"], ACL="public-read")
