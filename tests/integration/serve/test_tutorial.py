"""docs/tutorial.md from its fifth step on: it is served; Kusto's client and the page answer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx

from lazydelta.serve.process import ServerProcess
from tests.test_readme import FENCE, ROOT, run_command

PAGE = ROOT / "docs" / "tutorial.md"


def block(kind: str, word: str) -> str:
    found = [match["body"] for match in FENCE.finditer(PAGE.read_text("utf-8"))]
    kinds = [match["kind"] for match in FENCE.finditer(PAGE.read_text("utf-8"))]
    (body,) = [body for body, its in zip(found, kinds, strict=True) if its == kind and word in body]
    return str(body)


def test_the_table_is_served_to_kustos_client_and_to_the_browser(tmp_path: Path) -> None:
    first = re.search(r"^\$ (lazydelta sample .*)$", PAGE.read_text("utf-8"), re.M)
    assert first is not None
    run_command(first[1], tmp_path)
    config = (
        block("toml", "[functions.Hot]")
        .replace("8080", "0")
        .replace('"telemetry"', f'"{tmp_path}/telemetry"')
    )
    (tmp_path / "serve.toml").write_text(config, "utf-8")
    process = ServerProcess(str(tmp_path / "serve.toml"), environment={})
    address = f"http://127.0.0.1:{process.start().http}"
    try:
        script = block("python", "KustoClient").replace("http://127.0.0.1:8080", address)
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ}, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        page = httpx.get(f"{address}/ui/", timeout=60)
        query = {"db": "main", "csl": block("text", "render timechart")}
        chart = httpx.post(f"{address}/v2/rest/query", json=query, timeout=60)
    finally:
        process.stop()
    device, count = done.stdout.split()
    assert device == "sensor-042" and int(count) > 0
    assert page.status_code == 200 and "lazydelta" in page.text
    assert "timechart" in chart.text and chart.status_code == 200
