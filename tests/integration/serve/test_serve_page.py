"""docs/serve.md: every key with its default, every number, and its examples as they stand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lazydelta.serve import config_parts
from lazydelta.serve.config import load_config
from lazydelta.serve.sign_in import token_digest
from lazydelta.telemetry import PREFIX
from tests.support.prometheus_text import parsed
from tests.support.row_tables import readings_table
from tests.support.serve_process import ServeProcess
from tests.support.serving import bearer, planned, running_server
from tests.support.sharing import Sharing

PAGE = (Path(__file__).parents[3] / "docs" / "serve.md").read_text("utf-8")
BLOCK = re.compile(r"^```(toml|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "[server]": config_parts.ServerPart,
    "[tls]": config_parts.TlsPart,
    "[limits]": config_parts.LimitsPart,
    "[[clients]]": config_parts.ClientPart,
    "[tables.NAME]": config_parts.TablePart,
}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_there_with_its_default(section: str) -> None:
    told = PAGE.partition(f"**`{section}`**")[2].partition("\n\n**")[0].partition("\n\nSecrets")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", told, re.MULTILINE))
    defaults = {}
    for field in msgspec.structs.fields(SECTIONS[section]):
        default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory
        if default is msgspec.NODEFAULT:
            defaults[field.name] = "needed"
        elif default is None:
            defaults[field.name] = "none"
        elif isinstance(default, msgspec.Struct) or default is dict:
            defaults[field.name] = "`{}`"
        else:
            defaults[field.name] = "`[]`" if default is list else f"`{json.dumps(default)}`"
    assert rows == defaults


def test_the_limits_of_a_client_are_named() -> None:
    row = re.search(r"^\| `limits` \| `\{\}` \| (.*) \|$", PAGE, re.MULTILINE)
    assert row is not None
    named = re.findall(r"`(\w+)`", row[1].rpartition(": ")[2])
    assert named == list(config_parts.ClientLimits.__struct_fields__)


def test_every_number_is_listed_with_its_kind_and_labels(tmp_path: Path) -> None:
    rows = re.findall(r"^\| `((?:lazydelta|process|delta)_\w+)` \| (\w+) \|([^|]*)\|", PAGE, re.MULTILINE)
    listed = {
        name: (kind, frozenset(filter(None, labels.strip().split(", ")))) for name, kind, labels in rows
    }
    with (
        running_server(tmp_path, {"t": readings_table(tmp_path, hours=1)}) as server,
        server.flight() as client,
    ):
        client.do_get(planned(client, table="t").endpoints[0].ticket).read_all()
        server.process.served.metrics.limit_reached("rows")
        found = parsed(Sharing(server).ask("GET", "/metrics").body.decode())
    shown = {
        name: (
            family.kind,
            frozenset(label for _, labels in family.samples for label, _ in labels) - {"le"},
        )
        for name, family in found.items()
        if not name.startswith(PREFIX.replace(".", "_"))
    }
    del listed["delta_lazy_fallbacks_by_reason_total"]  # which is there once a scan went another way
    assert listed == shown


def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    readings_table(tmp_path, hours=1)
    shutil.move(tmp_path / "readings", tmp_path / "telemetry")
    (_, config), (_, commands), (_, secrets) = BLOCK.findall(PAGE)
    token = json.loads(ran(tmp_path, "serve-token"))
    assert token_digest(token["token"]) == token["token_sha256"]
    text = config.replace("TOKEN_SHA256", token["token_sha256"]).replace("31337", "0").replace("8080", "0")
    (tmp_path / "serve.toml").write_text(text, "utf-8")
    said = dict(re.findall(r"^\$ lazydelta (.*)\n(.*)$", commands, re.MULTILINE))
    assert (
        ran(tmp_path, "serve --config serve.toml --check").strip()
        == said["serve --config serve.toml --check"]
    )
    server = ServeProcess(tmp_path / "serve.toml", {})
    try:
        assert list(server.ports) == list(json.loads(said["serve --config serve.toml"]))
        with server.flight() as client:
            options = bearer(token["token"])
            info = planned(client, options, table="telemetry")
            assert client.do_get(info.endpoints[0].ticket, options).read_all().num_rows == 30
    finally:
        server.close()
    (tmp_path / "account.key").write_text("a2V5", "utf-8")
    (tmp_path / "other.toml").write_text(secrets, "utf-8")
    found = load_config(str(tmp_path / "other.toml"), environment={"SIGNING_KEY": "x" * 32})
    assert found.tables["telemetry"].settings.storage_options == {"account_key": "a2V5"}
    assert found.tables["telemetry"].settings.request_timeout_seconds == 10


def ran(folder: Path, command: str) -> str:
    line = [sys.executable, "-m", "lazydelta", *command.split()]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True).stdout
