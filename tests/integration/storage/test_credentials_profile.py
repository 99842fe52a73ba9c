"""Keys of a profile that change in its files while the process lives, on a server that checks them."""

from __future__ import annotations

import time
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import AccessDeniedError
from tests.support.checked_s3 import CheckedS3

WRONG = {"access_key_id": "AKIAWRONG", "secret_access_key": "HUSHHUSH"}


def write_profile(home: Path, keys: dict[str, str]) -> None:
    lines = [f"aws_{name} = {value}" for name, value in keys.items()]
    (home / ".aws").mkdir(exist_ok=True)
    (home / ".aws" / "credentials").write_text("\n".join(["[work]", *lines, ""]))


def test_keys_that_were_written_into_a_profile_meanwhile_are_used(
    checked_s3: CheckedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"id": [1, 2, 3]}))
    url = checked_s3.server.url("profile")
    checked_s3.server.upload(tmp_path / "t", url)
    options = checked_s3.options(profile="work")
    write_profile(tmp_path, WRONG)
    with pytest.raises(AccessDeniedError) as told:
        ld.open(url, storage_options=options)
    assert "HUSH" not in str(told.value)
    write_profile(tmp_path, checked_s3.session)  # of a role: with a session token
    time.sleep(limits.CREDENTIAL_RENEWAL_SECONDS_MIN)  # a refusal right after a renewal is not about age
    assert ld.open(url, storage_options=options).to_arrow().column("id").to_pylist() == [1, 2, 3]
