"""The examples of docs/kusto.md run as they stand there, but for the port."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lazydelta import limits
from lazydelta.serve.config import load_config
from tests.support.java_program import java_command
from tests.support.kusto import payloads, post
from tests.support.kusto_clients import java_jars, node_folder
from tests.support.node import node
from tests.support.serving import RunningServer, running_server

PAGE = (Path(__file__).parents[3] / "docs" / "kusto.md").read_text("utf-8")
ROWS = {"device_id": [f"sensor-{i % 3}" for i in range(6)], "value": [float(i) for i in range(6)]}


def block(kind: str, word: str = "") -> str:
    found = [text for text in re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S) if word in text]
    assert len(found) == 1, f"{len(found)} blocks of {kind}"
    return str(found[0])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("kusto")
    write_deltalake(str(folder / "telemetry"), pa.table(ROWS))
    with running_server(folder, {"TelemetryDelta": str(folder / "telemetry")}) as server:
        yield server


def said(command: list[str], folder: Path) -> list[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.split("\n"))[1:]


def test_the_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text(block("toml"), "utf-8")
    config = load_config(str(tmp_path / "serve.toml"), environment={})
    assert list(config.functions) == ["Recent"] and list(config.tables) == ["TelemetryDelta"]


def test_python_prints_what_the_page_says(served: RunningServer) -> None:
    out, names = io.StringIO(), dict[str, Any]()
    with contextlib.redirect_stdout(out):
        exec(block("python").replace(":8080", f":{served.ports.http}"), names)  # the page's own code
    names["client"].close()
    assert out.getvalue() == block("text")


def test_node_gives_the_rows(served: RunningServer) -> None:
    with tempfile.TemporaryDirectory(dir=node_folder()) as place:
        program = Path(place) / "example.mjs"
        program.write_text(block("js").replace(":8080", f":{served.ports.http}"), "utf-8")
        found = said([node(), str(program)], Path(place))
    assert found == sorted(f"sensor-{i % 3} {i}" for i in range(6))


@pytest.mark.spark
def test_java_gives_the_rows(served: RunningServer, tmp_path: Path) -> None:
    body = block("java").replace(":8080", f":{served.ports.http}")
    imports = "import com.microsoft.azure.kusto.data.*;\nimport com.microsoft.azure.kusto.data.auth.*;\n"
    head = "public class Rows { public static void main(String[] words) throws Exception {\n"
    (tmp_path / "Rows.java").write_text(f"{imports}{head}{body}System.exit(0);}}}}\n", "utf-8")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    found = said(java_command(tmp_path / "Rows.java", f"{java_jars()}/*", [quiet]), tmp_path)
    assert found == sorted(f"sensor-{i % 3} {float(i)}" for i in range(6))


def test_explain_has_what_the_page_says(served: RunningServer) -> None:
    text = block("kql").replace("_event_hour >= '2026021022'", "value > 2")
    told = payloads(post(served, text))["QueryExplain"]
    named = re.findall(
        r"`(\w+)`", PAGE.partition("whose `Payload` is JSON:")[2].partition("Tables are named")[0]
    )
    assert len(named) >= 9 and set(named) <= set(told)


def test_the_limits_are_those_of_the_page() -> None:
    for number in (limits.KUSTO_RECORDS_MAX, limits.KUSTO_RESULT_BYTES_MAX):
        assert f"| {number} (`limits." in PAGE
    assert limits.KUSTO_SECONDS == 240 and "`00:04:00` (`limits.kusto_seconds`)" in PAGE
