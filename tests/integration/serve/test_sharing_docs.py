"""What docs/sharing.md shows runs as it stands, but for ports, tokens and folders."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from pathlib import Path

from bench.environments import python_of
from lazydelta.serve.process import ServerProcess
from tests.support.row_tables import readings_table
from tests.support.sharing_peer import AT_ONCE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sharing.md"
TOKEN = "a-token-of-the-page"


def block(kind: str) -> str:
    found = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(found) == 1
    return str(found[0])


def test_the_page_serves_and_reads(tmp_path: Path) -> None:
    table = Path(readings_table(tmp_path))
    table.rename(tmp_path / "telemetry")
    config = block("toml").replace("TOKEN_SHA256", hashlib.sha256(TOKEN.encode()).hexdigest())
    (tmp_path / "serve.toml").write_text(config.replace("8080", "0"), "utf-8")
    process = ServerProcess(str(tmp_path / "serve.toml"), environment={})
    ports = process.start()
    try:
        profile = json.loads(block("json").replace("8080", str(ports.http)).replace("TOKEN", TOKEN))
        (tmp_path / "ann.share").write_text(json.dumps(profile), "utf-8")
        script = block("python") + "print(len(frame))" + AT_ONCE
        command = [str(python_of("delta-sharing")), "-c", script]
        found = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
        )
    finally:
        process.stop()
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        "[Table(name='telemetry', share='lake', schema='sensors')]",
        "7",
        "100",
    ]
