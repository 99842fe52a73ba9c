"""moto as a store that checks who asks: signatures, session tokens and policies.

Contract: `checked_s3` knows one user who may do everything, one who may read and not list, and the session
keys of a role. One process per run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import boto3
import pytest
from botocore.config import Config

from tests.support import servers
from tests.support.servers import CONTAINER, TableServer

_ROLE = "arn:aws:iam::123456789012:role/reader"


@dataclass(frozen=True)
class CheckedS3:
    """An S3 server that checks signatures and policies, and the keys that it knows."""

    server: TableServer
    reader_without_list: dict[str, str] = field(repr=False)
    session: dict[str, str] = field(repr=False)

    def options(self, **credentials: str) -> dict[str, str]:
        """Storage options with these credentials and no others."""
        names = ("endpoint", "region", "allow_http")
        return {**{name: self.server.storage_options[name] for name in names}, **credentials}


@pytest.fixture(scope="session")
def checked_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckedS3]:
    # The bucket, two users with a key and a policy each, the role with its policy, and taking the role.
    free_actions = 1 + 2 * 3 + 2 + 1
    environment = {"INITIAL_NO_AUTH_ACTION_COUNT": str(free_actions)}
    with servers.running_moto(tmp_path_factory.mktemp("checked-moto-log"), environment) as server:
        everything, without_list = _user(server, "all", ["s3:*"]), _user(server, "reader", ["s3:GetObject"])
        session = _role(server)
        options = {**server.storage_options, **everything}
        owner = TableServer(kind="s3", port=server.port, base_url=f"s3://{CONTAINER}", options=options)
        yield CheckedS3(server=owner, reader_without_list=without_list, session=session)


def _user(server: TableServer, name: str, actions: list[str]) -> dict[str, str]:
    iam = _client(server, "iam")
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=_policy(actions))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {"access_key_id": key["AccessKeyId"], "secret_access_key": key["SecretAccessKey"]}


def _role(server: TableServer) -> dict[str, str]:
    iam = _client(server, "iam")
    anyone = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    trust = {"Version": "2012-10-17", "Statement": [anyone]}
    iam.create_role(RoleName="reader", AssumeRolePolicyDocument=json.dumps(trust))
    iam.put_role_policy(RoleName="reader", PolicyName="p", PolicyDocument=_policy(["s3:*"]))
    keys = _client(server, "sts").assume_role(RoleArn=_ROLE, RoleSessionName="tests")["Credentials"]
    return {
        "access_key_id": keys["AccessKeyId"],
        "secret_access_key": keys["SecretAccessKey"],
        "session_token": keys["SessionToken"],
    }


def _policy(actions: list[str]) -> str:
    allowed = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def _client(server: TableServer, service: str):  # type: ignore[no-untyped-def]  # boto3's classes are made at run time
    return boto3.client(
        service,
        endpoint_url=f"http://127.0.0.1:{server.port}",
        region_name="us-east-1",
        aws_access_key_id="unchecked",
        aws_secret_access_key="unchecked",
        config=Config(retries={"max_attempts": 1}),
    )
