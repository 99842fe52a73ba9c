"""What is secret is nowhere in what the server writes, answers or counts, whatever goes wrong."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import flight

from lazydelta.serve.sign_in import token_digest
from tests.support.row_tables import readings_table
from tests.support.serve_process import ServeProcess
from tests.support.serving import bearer
from tests.support.sharing import table_path

SECRETS = {
    "token": "planted-token-1qaz",
    "wrong token": "planted-wrong-2wsx",
    "account key": "cGxhbnRlZC1hY2NvdW50LWtleS0zZWRj",
    "secret key": "plantedSecretAccessKey4rfv",
    "signing key": "planted-signing-key-5tgb-" + "x" * 40,
    "signature": "plantedsignature6yhn",
    "filter": "planted-filter-7ujm",
}
CONFIG = """
[server]
flight_port = 0
http_port = 0
drain_seconds = 1
signing_key = {{env = "SIGNING_KEY"}}
[[clients]]
name = "ann"
token_sha256 = "{digest}"
[tables.readings]
url = {url}
[tables.damaged]
url = {damaged}
[tables.azure]
url = "abfss://container@account.dfs.core.windows.net/table"
[tables.azure.storage_options]
account_key = {{file = "account.key"}}
azure_storage_endpoint = "http://127.0.0.1:1"
"delta.request.attempts_max" = 1
[tables.s3]
url = "s3://bucket/table"
[tables.s3.storage_options]
access_key_id = "me"
secret_access_key = {{env = "SECRET_KEY"}}
endpoint = "http://127.0.0.1:1"
region = "eu"
allow_http = true
"delta.request.attempts_max" = 1
[tables.signed]
url = "https://account.blob.core.windows.net/container/table?sv=2026&sig={signature}"
storage_options = {{"delta.request.attempts_max" = 1, "azure_storage_endpoint" = "http://127.0.0.1:1"}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServeProcess]:
    damaged = tmp_path / "damaged"
    (damaged / "_delta_log").mkdir(parents=True)
    (damaged / "_delta_log" / f"{0:020}.json").write_text("{no json", "utf-8")
    (tmp_path / "account.key").write_text(SECRETS["account key"], "utf-8")
    config = tmp_path / "serve.toml"
    config.write_text(
        CONFIG.format(
            digest=token_digest(SECRETS["token"]),
            url=json.dumps(readings_table(tmp_path, hours=1)),
            damaged=json.dumps(str(damaged)),
            signature=SECRETS["signature"],
        ),
        "utf-8",
    )
    secrets = {"SIGNING_KEY": SECRETS["signing key"], "SECRET_KEY": SECRETS["secret key"]}
    process = ServeProcess(config, {**secrets, "OTEL_TRACES_EXPORTER": "console"})
    try:
        yield process
    finally:
        process.close()


def test_no_secret_is_written_told_or_counted(server: ServeProcess) -> None:
    told: list[str] = []
    signed, wrong = bearer(SECRETS["token"]), bearer(SECRETS["wrong token"])
    with server.flight() as client:
        for table in ("readings", "damaged", "azure", "s3", "signed", "nowhere", SECRETS["filter"]):
            command = {"table": table, "predicate": f"device = '{SECRETS['filter']}'"}
            descriptor = flight.FlightDescriptor.for_command(json.dumps(command))
            for options in (signed, wrong):
                try:
                    info = client.get_flight_info(descriptor, options)
                    told.append(str(client.do_get(info.endpoints[0].ticket, options).read_all().num_rows))
                except Exception as error:  # noqa: BLE001 - every answer is looked at
                    told.append(f"{error} {error!r}")
            body = json.dumps({"table": table}).encode()
            for action in ("refresh", "explain"):
                try:
                    told += [str(part.body) for part in client.do_action(flight.Action(action, body), signed)]
                except Exception as error:  # noqa: BLE001 - every answer is looked at
                    told.append(f"{error} {error!r}")
        told += [str(info.descriptor) for info in client.list_flights(options=signed)]
    for token in (SECRETS["token"], SECRETS["wrong token"]):
        headers = {"authorization": f"Bearer {token}"}
        for path in ("/metrics", "/nowhere", "/delta-sharing/shares", f"/files/x?sig={SECRETS['signature']}"):
            told.append(str(server.get(path, headers)[::2]))
        for table in ("readings", "damaged", "azure", "s3", "signed"):
            told.append(str(server.get(f"/delta-sharing{table_path(table)}/metadata", headers)[::2]))
    assert any("unavailable" in text.lower() for text in told), "the stores were asked"
    server.config.write_text(server.config.read_text("utf-8") + "[tables.broken]\n", "utf-8")
    server.signal(signal.SIGHUP)
    assert server.says("the configuration is not taken")
    server.signal(signal.SIGTERM)
    server.ended()
    written = {"answers": "".join(told), "log": "".join(server.stderr), "stdout": "".join(server.stdout)}
    assert len(server.calls) > 20 and '"trace_id"' in written["stdout"]
    for where, text in written.items():
        for what, secret in SECRETS.items():
            if (what, where) == ("filter", "answers"):
                continue  # what a client sent may be told to it
            assert secret not in text, (what, where)
