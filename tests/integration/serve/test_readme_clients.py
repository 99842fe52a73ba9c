"""The clients that the README shows run as they stand there, but for ports and addresses."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from bench.environments import python_of
from tests.support.capi_library import c_environment, compiled
from tests.support.java_program import java_command
from tests.support.jdbc_driver import driver_jar
from tests.support.serving import RunningServer, running_server
from tests.support.sharing_peer import AT_ONCE

README = Path(__file__).resolve().parents[3] / "README.md"
ROWS = 300


@pytest.fixture(scope="module")
def telemetry(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("lake") / "telemetry")
    rows = {
        "device_id": [f"sensor-{i % 7}" for i in range(ROWS)],
        "value": [float(i) for i in range(ROWS)],
        "date": ["2026-02-10" if i % 2 else "2026-02-11" for i in range(ROWS)],
    }
    write_deltalake(url, pa.table(rows), partition_by=["date"])
    return url


@pytest.fixture(scope="module")
def served(telemetry: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("served"), {"telemetry": telemetry}) as server:
        yield server


def block(kind: str, word: str, *, place: str = "") -> str:
    """The block of the README's chapter that has this word; its table's address is `place`."""
    chapter = README.read_text("utf-8").partition("\n## Serve\n")[2].partition("\n## ")[0]
    found = [text for text in re.findall(rf"^```{kind}\n(.*?)^```$", chapter, re.M | re.S) if word in text]
    assert len(found) == 1, f"{len(found)} blocks of {kind} with {word}"
    return str(found[0]).replace("abfss://lake@account/telemetry", place)


def said(command: list[str], folder: Path, **more: str) -> list[str]:
    """What a program prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        env=c_environment(**more),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def with_ports(text: str, server: RunningServer) -> str:
    return text.replace(":31337", f":{server.ports.flight}").replace(":8080", f":{server.ports.http}")


def test_the_configuration_is_one(tmp_path: Path, telemetry: str) -> None:
    text = block("toml", "[tables.telemetry]", place=telemetry).replace("31337", "0").replace("8080", "0")
    (tmp_path / "serve.toml").write_text(text, "utf-8")
    from lazydelta.serve.config import load_config

    config = load_config(str(tmp_path / "serve.toml"), environment={"LAKE_KEY": "c2VjcmV0"})
    assert list(config.tables) == ["telemetry"]


def test_flight_gives_rows(served: RunningServer, tmp_path: Path) -> None:
    code = (
        with_ports(block("py", "flight.connect"), served)
        + "print(rows.num_rows, min(rows['value'].to_pylist()) > 20)"
    )
    assert said([sys.executable, "-c", code], tmp_path) == ["100 True"]


def test_adbc_gives_answers(served: RunningServer, tmp_path: Path) -> None:
    code = with_ports(block("py", "adbc"), served).replace(
        "print(cursor.fetch_arrow_table())", "print(cursor.fetch_arrow_table().num_rows)"
    )
    assert said([sys.executable, "-c", code], tmp_path) == ["7"]


@pytest.mark.spark
def test_jdbc_gives_rows(served: RunningServer, tmp_path: Path) -> None:
    body = with_ports(block("java", "DriverManager"), served)
    program = (
        "import java.sql.*;\npublic class Rows { public static void main(String[] words) throws Exception {\n"
    )
    (tmp_path / "Rows.java").write_text(f"{program}{body}}}}}\n", "utf-8")
    opened = "--add-opens=java.base/java.nio=ALL-UNNAMED"
    command = java_command(tmp_path / "Rows.java", str(driver_jar()), [opened])
    found = [line for line in said(command, tmp_path) if line.startswith("sensor-")]
    assert len(found) == 100


def test_delta_sharing_gives_a_frame(served: RunningServer, tmp_path: Path) -> None:
    code = (
        with_ports(block("py", "delta_sharing"), served)
        + "print(len(frame), sorted(frame.columns))"
        + AT_ONCE
    )
    assert said([str(python_of("delta-sharing")), "-c", code], tmp_path, PYTHONPATH="") == [
        "100 ['date', 'device_id', 'value']"
    ]


def test_kusto_gives_answers(served: RunningServer, tmp_path: Path) -> None:
    found = said([sys.executable, "-c", with_ports(block("py", "KustoClient"), served)], tmp_path)
    told = {line.split()[0]: float(line.split()[1]) for line in found}
    groups = {f"sensor-{i}": [float(j) for j in range(21, ROWS) if j % 7 == i] for i in range(7)}
    assert told == {device: sum(values) / len(values) for device, values in groups.items()}


def test_c_lists_files(telemetry: str, tmp_path: Path) -> None:
    source = tmp_path / "list.c"
    source.write_text(block("c", "delta_scan_lazy", place=telemetry), "utf-8")
    expected = [f"{file.path} {file.size}" for file in ld.open(telemetry).scan("date = '2026-02-10'").files()]
    assert expected and said([str(compiled([source], tmp_path / "list"))], tmp_path) == expected
